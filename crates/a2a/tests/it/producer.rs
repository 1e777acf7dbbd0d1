//! The host's calls as tool events.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolpost_a2a::producer::{LARGEST_EVENT, ToolCallEnd, ToolCallStart, took};
use toolpost_model::ToolResult;

const CALL: &str = "01a1e178-8bea-76ab-b7f3-8ce1209dbf75";

/// A result with these members beside the ones it needs.
fn result(members: &Value) -> ToolResult {
    let mut result = json!({
        "invocation_id": CALL, "outcome": "succeeded", "disposition": "inline", "is_error": false, "content": [],
        "timings": { "total_us": 1, "queued_us": 0, "execute_us": 1 },
    });
    result
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    serde_json::from_value(result).unwrap()
}

fn failure(outcome: &str, class: &str, message: &str, hint: Option<&str>) -> ToolResult {
    let retry = json!({ "safe": false, "change_arguments": false, "discover_first": false, "needs_approval": false });
    let error = json!({ "class": class, "code": class, "message": message, "hint": hint, "recoverability": "never",
        "retry": retry });
    result(
        &json!({ "outcome": outcome, "disposition": "synthetic", "is_error": true, "error": error }),
    )
}

fn ended(result: &ToolResult) -> Value {
    let input = json!({ "a": 2 });
    let duration = Some(Duration::from_micros(12_999));
    let ended = ToolCallEnd {
        tool_call_id: "c1",
        tool_name: "add",
        input: Some(&input),
        result,
        duration,
    };
    serde_json::to_value(ended.event()).unwrap()
}

#[test]
fn a_call_says_when_it_began() {
    let at: Timestamp = "2026-11-15T19:29:16.292807Z".parse().unwrap();
    let begun = ToolCallStart {
        tool_call_id: "c1",
        tool_name: "add",
        input: Some(&json!({ "a": 2 })),
        at,
    };
    assert_eq!(
        serde_json::to_value(begun.event()).unwrap(),
        json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "add", "input": { "a": 2 },
            "startedAt": "2026-11-15T19:29:16.292Z" })
    );
}

#[test]
fn nobody_knows_how_long_a_call_took_whose_host_went_away() {
    let coded = |outcome: &str, class: &str, code: &str| {
        let mut result = failure(outcome, class, "so", None);
        if let Some(error) = &mut result.error {
            error.code = code.to_owned().into();
        }
        result
    };
    assert_eq!(took(&coded("unknown", "outcome_unknown", "restart")), None);
    assert_eq!(took(&coded("canceled", "canceled", "restart")), None);
    let known = Some(Duration::from_micros(1));
    assert_eq!(took(&coded("canceled", "canceled", "canceled")), known);
    assert_eq!(
        took(&coded("failed", "execution_failed", "restart")),
        known,
        "a tool's own code"
    );
    assert_eq!(took(&result(&json!({}))), known);
    let ended = ToolCallEnd {
        tool_call_id: "c1",
        tool_name: "add",
        input: None,
        result: &coded("unknown", "outcome_unknown", "restart"),
        duration: None,
    };
    let told = serde_json::to_value(ended.event()).unwrap();
    assert_eq!(told.get("durationMs"), None, "{told}");
}

#[test]
fn a_success_is_its_value_or_its_text() {
    let check = |members: Value, output: Value| {
        assert_eq!(
            ended(&result(&members)),
            json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "add", "input": { "a": 2 },
                "output": output, "durationMs": 12 })
        );
    };
    let text = |text: &str| json!({ "type": "text", "text": text });
    check(json!({ "content": [text("a"), text("b")] }), json!("a\nb"));
    check(
        json!({ "structured_content": { "sum": 5 } }),
        json!({ "sum": 5 }),
    );
    check(
        json!({ "content": [text("{ \"sum\": 5 }")], "structured_content": { "sum": 5 } }),
        json!({ "sum": 5 }),
    );
    check(
        json!({ "content": [text("hello")], "structured_content": { "exit_code": 0 } }),
        json!({ "text": "hello", "structured": { "exit_code": 0 } }),
    );
    check(json!({ "disposition": "empty" }), json!(null));
    check(json!({}), json!(null));
    let image = json!({ "type": "image", "data": "AA==", "media_type": "image/png" });
    check(
        json!({ "content": [text("a"), image] }),
        json!({ "text": "a", "content": [text("a"), image] }),
    );
    check(
        json!({ "outcome": "partial", "content": [text("a")] }),
        json!({ "text": "a", "remarks": ["partial: only part of the work was done"] }),
    );
}

