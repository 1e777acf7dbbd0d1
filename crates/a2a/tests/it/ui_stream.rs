//! Chunks of the AI SDK's UI message stream.

use serde_json::{Value, json};
use toolpost_a2a::ui_stream::{UiChunk, UiStream, UiVersion};
use toolpost_a2a::{ToolEvent, ToolEventError};

fn call() -> ToolEvent {
    ToolEvent::Call {
        tool_call_id: "c1".to_owned(),
        tool_name: "add".to_owned(),
        input: Some(json!({ "a": 2 })),
        started_at: Some("2026-11-15T19:29:16.292Z".to_owned()),
    }
}

fn result(input: Option<Value>) -> ToolEvent {
    ToolEvent::Result {
        tool_call_id: "c1".to_owned(),
        tool_name: "add".to_owned(),
        input,
        output: json!(null),
        duration_ms: Some(1),
    }
}

fn error() -> ToolEvent {
    ToolEvent::Error {
        tool_call_id: "c1".to_owned(),
        tool_name: "add".to_owned(),
        input: None,
        error: ToolEventError {
            message: "denied".to_owned(),
        },
        duration_ms: None,
    }
}

fn check(events: &[ToolEvent], expected: &Value) {
    let mut stream = UiStream::new();
    let chunks: Vec<UiChunk> = events
        .iter()
        .flat_map(|event| stream.chunks(event))
        .collect();
    assert_eq!(&serde_json::to_value(chunks).unwrap(), expected);
}

#[test]
fn a_call_and_its_end() {
    let begins = json!({ "type": "tool-input-available", "toolCallId": "c1", "toolName": "add",
        "input": { "a": 2 }, "dynamic": true });
    let ends = json!({ "type": "tool-output-available", "toolCallId": "c1", "output": null, "dynamic": true });
    let fails = json!({ "type": "tool-output-error", "toolCallId": "c1", "errorText": "denied", "dynamic": true });
    check(&[call(), result(None)], &json!([begins, ends]));
    check(&[call(), error()], &json!([begins, fails]));
    check(&[result(Some(json!({ "a": 2 })))], &json!([begins, ends]));
}

#[test]
fn an_end_with_other_arguments_brings_them_before_it() {
    let begins = |input: Value| json!({ "type": "tool-input-available", "toolCallId": "c1", "toolName": "add", "input": input, "dynamic": true });
    let ends = json!({ "type": "tool-output-available", "toolCallId": "c1", "output": null, "dynamic": true });
    let sent = json!({ "a": 2 });
    let executed = json!({ "a": 3 });
    check(
        &[call(), result(Some(sent.clone()))],
        &json!([begins(sent.clone()), ends]),
    );
    check(
        &[call(), result(Some(executed.clone()))],
        &json!([begins(sent), begins(executed), ends]),
    );
}

#[test]
fn an_end_alone_brings_its_call_with_it() {
    let begins = json!({ "type": "tool-input-available", "toolCallId": "c1", "toolName": "add",
        "input": {}, "dynamic": true });
    let fails = json!({ "type": "tool-output-error", "toolCallId": "c1", "errorText": "denied", "dynamic": true });
    check(&[error()], &json!([begins, fails]));
}

#[test]
fn the_edges_of_a_message() {
    let edges = [UiStream::start("m1"), UiChunk::Finish];
    assert_eq!(
        serde_json::to_value(edges).unwrap(),
        json!([{ "type": "start", "messageId": "m1" }, { "type": "finish" }])
    );
}

#[test]
fn approvals_are_told_in_the_words_that_a_version_knows() {
    let told = |version: UiVersion| {
        let mut stream = UiStream::of_version(version);
        let mut chunks = stream.chunks(&call());
        chunks.extend(stream.approval_requested("c1", "q1"));
        chunks.extend(stream.approval_answered("q1", false, Some("not today")));
        chunks.extend(stream.denied(&error()));
        serde_json::to_value(chunks).unwrap()
    };
    let begins = json!({ "type": "tool-input-available", "toolCallId": "c1", "toolName": "add",
        "input": { "a": 2 }, "dynamic": true });
    let fails = json!({ "type": "tool-output-error", "toolCallId": "c1", "errorText": "denied", "dynamic": true });
    let asks = json!({ "type": "tool-approval-request", "approvalId": "q1", "toolCallId": "c1" });
    let answers = json!({ "type": "tool-approval-response", "approvalId": "q1", "approved": false, "reason": "not today" });
    let denied = json!({ "type": "tool-output-denied", "toolCallId": "c1" });
    assert_eq!(told(UiVersion::V5), json!([begins, fails]));
    assert_eq!(told(UiVersion::V6), json!([begins, asks, denied]));
    assert_eq!(told(UiVersion::V7), json!([begins, asks, answers, denied]));
    // An end alone brings its call with it here too.
    let alone = serde_json::to_value(UiStream::of_version(UiVersion::V7).denied(&error())).unwrap();
    assert_eq!(
        (&alone[0]["type"], &alone[1]),
        (&json!("tool-input-available"), &denied)
    );
}
