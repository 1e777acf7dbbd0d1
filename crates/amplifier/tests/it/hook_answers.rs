//! What handlers answer, and what it means for a call.

use serde_json::{Value, json};
use toolpost_amplifier::{
    ApprovalDefault, HookAction, HookDemands, HookResult, ToolResult, events,
};

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn the_defaults_are_the_models() {
    let expected = r#"{"action":"continue","data":null,"reason":null,"context_injection":null,"context_injection_role":"system","ephemeral":false,"approval_prompt":null,"approval_options":null,"approval_timeout":300.0,"approval_default":"deny","suppress_output":false,"user_message":null,"user_message_level":"info","user_message_source":null,"append_to_last_tool_result":false,"context_injections":[]}"#;
    assert_eq!(
        serde_json::to_string(&HookResult::proceed()).unwrap(),
        expected
    );
    assert_eq!(
        HookResult::read(&serde_json::from_str(expected).unwrap()).unwrap(),
        HookResult::proceed()
    );
}

#[test]
fn nothing_means_go_on_and_nonsense_does_not() {
    assert_eq!(HookResult::read(&Value::Null), Ok(HookResult::proceed()));
    assert_eq!(
        HookResult::read(&json!({"unknown": 3})),
        Ok(HookResult::proceed())
    );
    for odd in [
        json!("continue"),
        json!([]),
        json!(true),
        json!({"action": "bogus"}),
        json!({"action": 5}),
        json!({"data": "s"}),
        json!({"reason": 5}),
        json!({"context_injection_role": "bad"}),
        json!({"user_message_level": "x"}),
        json!({"approval_default": "maybe"}),
        json!({"approval_options": "a"}),
        json!({"approval_options": [1]}),
        json!({"approval_timeout": "soon"}),
        json!({"ephemeral": "perhaps"}),
        json!({"context_injections": [{"role": "system"}]}),
    ] {
        assert!(HookResult::read(&odd).is_err(), "{odd}");
    }
}

#[test]
fn lax_values_are_read_as_the_models_read_them() {
    let read = HookResult::read(&json!({
        "action": "ask_user", "approval_timeout": "5", "ephemeral": "yes", "approval_default": "allow",
        "context_injections": [{"content": "a"}],
    }));
    let read = read.unwrap();
    assert_eq!(
        (read.action, read.approval_timeout, read.ephemeral),
        (HookAction::AskUser, 5.0, true)
    );
    assert_eq!(read.approval_default, ApprovalDefault::Allow);
    assert_eq!(read.context_injections[0].hook_name, "unknown");
    assert_eq!(read.approval().unwrap().options, ["Allow", "Deny"]);
}

#[test]
fn a_change_is_what_differs_from_what_was_sent() {
    let sent = json!({"tool_name": "t", "tool_input": {"a": 1}});
    let wants = |data: Value| {
        HookResult::modify(object(&data))
            .wants(events::TOOL_PRE, &sent)
            .unwrap()
    };
    assert_eq!(
        wants(json!({"tool_input": {"a": 1}})),
        HookDemands::default()
    );
    assert_eq!(
        wants(json!({"tool_name": "other"})),
        HookDemands::default(),
        "only the input can be changed"
    );
    assert_eq!(
        wants(json!({"tool_input": {"a": 2}})).tool_input,
        Some(object(&json!({"a": 2})))
    );
    // The whole data come back from Amplifier's own registry, with the action `continue`.
    let whole = HookResult {
        data: Some(object(&json!({"tool_name": "t", "tool_input": {}}))),
        ..HookResult::proceed()
    };
    assert_eq!(
        whole.wants(events::TOOL_PRE, &sent).unwrap().tool_input,
        Some(object(&json!({})))
    );
    let odd = HookResult::modify(object(&json!({"tool_input": "rm"})));
    assert!(odd.wants(events::TOOL_PRE, &sent).is_err());
    let empty = HookResult {
        action: HookAction::Modify,
        ..HookResult::proceed()
    };
    assert!(empty.wants(events::TOOL_PRE, &sent).is_err());
}

#[test]
fn a_result_is_changed_whole_or_by_its_output() {
    let sent = json!({"result": {"success": true, "output": "secret", "error": null}});
    let wants = |result: Value| {
        let answer = HookResult::modify(object(&json!({"result": result})));
        answer.wants(events::TOOL_POST, &sent).unwrap().result
    };
    assert_eq!(wants(sent["result"].clone()), None);
    assert_eq!(wants(json!("hidden")), Some(ToolResult::success("hidden")));
    assert_eq!(
        wants(json!({"rows": 3})),
        Some(ToolResult::success(json!({"rows": 3})))
    );
    let failed = json!({"success": false, "output": null, "error": {"message": "no"}});
    assert_eq!(wants(failed).unwrap().text_for_model(), "no");
    let odd = HookResult::modify(object(&json!({"result": {"success": "maybe"}})));
    assert!(odd.wants(events::TOOL_POST, &sent).is_err());
}

#[test]
fn questions_words_and_changes_come_together_and_a_no_comes_alone() {
    let sent = json!({"tool_input": {"a": 1}});
    let mut answer = HookResult::ask_user("really?")
        .because("it is large")
        .with_message("look");
    answer.context_injection = Some("mind the gap".to_owned());
    answer.data = Some(object(&json!({"tool_input": {"a": 2}})));
    let wants = answer.wants(events::TOOL_PRE, &sent).unwrap();
    assert_eq!(wants.ask.unwrap().prompt, "really?");
    assert_eq!(wants.tool_input, Some(object(&json!({"a": 2}))));
    assert_eq!(
        (wants.context, wants.message.as_deref()),
        (vec!["mind the gap".to_owned()], Some("look"))
    );
    let denied = HookResult {
        action: HookAction::Deny,
        ..answer
    };
    let wants = denied.wants(events::TOOL_PRE, &sent).unwrap();
    assert_eq!(
        (wants.stop.as_deref(), wants.tool_input, wants.ask),
        (Some("it is large"), None, None)
    );
    let silent = HookResult {
        reason: None,
        ..denied
    };
    assert_eq!(
        silent
            .wants(events::TOOL_PRE, &sent)
            .unwrap()
            .stop
            .as_deref(),
        Some("it gave no reason")
    );
}
