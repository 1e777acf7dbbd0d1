//! The line protocol of AI SDK 4.

use serde_json::{Value, json};
use toolpost_a2a::{Receiver, UnreadableEventText, V4Code, V4Line};

use super::{flying, with};

#[track_caller]
fn check(lines: &str, expected: &Value) {
    let mut receiver = Receiver::default();
    for line in lines.lines() {
        receiver.receive_v4(line.trim()).unwrap();
    }
    assert_eq!(
        serde_json::to_value(receiver.into_parts()).unwrap(),
        *expected,
        "of {lines}"
    );
}

#[test]
fn a_recorded_stream() {
    check(
        r#"f:{"messageId":"m"}
           0:"let me see"
           b:{"toolCallId":"c1","toolName":"weather"}
           c:{"toolCallId":"c1","argsTextDelta":"{\"city\":"}
           c:{"toolCallId":"c1","argsTextDelta":"\"Bonn\"}"}
           9:{"toolCallId":"c1","toolName":"weather","args":{"city":"Bonn"}}
           a:{"toolCallId":"c1","result":{"degrees":7}}
           e:{"finishReason":"tool-calls","usage":{}}
           9:{"toolCallId":"c2","toolName":"rain","args":{}}
           a:{"toolCallId":"c2"}
           d:{"finishReason":"stop"}"#,
        &json!([
            with(
                flying("c1", "weather", json!({ "city": "Bonn" })),
                json!({ "result": { "degrees": 7 } })
            ),
            with(flying("c2", "rain", json!({})), json!({ "result": null })),
        ]),
    );
}

#[test]
fn an_error_ends_the_one_open_call_that_it_names() {
    let one = r#"9:{"toolCallId":"c1","toolName":"weather","args":{}}"#;
    let two = r#"9:{"toolCallId":"c2","toolName":"rain","args":{}}"#;
    let open = flying("c1", "weather", json!({}));
    for text in ["Error executing tool weather: no", "call c1 failed"] {
        check(
            &format!("{one}\n3:\"{text}\""),
            &json!([with(open.clone(), json!({ "error": { "message": text } }))]),
        );
        check(
            &format!("{one}\n{two}\n3:\"{text}\""),
            &json!([open, flying("c2", "rain", json!({}))]),
        );
    }
    check(&format!("{one}\n3:\"An error occurred.\""), &json!([open]));
    check("3:\"nothing is open\"", &json!([]));
}

#[test]
fn what_is_no_such_line_is_refused_and_changes_nothing() {
    let mut receiver = Receiver::default();
    for line in [
        "",
        "9",
        "z:{}",
        "9:{",
        "0:text",
        "3:{}",
        "tool:{}",
        r#"{"type":"tool-call"}"#,
        "a:",
    ] {
        assert!(receiver.receive_v4(line).is_err(), "{line}");
    }
    assert_eq!(receiver.held(), 0);
    assert_eq!(
        V4Line::read("9:{}").unwrap(),
        V4Line {
            code: V4Code::Call,
            json: "{}"
        }
    );
}

#[test]
fn lines_and_json_are_told_apart() {
    let mut receiver = Receiver::default();
    for line in [
        r#"9:{"toolCallId":"c1","toolName":"weather","args":{}}"#,
        r#"{"type":"tool-call","toolCallId":"c2","toolName":"rain","input":{}}"#,
        r#"0:"text""#,
        r#"a:{"toolCallId":"c1","result":7}"#,
    ] {
        receiver.receive_line(line).unwrap();
    }
    assert_eq!(
        serde_json::to_value(receiver.into_parts()).unwrap(),
        json!([
            with(flying("c1", "weather", json!({})), json!({ "result": 7 })),
            flying("c2", "rain", json!({})),
        ]),
    );
    let mut receiver = Receiver::default();
    for line in ["z:{}", "hello: you", "99:{}", "0:text", "9:{"] {
        let error = receiver.receive_line(line).unwrap_err();
        assert!(
            matches!(error, UnreadableEventText::Json(_)),
            "{line}: {error}"
        );
    }
    assert_eq!(receiver.held(), 0);
}
