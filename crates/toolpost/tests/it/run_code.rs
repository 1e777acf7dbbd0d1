//! `run_code` through the real binary: the code runs in a worker process that the host starts from itself.

mod bombs;
mod confinement;
mod inner_calls;
mod python3;

use serde_json::{Value, json};

use super::{home::Home, http::Http, served::Served};

/// A host with a workspace, and a connection to it.
struct Bench {
    home: Home,
    served: Served,
    http: Http,
}

impl Bench {
    fn new(mode: &str) -> Self {
        let home = Home::new();
        for (name, text) in [("a.txt", "first\n"), ("b.txt", "second\nline\n")] {
            home.write(name, text);
        }
        // Nobody is there to answer. What the tool itself gives is looked at, not what is shown of it.
        let config = home.workspace().with_file_name("run-code.yaml");
        std::fs::write(
            &config,
            "approvals: { timeout: 20ms }\nlimits: { inline_chars: 400000 }\n",
        )
        .unwrap();
        let served = Served::start(
            &home,
            &["--mode", mode, "--config", config.to_str().unwrap()],
        );
        let http = served.connect(&home);
        Self { home, served, http }
    }

    /// Runs code and gives the whole result.
    fn run(&mut self, code: &str) -> Value {
        self.run_with(code, json!({}))
    }

    fn run_with(&mut self, code: &str, mut arguments: Value) -> Value {
        arguments["code"] = code.into();
        self.http
            .post("/tools/run_code/call", &arguments.to_string())
            .unwrap()
            .json()
    }

    #[track_caller]
    fn check(&mut self, code: &str, expected: &Expected) {
        let result = self.run(code);
        expected.check(code, &result);
    }
}

/// How a run should end.
enum Expected {
    /// With this value.
    Value(Value),
    /// With a value that JSON cannot say and Python shows like this.
    Shown(&'static str),
    /// With an error of this code whose message ends so.
    Error(&'static str, &'static str),
}

impl Expected {
    #[track_caller]
    fn check(&self, code: &str, result: &Value) {
        let code: String = code.chars().take(200).collect();
        let structured = &result["structured_content"];
        match self {
            Self::Value(value) => assert_eq!(structured["value"], *value, "{code}\n{result:#}"),
            Self::Shown(text) => {
                assert!(structured.get("value").is_none(), "{code}\n{result:#}");
                assert_eq!(structured["repr"], *text, "{code}\n{result:#}");
            }
            Self::Error(kind, end) => {
                let error = &result["error"];
                let message = error["message"].as_str().unwrap_or_default();
                assert!(
                    error["code"] == *kind && message.contains(end),
                    "{code}\n{result:#}"
                );
            }
        }
    }
}

#[test]
fn a_run_gives_the_value_of_its_last_line() {
    use Expected::{Error, Shown, Value};
    let mut bench = Bench::new("default");
    for (code, expected) in [
        ("1 + 1", Value(json!(2))),
        ("x = 1", Value(json!(null))),
        (
            "{'a': [1, (2, 3)], 5: None}",
            Value(json!({ "a": [1, [2, 3]], "5": null })),
        ),
        (
            "class Point:\n    def __init__(self):\n        self.x = 1\nPoint()",
            Value(json!({ "x": 1 })),
        ),
        (
            "18446744073709551615",
            Value(json!(18_446_744_073_709_551_615_u64)),
        ),
        ("float('nan')", Shown("nan")),
        ("[1e999]", Shown("[inf]")),
        ("10 ** 30", Shown("1000000000000000000000000000000")),
        ("{(1, 2): 3}", Shown("{(1, 2): 3}")),
        ("b'ab'", Shown("b'ab'")),
        (
            "def f():\n    return 1 / 0\n\nf()",
            Error("python_error", "ZeroDivisionError: division by zero"),
        ),
        ("x = = 1", Error("python_error", "SyntaxError")),
        (
            "import subprocess",
            Error("python_error", "ModuleNotFoundError"),
        ),
    ] {
        bench.check(code, &expected);
    }
    let result = bench.run("print('one')\nprint('two', 2)\nraise ValueError('no')");
    assert_eq!(result["content"][0]["text"], "one\ntwo 2\n");
    assert_eq!(result["error"]["details"]["line"], 3);
    assert_eq!(result["error"]["retry"]["safe"], true, "nothing was called");
    let result = bench.run_with(
        "sum(numbers) + len(name)",
        json!({ "inputs": { "numbers": [1, 2], "name": "ab" } }),
    );
    assert_eq!(result["content"][0]["text"], "=> 5");
}

#[test]
fn nothing_is_left_of_a_run_for_the_next() {
    let mut bench = Bench::new("default");
    assert_eq!(
        bench.run("leak = 1\nleak")["structured_content"]["value"],
        1
    );
    bench.check(
        "leak",
        &Expected::Error("python_error", "NameError: name 'leak' is not defined"),
    );
}

#[test]
fn arguments_that_cannot_work_are_refused_before_anything_runs() {
    let mut bench = Bench::new("default");
    for (arguments, part) in [
        (json!({ "code": " " }), "the code is empty"),
        (
            json!({ "code": "1", "inputs": { "a b": 1 } }),
            "cannot be the name of a variable",
        ),
        (
            json!({ "code": "1", "inputs": { "class": 1 } }),
            "cannot be the name of a variable",
        ),
        (
            json!({ "code": "1", "timeout_seconds": 0 }),
            "timeout_seconds",
        ),
        (json!({ "code": "1", "language": "ruby" }), "language"),
        (
            json!({ "code": "1", "tools": ["no_such_tool"] }),
            "`no_such_tool` is not a tool that code may call",
        ),
        (json!({ "code": "x".repeat(300 << 10) }), "the limit is"),
    ] {
        let answer = bench
            .http
            .post("/tools/run_code/call", &arguments.to_string())
            .unwrap()
            .json();
        assert_eq!(answer["error"]["class"], "invalid_arguments", "{answer:#}");
        assert!(
            answer["error"]["message"].to_string().contains(part),
            "{answer:#}"
        );
    }
}
