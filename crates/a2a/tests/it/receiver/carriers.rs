//! Where events are found, in both dialects, and which response stream they belong to.

use serde_json::{Value, json};
use toolpost_a2a::{CANONICAL_URI, DEPRECATED_URI, ReceiverOptions};

use super::{check, flying, parts, parts_with, with};

const CALL: &str = r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{}}"#;

fn called() -> Value {
    json!([flying("c1", "t", json!({}))])
}

#[test]
fn a_call_is_found_in_every_carrier() {
    let part = format!(r#"{{"kind":"data","data":{CALL}}}"#);
    let bare_part = format!(r#"{{"data":{CALL},"mediaType":"application/json"}}"#);
    let message =
        format!(r#"{{"kind":"message","messageId":"m","role":"agent","parts":[{part}]}}"#);
    let new_message =
        format!(r#"{{"messageId":"m","role":"ROLE_AGENT","parts":[{{"text":"…"}},{bare_part}]}}"#);
    let status = format!(
        r#"{{"kind":"status-update","taskId":"T","final":false,"status":{{"state":"working","message":{message}}}}}"#
    );
    let new_status = format!(
        r#"{{"statusUpdate":{{"taskId":"T","status":{{"state":"TASK_STATE_WORKING","message":{new_message}}}}}}}"#
    );
    let artifact = format!(
        r#"{{"kind":"artifact-update","taskId":"T","artifact":{{"artifactId":"a","parts":[{part}]}}}}"#
    );
    let new_artifact = format!(
        r#"{{"artifactUpdate":{{"taskId":"T","artifact":{{"artifactId":"a","parts":[{bare_part}]}}}}}}"#
    );
    let task = format!(
        r#"{{"kind":"task","id":"T","status":{{"state":"completed"}},"history":[{message}]}}"#
    );
    let new_task = format!(
        r#"{{"task":{{"id":"T","status":{{"state":"TASK_STATE_WORKING","message":{new_message}}}}}}}"#
    );
    let task_with_artifact = format!(r#"{{"id":"T","artifacts":[{{"parts":[{bare_part}]}}]}}"#);
    let listed = format!(r#"{{"tasks":[{{"id":"T","history":[{new_message}]}}],"totalSize":1}}"#);
    let new_item = format!(r#"{{"message":{new_message}}}"#);
    let all = [
        CALL.to_owned(),
        format!("[{CALL}]"),
        part,
        bare_part,
        message,
        new_message,
        status,
        new_status,
        artifact,
        new_artifact,
        task,
        new_task,
        task_with_artifact,
        listed,
        new_item,
    ];
    for carrier in all {
        check(&carrier, called());
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{carrier}}}"#),
            called(),
        );
        check(
            &format!(r#"{{"result":{carrier},"id":"q1","jsonrpc":"2.0"}}"#),
            called(),
        );
    }
}

#[test]
fn answers_that_hold_no_result_hold_no_event() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task"}}"#,
        json!([]),
    );
    check(
        &format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"role":"user","parts":[{{"data":{CALL}}}]}}}}}}"#
        ),
        json!([]),
    );
    check(&format!(r#"{{"data":[{CALL}]}}"#), json!([]));
    check(&format!(r#"{{"parts":{{"data":{CALL}}}}}"#), json!([]));
}

#[test]
fn only_the_agent_tells_news() {
    let message = |role: &str| format!(r#"{{"messageId":"m",{role}"parts":[{{"data":{CALL}}}]}}"#);
    for role in [
        "",
        r#""role":"agent","#,
        r#""role":"ROLE_AGENT","#,
        r#""role":null,"#,
    ] {
        check(&message(role), called());
    }
    for role in [
        r#""role":"user","#,
        r#""role":"ROLE_USER","#,
        r#""role":"assistant","#,
    ] {
        check(&message(role), json!([]));
        check(
            &format!(r#"{{"id":"T","history":[{}]}}"#, message(role)),
            json!([]),
        );
    }
}

#[test]
fn a_blocking_answer_tells_the_whole_call_once() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T","contextId":"C",
        "status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-11-15T19:29:16.292807Z"},
        "artifacts":[{"artifactId":"r","parts":[{"data":{"type":"tool-result","toolCallId":"c1","toolName":"add","output":{"sum":5.0}}}]}],
        "history":[
          {"messageId":"u","role":"ROLE_USER","parts":[{"data":{"toolCallId":"c1","input":{"b":3.0,"a":2.0},"type":"tool-call","toolName":"sub"}}]},
          {"messageId":"1","role":"ROLE_AGENT","parts":[{"data":{"toolCallId":"c1","input":{"b":3.0,"a":2.0},"type":"tool-call","toolName":"add"}}]},
          {"messageId":"2","role":"ROLE_AGENT","parts":[{"data":{"durationMs":1.0,"output":{"sum":5.0},"toolCallId":"c1","toolName":"add","type":"tool-result"}}],"extensions":["https://mentionable.dev/ns/a2a-tool-events/v0.1"]}
        ]}}}"#;
    let line = line.replace('\n', " ");
    check(
        &line,
        json!([with(
            flying("c1", "add", json!({ "a": 2.0, "b": 3.0 })),
            json!({ "result": { "sum": 5.0 }, "duration_ms": 1 })
        )]),
    );
}

