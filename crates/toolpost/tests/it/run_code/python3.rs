//! `language: "python3"`: CPython in the sandbox.

use serde_json::{Value, json};

use super::{
    Bench,
    Expected::{self, Error, Shown},
};

fn run(bench: &mut Bench, code: &str, seconds: u64) -> Value {
    bench.run_with(
        code,
        json!({ "language": "python3", "timeout_seconds": seconds }),
    )
}

#[test]
fn full_python_gives_values_prints_and_calls_tools() {
    let mut bench = Bench::new("bypass");
    for (code, expected) in [
        (
            "import statistics\nstatistics.mean([1, 2, 3])",
            Expected::Value(json!(2)),
        ),
        (
            "def count():\n    yield 1\n    yield 2\nlist(count())",
            Expected::Value(json!([1, 2])),
        ),
        ("x = 1", Expected::Value(json!(null))),
        ("{1: {2}}", Expected::Value(json!({ "1": [2] }))),
        ("float('nan')", Shown("nan")),
        ("2 ** 70", Shown("1180591620717411303424")),
        (
            "read_file('a.txt')['text']",
            Expected::Value(json!("first\n")),
        ),
        ("open('a.txt').read()", Expected::Value(json!("first\n"))),
        (
            "import asyncio\nlen(await asyncio.gather(read_file_async(path='a.txt')))",
            Expected::Value(json!(1)),
        ),
        (
            "try:\n    read_file('missing')\nexcept FileNotFoundError as e:\n    r = str(e)[:10]\nr",
            Expected::Value(json!("read_file:")),
        ),
        (
            "def f():\n    return 1 / 0\nf()",
            Error("python_error", "line 2, in f\n    return 1 / 0"),
        ),
        ("x = = 1", Error("python_error", "SyntaxError")),
        ("import os\nos._exit(3)", Error("exited", "exit code 3")),
        ("run_code(code='1')", Error("python_error", "NameError")),
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 9))",
            Error("python_error", "Error"),
        ),
        (
            "for i in range(300):\n    try: echo('x')\n    except Exception: pass",
            Error("python_error", "more than 200 tool calls"),
        ),
    ] {
        expected.check(code, &run(&mut bench, code, 60));
    }
    let result = run(
        &mut bench,
        "print('\\0\\0\\0\\2{}')\nimport sys\nprint('hey', file=sys.stderr)\nlen('ab')",
        60,
    );
    assert_eq!(
        result["structured_content"]["printed"], "\0\0\0\u{2}{}\nhey\n",
        "{result:#}"
    );
    assert_eq!(result["structured_content"]["value"], 2);
    assert!(result["sandbox"]["tier"].is_string(), "{result:#}");
}

#[test]
fn a_run_is_stopped_with_all_it_started() {
    let mut bench = Bench::new("bypass");
    let result = run(
        &mut bench,
        "print('begun', flush=True)\nwhile True: pass",
        2,
    );
    assert_eq!(
        (&result["outcome"], &result["content"][0]["text"]),
        (&json!("timed_out"), &json!("begun\n"))
    );
    let result = run(&mut bench, "while True: print('x' * 1000)", 2);
    assert_eq!(result["error"]["code"], "time_limit", "{result:#}");
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("more bytes were printed")
    );
}

#[test]
fn it_is_execution_to_whoever_decides() {
    let mut bench = Bench::new("default");
    let result = run(&mut bench, "1", 10);
    assert_eq!(result["error"]["class"], "approval_rejected", "{result:#}");
}

#[test]
fn a_protected_name_that_code_makes_is_told() {
    let mut bench = Bench::new("bypass");
    let made = run(&mut bench, "open('.envrc', 'w').close()", 30);
    let told = made["sandbox"]["protected_created"][0]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(told.ends_with("/.envrc"), "{made}");
    let next = run(&mut bench, "open('plain', 'w').close()", 30);
    assert!(next["sandbox"].get("protected_created").is_none(), "{next}");
}
