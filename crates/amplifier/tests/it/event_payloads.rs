//! Events: what their payloads say.

use serde_json::{Value, json};
use toolpost_amplifier::{
    LoadFailure, LoadReason, ModuleId, ModuleKind, ToolResult,
    events::{self, ApprovalStep, CallFacts},
};

fn with_facts<T>(tell: impl FnOnce(&CallFacts<'_>) -> T) -> T {
    let input = json!({"path": "a"});
    tell(&CallFacts {
        tool_name: "read_file",
        tool_input: &input,
        tool_call_id: "call-1",
        parallel_group_id: Some("turn-1"),
        session_id: "s",
        parent_id: None,
        timestamp: "2026-01-02T03:04:05Z".parse().unwrap(),
    })
}

fn base() -> Value {
    json!({
        "tool_name": "read_file", "tool_call_id": "call-1", "parallel_group_id": "turn-1",
        "session_id": "s", "parent_id": null, "timestamp": "2026-01-02T03:04:05Z",
    })
}

/// The common fields, and these.
fn and(fields: &Value) -> Value {
    let mut all = base();
    all.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    all
}

#[test]
fn the_events_around_a_call() {
    assert_eq!(
        with_facts(events::tool_pre),
        and(&json!({"tool_input": {"path": "a"}}))
    );
    let post = with_facts(|facts| events::tool_post(facts, 12, &ToolResult::success("x")));
    let result = json!({"success": true, "output": "x", "error": null});
    assert_eq!(
        post,
        and(&json!({"tool_input": {"path": "a"}, "duration_ms": 12, "result": result}))
    );
    let failed =
        ToolResult::parse(r#"{"success": false, "error": {"message": "m", "type": "OSError"}}"#)
            .unwrap();
    let error = with_facts(|facts| events::tool_error(facts, 3, &failed));
    assert_eq!(
        error["error"],
        json!({"type": "OSError", "msg": "m", "message": "m"})
    );
    assert_eq!(
        (
            error["duration_ms"].clone(),
            error["result"]["success"].clone()
        ),
        (json!(3), json!(false))
    );
    let bare = ToolResult::parse(r#"{"success": false}"#).unwrap();
    let error = with_facts(|facts| events::tool_error(facts, 3, &bare));
    assert_eq!(
        error["error"],
        json!({"type": "ToolError", "msg": "Failed", "message": "Failed"})
    );
}

#[test]
fn what_else_happens_to_a_call() {
    let told = with_facts(|facts| events::approval(facts, "may it?"));
    assert_eq!(told, and(&json!({"prompt": "may it?"})));
    let names = [
        ApprovalStep::Required,
        ApprovalStep::Granted,
        ApprovalStep::Denied,
    ]
    .map(ApprovalStep::event);
    assert_eq!(
        names,
        ["approval:required", "approval:granted", "approval:denied"]
    );
    let told = with_facts(|facts| events::artifact(facts, "/w/a", Some(7)));
    assert_eq!(told, and(&json!({"path": "/w/a", "bytes": 7})));
    let told = with_facts(|facts| events::policy_violation(facts, "permission_denied", "a rule"));
    assert_eq!(
        told,
        and(&json!({"violation": "permission_denied", "reason": "a rule"}))
    );
    let told = with_facts(|facts| events::cancel_requested(facts, "asked"));
    assert_eq!(told, and(&json!({"state": "immediate", "reason": "asked"})));
    let told = with_facts(|facts| events::cancel_completed(facts, 9));
    assert_eq!(told, and(&json!({"was_immediate": true, "duration_ms": 9})));
}

#[test]
fn a_module_that_is_not_there() {
    let failure = LoadFailure {
        module: ModuleId::new("tool-x"),
        kind: ModuleKind::Tool,
        origin: Some("./x".to_owned()),
        reason: LoadReason::MissingSource,
        message: "no such folder".to_owned(),
    };
    let expected = json!({
        "module_type": "tool", "module_id": "tool-x", "error": "no such folder",
        "reason_code": "missing_source", "source": "./x",
    });
    assert_eq!(events::module_load_failed(&failure), expected);
}
