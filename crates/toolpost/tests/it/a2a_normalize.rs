//! `toolpost a2a normalize`, as a person pipes a recording into it.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::home::Home;

const RECORDING: &str = r#"
: an SSE comment, and a stream of A2A 1.0 after it
data: {"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T","status":{"state":"TASK_STATE_SUBMITTED"},"history":[{"messageId":"u","role":"ROLE_USER","parts":[{"data":{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2.0}}}]}]}}}

data: {"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"T","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"1","role":"ROLE_AGENT","parts":[{"data":{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2.0}}}]}}}}}
{"type":"tool-call","toolName":"nobody knows which"}
{"kind":"data","data":{"type":"tool-call","toolCallId":"c1","toolName":"elsewhere","input":{"z":1,"a":9007199254740993}}}
{"broken":
data: {"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"T","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"2","role":"ROLE_AGENT","parts":[{"data":{"type":"tool-result","toolCallId":"c1","durationMs":1.0,"output":{"sum":5}}}]}}}}}
data: [DONE]
"#;

#[test]
fn a_recording_becomes_one_array() {
    let home = Home::new();
    home.write("events.jsonl", RECORDING);
    home.check("a2a_normalize", &["a2a", "normalize", "events.jsonl"]);
    let fed = home.feed(&["a2a", "normalize"], RECORDING);
    let read = home.run(&["a2a", "normalize", "events.jsonl"]);
    assert_eq!(
        (fed.code, fed.stdout, fed.stderr),
        (read.code, read.stdout, read.stderr)
    );
}

#[test]
fn nothing_is_an_empty_array() {
    for input in ["", "\n\n", "{}\n"] {
        let ran = Home::new().feed(&["a2a", "normalize", "-"], input);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "[]\n", ""),
            "{input:?}"
        );
    }
}

#[test]
fn lines_of_ai_sdk_4() {
    let lines = "0:\"hm\"\n9:{\"toolCallId\":\"c1\",\"toolName\":\"t\",\"args\":{}}\nnot one\na:{\"toolCallId\":\"c1\"}\n";
    let ran = Home::new().feed(&["a2a", "normalize"], lines);
    let parts: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        parts,
        json!([{ "kind": "tool_call", "id": "c1", "name": "t", "args": {}, "result": null }])
    );
    assert_eq!(
        ran.stderr,
        "warning: line 3 is left out: this is not JSON: expected ident at column 2\n"
    );
    assert_eq!(ran.code, 0);
}

#[test]
fn parts_go_out_before_the_stream_ends() {
    let home = Home::new();
    let mut child = home
        .command(&["a2a", "normalize", "--as", "parts"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut answer = |line: &str| -> Value {
        writeln!(stdin, "{line}").unwrap();
        let mut part = String::new();
        stdout.read_line(&mut part).unwrap();
        serde_json::from_str(&part).unwrap()
    };
    let call = answer(
        r#"{"type":"tool-input-available","toolCallId":"c1","toolName":"t","input":{"n":1}}"#,
    );
    let data =
        json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "t", "input": { "n": 1 } });
    assert_eq!(call, json!({ "kind": "data", "data": data }));
    let end = answer(r#"{"type":"tool-output-error","toolCallId":"c1","errorText":"no"}"#);
    assert_eq!(
        (&end["data"]["type"], &end["data"]["error"]),
        (&json!("tool-error"), &json!({ "message": "no" }))
    );
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn parts_that_were_sent_on_normalize_to_the_same_calls() {
    let home = Home::new();
    let parts = home.feed(&["a2a", "normalize", "--as", "parts"], RECORDING);
    // One response stream after the other: an id means something only within its own.
    let of_task: String = parts
        .stdout
        .lines()
        .filter(|line| !line.contains("elsewhere"))
        .map(|line| format!("{line}\n"))
        .collect();
    let again = home.feed(&["a2a", "normalize"], &of_task);
    let (again, first): (Value, Value) = (
        serde_json::from_str(&again.stdout).unwrap(),
        serde_json::from_str(&home.feed(&["a2a", "normalize"], RECORDING).stdout).unwrap(),
    );
    assert_eq!(again[0], first[0]);
    assert_eq!(again.as_array().unwrap().len(), 1);
}

#[test]
fn sidecars_can_be_left_out() {
    let line = r#"{"role":"agent","parts":[{"text":"…","metadata":{"type":"tool-call","toolCallId":"c1","toolName":"t"}}]}"#;
    let home = Home::new();
    let with = home.feed(&["a2a", "normalize"], line);
    assert!(with.stdout.contains("\"id\":\"c1\""), "{}", with.stdout);
    assert_eq!(
        home.feed(&["a2a", "normalize", "--no-sidecars"], line)
            .stdout,
        "[]\n"
    );
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let long = format!(
        "{{\"x\":\"{}\"}}\n{{\"type\":\"tool-call\",\"toolCallId\":\"c1\"}}\n",
        "y".repeat(17 << 20)
    );
    let ran = Home::new().feed(&["a2a", "normalize"], &long);
    assert_eq!(
        ran.stderr,
        "warning: line 1 is left out: it is longer than 16 MiB\n"
    );
    assert!(ran.stdout.contains("\"id\":\"c1\""), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_opened() {
    let home = Home::new();
    for name in ["missing.jsonl", "."] {
        let ran = home.run(&["a2a", "normalize", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    }
}
