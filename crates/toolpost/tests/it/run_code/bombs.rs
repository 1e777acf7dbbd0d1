//! Code that means no good: each is contained, bounded and answered, and the next run is well.

use serde_json::{Value, json};

use super::{
    Bench,
    Expected::{self, Error},
};

#[test]
fn bombs_end_within_their_limits() {
    let mut bench = Bench::new("default");
    let brackets = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    let lists = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let signs = format!("{}1", "-".repeat(50_000));
    let literal = format!("{} % 7", "9".repeat(200_000));
    let time = || Error("time_limit", "limit of 1 s");
    let memory = || Error("out_of_memory", "memory");
    let python = |end| Error("python_error", end);
    let cases: Vec<(&str, Expected)> = vec![
        ("while True: pass", time()),
        (
            "while True:\n    try:\n        while True: pass\n    except: pass",
            time(),
        ),
        (
            "while True:\n    try:\n        no_such()\n    except NameError: pass",
            time(),
        ),
        ("10 ** 10 ** 8", time()),
        ("sorted(range(10 ** 8), key=lambda x: -x)", time()),
        ("'a' * 10 ** 10", memory()),
        ("[0] * 10 ** 10", memory()),
        ("def f(n): return f(n + 1)\nf(0)", python("RecursionError")),
        ("def f():\n    try: f()\n    except: f()\nf()", time()),
        (&brackets, python("SyntaxError")),
        (&lists, python("SyntaxError")),
        (&signs, python("SyntaxError")),
        (&literal, python("SyntaxError")),
        (
            "import re\nre.match('(a|a)*(?=b)c', 'a' * 40 + 'b')",
            python("backtracking"),
        ),
        (
            "().__class__.__bases__[0].__subclasses__()",
            python("AttributeError"),
        ),
        (
            "'{0.__class__.__mro__}'.format(1)",
            python("AttributeError"),
        ),
        ("eval('1')", python("NameError: name 'eval' is not defined")),
        ("exec('1')", python("NameError: name 'exec' is not defined")),
        (
            "__import__('os').system('id')",
            python("NameError: name '__import__' is not defined"),
        ),
        (
            "globals()",
            python("NameError: name 'globals' is not defined"),
        ),
        (
            "run_code(code='1')",
            python("NameError: name 'run_code' is not defined"),
        ),
        (
            "no_such_tool(float('nan'))",
            python("NameError: name 'no_such_tool' is not defined"),
        ),
        ("open('/etc/passwd').read()", python("PermissionError")),
        ("raise ValueError('x' * 10 ** 6)", python("ValueError: xxx")),
    ];
    for (code, expected) in &cases {
        let seconds = if matches!(expected, Error("time_limit", _)) {
            1
        } else {
            60
        };
        let result = bench.run_with(code, json!({ "timeout_seconds": seconds }));
        expected.check(code, &result);
        assert!(result.to_string().len() < 300_000, "{code:.80}");
    }
    bench.check("2 + 2", &Expected::Value(json!(4)));
}

#[test]
fn memory_taken_piece_by_piece_ends_the_run_and_not_the_host() {
    let mut bench = Bench::new("default");
    for code in [
        "text = 'a'\nwhile True:\n    text = text + text",
        "kept = []\nwhile True:\n    try:\n        kept.append('x' * 1_000_000 + str(len(kept)))\n    except: pass",
    ] {
        let result = bench.run_with(code, json!({ "timeout_seconds": 120 }));
        assert_eq!(result["error"]["code"], "out_of_memory", "{result:#}");
        assert_eq!(bench.run("1")["structured_content"]["value"], 1);
    }
}

#[test]
fn printing_is_bounded_and_says_what_is_missing() {
    let mut bench = Bench::new("default");
    let result = bench.run("for i in range(1000):\n    print('é' * 500)");
    let printed = result["structured_content"]["printed"].as_str().unwrap();
    assert!(
        printed.len() <= 100_000 && printed.starts_with('é'),
        "{}",
        printed.len()
    );
    let missing = result["structured_content"]["unprinted_bytes"]
        .as_u64()
        .unwrap();
    assert_eq!(printed.len() as u64 + missing, 1_001_000);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!(
        "[{missing} more bytes were printed and are not shown]"
    )));
    assert_eq!(result["truncated"]["total"], 1_001_000);
}

#[test]
fn what_was_printed_before_the_end_is_shown() {
    let mut bench = Bench::new("default");
    let result = bench.run_with(
        "print('begun')\nwhile True: pass",
        json!({ "timeout_seconds": 1 }),
    );
    assert_eq!(result["outcome"], "timed_out");
    assert_eq!(result["content"][0]["text"], "begun\n");
}

#[test]
fn large_values_are_told_and_not_sent() {
    let mut bench = Bench::new("default");
    let result = bench.run("'x' * 3_000_000");
    assert_eq!(result["structured_content"].get("value"), None::<&Value>);
    assert!(
        result["structured_content"]["not_json"]
            .to_string()
            .contains("more than 1048576 bytes")
    );
    assert!(result.to_string().len() < 300_000);
}
