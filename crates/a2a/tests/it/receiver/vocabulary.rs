//! The same events in other people's words: the AI SDK from 4 to 7, and Google's ADK.

use serde_json::{Value, json};
use toolpost_a2a::{Receiver, ReceiverOptions};

use super::{check, flying, parts_with, with};

#[test]
fn a_ui_stream_of_ai_sdk_5() {
    check(
        r#"{"type":"start","messageId":"m"}
           {"type":"start-step"}
           {"type":"tool-input-start","toolCallId":"c1","toolName":"weather","dynamic":true}
           {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{\"city\":"}
           {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"\"Bonn\"}"}
           {"type":"tool-input-available","toolCallId":"c1","toolName":"weather","input":{"city":"Bonn"}}
           {"type":"tool-output-available","toolCallId":"c1","output":{"degrees":7}}
           {"type":"finish-step"}
           {"type":"finish"}"#,
        json!([with(
            flying("c1", "weather", json!({ "city": "Bonn" })),
            json!({ "result": { "degrees": 7 } })
        )]),
    );
}

#[test]
fn a_full_stream_of_ai_sdk_5_and_later() {
    check(
        r#"{"type":"tool-input-start","id":"c1","toolName":"weather"}
           {"type":"tool-input-delta","id":"c1","delta":"{\"city\":\"Bonn\"}"}
           {"type":"tool-input-end","id":"c1"}
           {"type":"tool-call","toolCallId":"c1","toolName":"weather","input":{"city":"Bonn"}}
           {"type":"tool-error","toolCallId":"c1","toolName":"weather","input":{"city":"Bonn"},"error":{}}"#,
        json!([with(
            flying("c1", "weather", json!({ "city": "Bonn" })),
            json!({ "error": { "message": "Tool execution failed" } })
        )]),
    );
}

#[test]
fn a_full_stream_of_ai_sdk_4() {
    check(
        r#"{"type":"tool-call-streaming-start","toolCallId":"c1","toolName":"weather"}
           {"type":"tool-call-delta","toolCallId":"c1","toolName":"weather","argsTextDelta":"{}"}
           {"type":"tool-call","toolCallId":"c1","toolName":"weather","args":{"city":"Bonn"}}
           {"type":"tool-result","toolCallId":"c1","toolName":"weather","args":{"city":"Bonn"},"result":7}"#,
        json!([with(
            flying("c1", "weather", json!({ "city": "Bonn" })),
            json!({ "result": 7 })
        )]),
    );
}

#[test]
fn pieces_of_input_are_shown_as_text_until_they_are_a_value() {
    let start = r#"{"type":"tool-input-start","toolCallId":"c1","toolName":"t"}"#;
    let delta = |text: &str| {
        json!({ "type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": text })
            .to_string()
    };
    let seen = |pieces: &[&str], args: Value| {
        let lines: Vec<String> = pieces.iter().map(|piece| delta(piece)).collect();
        check(
            &format!("{start}\n{}", lines.join("\n")),
            json!([flying("c1", "t", args)]),
        );
    };
    seen(&[], json!({}));
    seen(&[""], json!({}));
    seen(&["{\"a\""], json!("{\"a\""));
    seen(&["{\"a\"", ":1}"], json!({ "a": 1 }));
    seen(&[" [1,", "2]", " \n"], json!([1, 2]));
    seen(&["{\"a\":\"}", "\\\"", "]\"}"], json!({ "a": "}\"]" }));
    seen(&["{\"a\":1}", "x"], json!("{\"a\":1}x"));
    seen(&["{\"a\":1", "]"], json!("{\"a\":1]"));
    seen(&["12", "3"], json!("123"));
    seen(&["\"text\""], json!("\"text\""));
}

#[test]
fn a_whole_input_ends_the_pieces_and_a_new_start_clears_them() {
    let start = r#"{"type":"tool-input-start","toolCallId":"c1","toolName":"t"}"#;
    let piece = r#"{"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{\"a\":"}"#;
    let whole =
        r#"{"type":"tool-input-available","toolCallId":"c1","toolName":"t","input":{"b":1}}"#;
    check(
        &[start, piece, whole, piece].join("\n"),
        json!([flying("c1", "t", json!({ "b": 1 }))]),
    );
    check(
        &[start, piece, start].join("\n"),
        json!([flying("c1", "t", json!({}))]),
    );
    check(
        &[start, piece, start, piece].join("\n"),
        json!([flying("c1", "t", json!("{\"a\":"))]),
    );
    let snapshot = r#"{"type":"tool-call-delta","toolCallId":"c1","input":{"so":"far"}}"#;
    check(
        &[start, piece, snapshot].join("\n"),
        json!([flying("c1", "t", json!({ "so": "far" }))]),
    );
    let in_input = r#"{"type":"tool-input-delta","toolCallId":"c1","input":"[1"}"#;
    check(
        &[start, in_input].join("\n"),
        json!([flying("c1", "t", json!("[1"))]),
    );
}

#[test]
fn plain_text_is_never_parsed() {
    check(
        r#"{"type":"tool-input-start","toolCallId":"c1","toolName":"t","inputEncoding":"text"}
           {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{}"}"#,
        json!([flying("c1", "t", json!("{}"))]),
    );
}

#[test]
fn a_pair_cut_between_two_pieces_is_joined() {
    check(
        r#"{"type":"tool-input-start","toolCallId":"c1","toolName":"t"}
           {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"[\"\\\\ \u00fc \ud83d"}
           {"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"\ude00\"]"}"#,
        json!([flying("c1", "t", json!(["\\ \u{fc} \u{1f600}"]))]),
    );
}

#[test]
fn input_that_does_not_fit_the_tool() {
    let both = r#"{"type":"tool-input-error","toolCallId":"c1","toolName":"t","input":{"x":1},"errorText":"bad input"}
                  {"type":"tool-output-error","toolCallId":"c1","errorText":"bad input"}"#;
    let expected = json!([with(
        flying("c1", "t", json!({ "x": 1 })),
        json!({ "error": { "message": "bad input" } })
    )]);
    check(both, expected.clone());
    check(both.lines().next().unwrap(), expected);
}

#[test]
fn an_invalid_call_stays_open_until_its_error() {
    check(
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":"x","invalid":true,"error":"bad"}"#,
        json!([flying("c1", "t", json!("x"))]),
    );
}

#[test]
fn a_result_that_is_an_error() {
    check(
        r#"{"type":"tool-result","toolCallId":"c1","toolName":"t","result":"boom","isError":true}"#,
        json!([with(
            flying("c1", "t", json!({})),
            json!({ "error": { "message": "boom" } })
        )]),
    );
}

#[test]
fn a_refused_call_says_why() {
    let call = r#"{"type":"tool-input-available","toolCallId":"c1","toolName":"rm","input":{}}"#;
    let ask = r#"{"type":"tool-approval-request","approvalId":"a1","toolCallId":"c1"}"#;
    let refuse = r#"{"type":"tool-approval-response","approvalId":"a1","approved":false,"reason":"too risky"}"#;
    let allow =
        r#"{"type":"tool-approval-response","approvalId":"a1","approved":true,"reason":"fine"}"#;
    let denied = r#"{"type":"tool-output-denied","toolCallId":"c1"}"#;
    let part = flying("c1", "rm", json!({}));
    check(&[call, ask].join("\n"), json!([part]));
    check(&[call, ask, refuse].join("\n"), json!([part]));
    check(
        &[call, ask, refuse, denied].join("\n"),
        json!([with(
            part.clone(),
            json!({ "error": { "message": "Tool call denied: too risky" } })
        )]),
    );
    for lines in [vec![call, denied], vec![call, ask, allow, denied]] {
        check(
            &lines.join("\n"),
            json!([with(
                part.clone(),
                json!({ "error": { "message": "Tool call denied" } })
            )]),
        );
    }
    check(
        denied,
        json!([with(
            flying("c1", "unknown", json!({})),
            json!({ "error": { "message": "Tool call denied" } })
        )]),
    );
}

#[test]
fn approvals_that_hold_the_call_itself() {
    check(
        r#"{"type":"tool-approval-request","approvalId":"a1","toolCall":{"type":"tool-call","toolCallId":"c1","toolName":"rm","input":{"p":1}}}
           {"type":"tool-approval-response","approvalId":"a1","approved":false,"reason":"no","toolCall":{"toolCallId":"c1","toolName":"rm","input":{"p":1}}}
           {"type":"tool-output-denied","toolCallId":"c1","toolName":"rm"}"#,
        json!([with(
            flying("c1", "rm", json!({ "p": 1 })),
            json!({ "error": { "message": "Tool call denied: no" } })
        )]),
    );
}

#[test]
fn an_answer_to_no_question_begins_nothing() {
    check(
        r#"{"type":"tool-approval-response","approvalId":"a1","approved":true}"#,
        json!([]),
    );
    check(r#"{"type":"tool-input-end","id":"c1"}"#, json!([]));
}

#[test]
fn a_step_that_is_taken_back_supersedes_its_open_calls() {
    check(
        r#"{"type":"tool-call","toolCallId":"before","toolName":"t"}
           {"type":"start-step"}
           {"type":"tool-call","toolCallId":"done","toolName":"t"}
           {"type":"tool-result","toolCallId":"done","output":1}
           {"type":"tool-call","toolCallId":"open","toolName":"t"}
           {"type":"reset-step"}
           {"type":"tool-call","toolCallId":"after","toolName":"t"}"#,
        json!([
            flying("before", "t", json!({})),
            with(flying("done", "t", json!({})), json!({ "result": 1 })),
            with(
                flying("open", "t", json!({})),
                json!({ "error": { "message": "superseded" } })
            ),
            flying("after", "t", json!({})),
        ]),
    );
}

#[test]
fn parts_of_google_adk() {
    let lines = r#"{"kind":"data","data":{"id":"adk-1","name":"roll","args":{"sides":6}},"metadata":{"adk_type":"function_call"}}
                   {"data":{"id":"adk-1","name":"roll","response":{"result":4}},"metadata":{"adk_type":"function_response"}}
                   {"data":{"id":"adk-2","name":"roll","args":{}},"metadata":{"adk_type":"code_execution_result"}}
                   {"data":{"id":"adk-3","name":"roll","args":{}}}"#;
    let part = with(
        flying("adk-1", "roll", json!({ "sides": 6 })),
        json!({ "result": { "result": 4 } }),
    );
    check(lines, json!([part]));
    let without = ReceiverOptions {
        adk_parts: false,
        ..ReceiverOptions::default()
    };
    assert_eq!(parts_with(without, lines), json!([]));
}

#[test]
fn stored_messages_are_not_events() {
    let mut receiver = Receiver::default();
    let stored = json!({ "type": "tool-weather", "toolCallId": "c1", "state": "output-available", "output": 1 });
    assert_eq!(receiver.receive_value(&stored), []);
    assert_eq!(receiver.tally().events, 0);
}
