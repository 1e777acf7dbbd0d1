//! Other vocabularies, sent on in the canonical one.

use serde_json::{Value, json};
use toolpost_a2a::VocabularyBridge;

use super::parts;

fn bridged(lines: &str) -> Vec<Value> {
    let mut bridge = VocabularyBridge::default();
    let mut sent = Vec::new();
    for line in lines.lines().map(str::trim) {
        let send =
            |part: toolpost_a2a::DataPart<'_>| sent.push(serde_json::to_value(part).unwrap());
        bridge.receive_line(line, send).unwrap();
    }
    bridge.finish(|part| sent.push(serde_json::to_value(part).unwrap()));
    assert!(sent.iter().all(|part| part["kind"] == "data"), "{sent:?}");
    sent.into_iter()
        .map(|mut part| part["data"].take())
        .collect()
}

#[test]
fn a_call_and_then_one_end() {
    let lines = r#"b:{"toolCallId":"c1","toolName":"weather"}
                   c:{"toolCallId":"c1","argsTextDelta":"{}"}
                   9:{"toolCallId":"c1","toolName":"weather","args":{"city":"Bonn"}}
                   a:{"toolCallId":"c1","result":7}
                   a:{"toolCallId":"c1","result":7}"#;
    assert_eq!(
        bridged(lines),
        [
            json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": { "city": "Bonn" } }),
            json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "weather", "input": { "city": "Bonn" }, "output": 7 }),
        ]
    );
}

#[test]
fn a_failure_a_refusal_and_what_never_ended() {
    let lines = r#"{"type":"tool-input-available","toolCallId":"a","toolName":"t","input":1}
                   {"type":"tool-output-error","toolCallId":"a","errorText":"no"}
                   {"type":"tool-output-denied","toolCallId":"b"}
                   {"type":"tool-input-start","toolCallId":"c","toolName":"t"}
                   {"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{\"x"}"#;
    assert_eq!(
        bridged(lines),
        [
            json!({ "type": "tool-call", "toolCallId": "a", "toolName": "t", "input": 1 }),
            json!({ "type": "tool-error", "toolCallId": "a", "toolName": "t", "input": 1, "error": { "message": "no" } }),
            json!({ "type": "tool-error", "toolCallId": "b", "error": { "message": "Tool call denied" } }),
            json!({ "type": "tool-call", "toolCallId": "c", "toolName": "t", "input": "{\"x" }),
        ]
    );
}

#[test]
fn of_several_ends_the_first_is_sent_on() {
    let lines = r#"{"type":"tool-error","toolCallId":"z","toolName":"w","error":"no"}
                   {"type":"tool-result","toolCallId":"z","output":5}"#;
    let end = json!({ "type": "tool-error", "toolCallId": "z", "toolName": "w", "error": { "message": "no" } });
    assert_eq!(bridged(lines), [end]);
}

#[test]
fn arguments_in_pieces_are_a_call_when_its_end_comes() {
    let lines = r#"{"type":"tool-input-start","toolCallId":"d","toolName":"t"}
                   {"type":"tool-input-delta","toolCallId":"d","inputTextDelta":"{\"x\":"}
                   {"type":"tool-input-delta","toolCallId":"d","inputTextDelta":"1}"}
                   {"type":"tool-output-error","toolCallId":"d","errorText":"no"}"#;
    assert_eq!(
        bridged(lines),
        [
            json!({ "type": "tool-call", "toolCallId": "d", "toolName": "t", "input": { "x": 1 } }),
            json!({ "type": "tool-error", "toolCallId": "d", "toolName": "t", "input": { "x": 1 }, "error": { "message": "no" } }),
        ]
    );
}

#[test]
fn a_call_after_its_result_is_sent_on() {
    let lines = r#"{"type":"tool-result","toolCallId":"a","output":1}
                   {"type":"tool-call","toolCallId":"a","toolName":"t","input":2}"#;
    assert_eq!(
        bridged(lines),
        [
            json!({ "type": "tool-result", "toolCallId": "a", "output": 1 }),
            json!({ "type": "tool-call", "toolCallId": "a", "toolName": "t", "input": 2 }),
        ]
    );
}

#[test]
fn what_was_sent_on_gives_the_same_parts() {
    let lines = r#"{"type":"tool-input-start","toolCallId":"a","toolName":"t"}
                   {"type":"tool-input-delta","toolCallId":"a","inputTextDelta":"{\"n\":1}"}
                   {"type":"tool-call","toolCallId":"call_0","toolName":"u","input":{"n":1},"startedAt":"2026-05-05T10:00:00Z"}
                   {"type":"tool-result","toolCallId":"call_0","output":{"ok":true},"durationMs":3.0}
                   {"type":"tool-output-available","toolCallId":"a","output":null}
                   {"type":"tool-call","toolCallId":"call_0","toolName":"u","input":{"n":2}}
                   {"type":"tool-result","toolCallId":"late","output":[]}
                   {"type":"tool-error","toolCallId":"call_0","error":"no"}
                   {"type":"tool-call","toolCallId":"late","toolName":"v","input":{}}
                   {"type":"tool-call","toolCallId":"open","toolName":"w","input":"text"}"#;
    let sent: Vec<String> = bridged(lines).iter().map(Value::to_string).collect();
    let mut before = parts(lines).as_array().unwrap().clone();
    let mut after = parts(&sent.join("\n")).as_array().unwrap().clone();
    // A call that was only announced before is sent on when it ends.
    before.sort_by_key(Value::to_string);
    after.sort_by_key(Value::to_string);
    assert_eq!(after, before);
}