#[test]
fn what_is_kept_is_named() {
    let id = "art_01a1e1788bea76abb7f38ce1209dbf75_1";
    let kept = json!({ "id": id, "name": "result", "media_type": "text/plain", "size": 9000,
        "digest": format!("sha256:{}", "0".repeat(64)), "role": "result" });
    let preview = result(
        &json!({ "disposition": "preview", "content": [{ "type": "text", "text": "head" }],
        "artifacts": [kept], "truncated": { "shown": 4, "total": 9000, "unit": "bytes", "artifact": id } }),
    );
    let output = &ended(&preview)["output"];
    assert_eq!(output["text"], "head");
    assert_eq!(
        output["artifacts"],
        json!([{ "id": id, "name": "result", "mediaType": "text/plain", "size": 9000 }])
    );
    assert_eq!(output["remarks"][0], "4 of 9000 bytes shown");
}

#[test]
fn everything_else_is_an_error_that_a_person_understands() {
    let check = |result: &ToolResult, message: &str| {
        assert_eq!(
            ended(result),
            json!({ "type": "tool-error", "toolCallId": "c1", "toolName": "add", "input": { "a": 2 },
                "error": { "message": message }, "durationMs": 12 })
        );
    };
    let denied = failure(
        "denied",
        "permission_denied",
        "`add` was denied: rule 3 of the workspace",
        None,
    );
    check(&denied, "`add` was denied: rule 3 of the workspace");
    let late = failure(
        "timed_out",
        "timeout",
        "the call was stopped at its deadline of 5 ms",
        Some("ask for less"),
    );
    check(
        &late,
        "the call was stopped at its deadline of 5 ms\nhint: ask for less",
    );
    let said = "`push` was denied: the rule `push(in main)` (toolpost.yaml:3)";
    let same = "the rule `push(in main)` in toolpost.yaml:3 decides this";
    check(
        &failure("denied", "permission_denied", said, Some(same)),
        said,
    );
    let other = "the rule `push` in other.yaml:3 decides this";
    check(
        &failure("denied", "permission_denied", said, Some(other)),
        &format!("{said}\nhint: {other}"),
    );
    check(
        &failure("unknown", "outcome_unknown", "", None),
        "the end of the call is unknown; the call may or may not have taken effect",
    );
    check(
        &result(&json!({ "outcome": "canceled", "is_error": true })),
        "the call was canceled",
    );
    let mut printed = failure("failed", "execution_failed", "exit code 3", None);
    printed.content = vec![toolpost_model::ResultContent::text("no such file")];
    check(&printed, "exit code 3\nno such file");
    printed.content = vec![toolpost_model::ResultContent::text("exit code 3\n")];
    check(&printed, "exit code 3");
}

#[test]
fn what_is_too_large_leaves_a_record() {
    let large = "é".repeat(LARGEST_EVENT);
    let output = ended(&result(
        &json!({ "content": [{ "type": "text", "text": large }] }),
    ))["output"]
        .clone();
    assert_eq!(
        (&output["truncated"], &output["bytes"]),
        (&json!(true), &json!(2 * LARGEST_EVENT + 2))
    );
    let preview = output["preview"].as_str().unwrap();
    assert!(
        preview.starts_with("\"éé") && preview.len() > 2_000,
        "{} bytes",
        preview.len()
    );
    assert_eq!(output.get("artifact"), None);

    let id = "art_01a1e1788bea76abb7f38ce1209dbf75_2";
    let cut = json!({ "shown": 4, "unit": "bytes", "artifact": id });
    let kept = result(&json!({ "structured_content": large, "truncated": cut }));
    assert_eq!(ended(&kept)["output"]["artifact"], id);

    let input = json!({ "text": large });
    let begun = ToolCallStart {
        tool_call_id: "c1",
        tool_name: "add",
        input: Some(&input),
        at: Timestamp::UNIX_EPOCH,
    };
    assert_eq!(
        serde_json::to_value(begun.event()).unwrap()["input"]["truncated"],
        true
    );
    // Large arguments are not told twice.
    let ended = ToolCallEnd {
        tool_call_id: "c1",
        tool_name: "add",
        input: Some(&input),
        result: &result(&json!({})),
        duration: Some(Duration::ZERO),
    };
    assert_eq!(
        serde_json::to_value(ended.event()).unwrap().get("input"),
        None
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_event_is_larger_than_it_may_be(character in any::<char>(), length in 0..400_000_usize, hint in any::<bool>()) {
        let text: String = std::iter::repeat_n(character, length / character.len_utf8()).collect();
        let input = json!({ "text": text });
        let begun = ToolCallStart { tool_call_id: "c1", tool_name: "add", input: Some(&input), at: Timestamp::UNIX_EPOCH };
        let mut failed = failure("failed", "execution_failed", &text, hint.then_some(text.as_str()));
        failed.content = vec![toolpost_model::ResultContent::text(text.clone())];
        let succeeded = result(&json!({ "content": [{ "type": "text", "text": text }] }));
        let end = |result| {
            let duration = Some(Duration::MAX);
            ToolCallEnd { tool_call_id: "c1", tool_name: "add", input: Some(&input), result, duration }.event()
        };
        for event in [begun.event(), end(&failed), end(&succeeded)] {
            prop_assert!(serde_json::to_string(&event).unwrap().len() <= LARGEST_EVENT);
        }
    }
}
