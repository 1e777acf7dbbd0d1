//! Tool calls from code.

use serde_json::json;

use super::{Bench, Expected};

#[test]
fn tools_are_functions_with_calls_of_their_own() {
    let mut bench = Bench::new("default");
    let result = bench.run(
        "total = 0\nfor name in ['a.txt', 'b.txt']:\n    total += len(read_file(name)['text'].splitlines())\n\
         print(echo(message='hello'))\ntotal",
    );
    let structured = &result["structured_content"];
    assert_eq!(
        (&structured["value"], &structured["printed"]),
        (&json!(3), &json!("hello\n")),
        "{result:#}"
    );
    let calls = structured["calls"].as_array().unwrap();
    let tools: Vec<_> = calls
        .iter()
        .map(|call| call["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["read_file", "read_file", "echo"]);
    for call in calls {
        let id = call["invocation_id"].as_str().unwrap();
        let shown = bench
            .http
            .get(&format!("/invocations/{id}"))
            .unwrap()
            .json();
        assert_eq!(
            shown["result"]["invocation_id"]
                .as_str()
                .or(shown["invocation_id"].as_str()),
            Some(id),
            "{shown:#}"
        );
    }
}

#[test]
fn a_call_that_fails_raises_what_the_code_can_catch() {
    let mut bench = Bench::new("default");
    let caught = |call: &str| {
        format!(
            "try:\n    {call}\nexcept Exception as error:\n    told = (type(error).__name__, str(error))\ntold"
        )
    };
    for (call, kind, part) in [
        (
            "read_file('missing')",
            "FileNotFoundError",
            "read_file: execution_failed: `missing` does not exist",
        ),
        (
            "read_file(path=3)",
            "ValueError",
            "read_file: invalid_arguments",
        ),
        (
            "read_file(path='../x')",
            "PermissionError",
            "read_file: sandbox_violation",
        ),
        (
            "write_file('c.txt', 'x')",
            "PermissionError",
            "write_file: approval_rejected",
        ),
        (
            "read_file(1, 2, 3, 4, 5)",
            "TypeError",
            "takes at most 4 positional arguments but 5 were given",
        ),
        (
            "read_file('a.txt', path='b.txt')",
            "TypeError",
            "multiple values for argument 'path'",
        ),
        (
            "read_file(path=float('inf'))",
            "ValueError",
            "`inf`, which has no JSON form",
        ),
        (
            "read_file(path={1.5: 1})",
            "ValueError",
            "a dict key of type `float`",
        ),
    ] {
        let told = bench.run(&caught(call))["structured_content"]["value"].clone();
        assert_eq!(told[0], kind, "{call}: {told}");
        assert!(
            told[1].as_str().unwrap_or_default().contains(part),
            "{call}: {told}"
        );
    }
    assert_eq!(bench.home.try_read("c.txt"), None);
    let result = bench.run("read_file('a.txt')\nread_file('missing')");
    assert_eq!(
        result["error"]["retry"]["safe"], false,
        "a call was made: {result:#}"
    );
    assert_eq!(
        result["error"]["details"]["calls"][1]["error"],
        "execution_failed"
    );
}

#[test]
fn calls_can_be_made_side_by_side() {
    let mut bench = Bench::new("default");
    bench.check(
        "import asyncio\nfound = await asyncio.gather(*[read_file_async(path=p) for p in ['a.txt', 'b.txt'] * 20])\n\
         sum(f['total_lines'] for f in found)",
        &Expected::Value(json!(60)),
    );
    bench.check(
        "try:\n    await read_file_async('missing')\nexcept FileNotFoundError:\n    told = 'caught'\ntold",
        &Expected::Value(json!("caught")),
    );
}

#[test]
fn only_so_many_calls_and_no_way_to_catch_that() {
    let mut bench = Bench::new("default");
    let result = bench
        .run("for i in range(1000):\n    try:\n        echo('x')\n    except BaseException:\n        pass");
    assert!(
        result["error"]["message"]
            .to_string()
            .contains("more than 200 tool calls in one run"),
        "{result:#}"
    );
    assert_eq!(
        result["error"]["details"]["calls"]
            .as_array()
            .unwrap()
            .len(),
        200
    );
}

#[test]
fn the_request_narrows_what_there_is() {
    let mut bench = Bench::new("bypass");
    let only = json!({ "tools": ["files.read_file"] });
    let result = bench.run_with("read_file('a.txt')['text']", only.clone());
    assert_eq!(result["structured_content"]["value"], "first\n");
    for code in [
        "write_file('c.txt', 'x')",
        "f = write_file",
        "from pathlib import Path\nPath('c.txt').write_text('x')",
    ] {
        let result = bench.run_with(code, only.clone());
        let message = result["error"]["message"].to_string();
        assert!(
            message.contains("NameError") || message.contains("PermissionError"),
            "{message}"
        );
    }
    assert_eq!(bench.home.try_read("c.txt"), None);
}

#[test]
fn files_are_reached_through_the_file_tools() {
    let mut bench = Bench::new("bypass");
    for (code, expected) in [
        ("open('b.txt').read()", json!("second\nline\n")),
        (
            "[line.strip() for line in open('b.txt').readlines()]",
            json!(["second", "line"]),
        ),
        (
            "from pathlib import Path\nPath('a.txt').read_text()",
            json!("first\n"),
        ),
        (
            "from pathlib import Path\n[Path('a.txt').exists(), Path('zz').exists(), Path('.').is_dir()]",
            json!([true, false, true]),
        ),
        (
            "from pathlib import Path\nsorted(str(p) for p in Path('.').iterdir())",
            json!(["a.txt", "b.txt"]),
        ),
        (
            "import os\nsorted(os.listdir('.'))",
            json!(["a.txt", "b.txt"]),
        ),
        (
            "import os\n[os.getenv('HOME'), len(os.environ)]",
            json!([null, 0]),
        ),
        (
            "with open('out.txt', 'w') as f:\n    for i in range(500):\n        f.write('%d\\n' % i if False else str(i) + '\\n')\nlen(open('out.txt').read())",
            json!(1890),
        ),
        (
            "with open('out.txt', 'a') as f:\n    f.write('end')\nopen('out.txt').read()[-7:]",
            json!("499\nend"),
        ),
    ] {
        bench.check(code, &Expected::Value(expected));
    }
    assert!(bench.home.read("out.txt").ends_with("499\nend"));
    bench
        .home
        .write("long.txt", &"a line of some length\n".repeat(30_000));
    bench.check(
        "len(open('long.txt').read())",
        &Expected::Value(json!(660_000)),
    );
    bench.home.write("wide.txt", &"x".repeat(40_000));
    bench.check(
        "open('wide.txt').read()",
        &Expected::Error("python_error", "cannot be read exactly"),
    );
    bench.check(
        "from pathlib import Path\nPath('a.txt').unlink()",
        &Expected::Error("python_error", "PermissionError"),
    );
}