#[test]
fn a_stream_of_each_dialect() {
    let old = [
        r#"{"id":"q1","jsonrpc":"2.0","result":{"contextId":"C","kind":"task","id":"T","status":{"state":"submitted"},"history":[]}}"#,
        r#"{"id":"q1","jsonrpc":"2.0","result":{"contextId":"C","final":false,"kind":"status-update","taskId":"T","status":{"state":"working","message":{"kind":"message","messageId":"1","role":"agent","taskId":"T","parts":[{"kind":"data","data":{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2}}}]}}}}"#,
        r#"{"id":"q1","jsonrpc":"2.0","result":{"contextId":"C","final":false,"kind":"status-update","status":{"message":{"extensions":["https://mentionable.dev/ns/a2a-tool-events/v0.1"],"kind":"message","messageId":"2","parts":[{"data":{"type":"tool-result","toolCallId":"c1","output":{"sum":5},"durationMs":0},"kind":"data"}],"role":"agent","taskId":"T"},"state":"working","timestamp":"2026-11-15T19:29:16.765456+00:00"},"taskId":"T"}}"#,
        r#"{"id":"q1","jsonrpc":"2.0","result":{"final":true,"kind":"status-update","status":{"state":"completed"},"taskId":"T"}}"#,
    ];
    let new = [
        r#"{"task":{"id":"T","status":{"state":"TASK_STATE_SUBMITTED"}}}"#,
        r#"{"statusUpdate":{"taskId":"T","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"1","role":"ROLE_AGENT","parts":[{"data":{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2}}}]}}}}"#,
        r#"{"artifactUpdate":{"taskId":"T","artifact":{"artifactId":"x","parts":[{"data":{"type":"tool-result","toolCallId":"c1","output":{"sum":5},"durationMs":0.0}}]}}}"#,
    ];
    let expected = json!([with(
        flying("c1", "add", json!({ "a": 2 })),
        json!({ "result": { "sum": 5 }, "duration_ms": 0 })
    )]);
    check(&old.join("\n"), expected.clone());
    check(&new.join("\n"), expected);
}

#[test]
fn the_same_id_in_another_stream_is_another_call() {
    let task = |id: &str| {
        format!(
            r#"{{"statusUpdate":{{"taskId":"{id}","status":{{"message":{{"parts":[{{"data":{CALL}}}]}}}}}}}}"#
        )
    };
    let message =
        |id: &str| format!(r#"{{"message":{{"messageId":"{id}","parts":[{{"data":{CALL}}}]}}}}"#);
    let of_task = |id: &str| {
        format!(r#"{{"message":{{"messageId":"m","taskId":"{id}","parts":[{{"data":{CALL}}}]}}}}"#)
    };
    let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{CALL}}}"#);
    for (lines, count) in [
        (vec![task("A"), task("B"), task("A")], 2),
        (vec![message("A"), message("B"), message("A")], 2),
        (vec![task("A"), of_task("A"), of_task("B")], 2),
        (
            vec![answer("1"), answer("2"), answer("\"1\""), answer("1")],
            3,
        ),
        // A task, a message and a request may have the same name by chance.
        (
            vec![task("1"), message("1"), answer("1"), CALL.to_owned()],
            4,
        ),
    ] {
        assert_eq!(
            parts(&lines.join("\n")).as_array().unwrap().len(),
            count,
            "{lines:?}"
        );
    }
}

#[test]
fn sidecars_of_older_agents() {
    let event_list = format!(r#"[{CALL},{{"type":"tool-result","toolCallId":"c1","output":1}}]"#);
    let cases = [
        (CALL.to_owned(), called()),
        (format!(r#"{{"{CANONICAL_URI}":{CALL}}}"#), called()),
        (format!(r#"{{"{DEPRECATED_URI}":{CALL}}}"#), called()),
        (
            format!(r#"{{"{DEPRECATED_URI}":{event_list}}}"#),
            json!([with(flying("c1", "t", json!({})), json!({ "result": 1 }))]),
        ),
        (
            format!(r#"{{"https://mentionable.dev/ns/a2a-tool-events/v0.2":{CALL}}}"#),
            json!([]),
        ),
        (r#"{"note":1}"#.to_owned(), json!([])),
    ];
    for (metadata, expected) in cases {
        for kind in [r#""kind":"text","#, ""] {
            let line = format!(
                r#"{{"role":"agent","parts":[{{{kind}"text":"calling t","metadata":{metadata}}}]}}"#
            );
            check(&line, expected.clone());
            let without = ReceiverOptions {
                sidecars: false,
                ..ReceiverOptions::default()
            };
            assert_eq!(parts_with(without, &line), json!([]), "{line}");
        }
    }
    let elsewhere = format!(
        r#"{{"role":"agent","metadata":{CALL},"parts":[{{"kind":"file","metadata":{CALL}}}]}}"#
    );
    check(&elsewhere, json!([]));
}

#[test]
fn odd_shapes_around_an_event_do_no_harm() {
    let line = format!(
        r#"{{"task":7,"message":"hello","status":["x"],"history":{{}},"artifacts":null,"metadata":[1],"parts":[null,3,"x",[{{}}],{{"text":5}},{{"data":{CALL}}}]}}"#
    );
    check(&line, called());
}
