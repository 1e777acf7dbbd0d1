//! What peers ask for.

use serde_json::{Value, json};
use toolpost_a2a::wire::{
    A2aDialect, A2aMethod, A2aRefusal, ErrorCode, ListParams, SendParams, TaskParams, TaskState,
    activates,
};
use toolpost_a2a::{CANONICAL_URI, DEPRECATED_URI};

#[test]
fn the_header_decides_the_dialect_then_the_method() {
    let check = |version: Option<&str>, method: &str, expected: Option<A2aDialect>| {
        assert_eq!(
            A2aDialect::of_request(version, method).ok(),
            expected,
            "{version:?} {method}"
        );
    };
    check(None, "message/send", Some(A2aDialect::V0_3));
    check(None, "SendMessage", Some(A2aDialect::V1_0));
    check(Some(""), "SendMessage", Some(A2aDialect::V1_0));
    check(None, "tasks/unheard", Some(A2aDialect::V0_3));
    check(None, "Unheard", Some(A2aDialect::V1_0));
    check(None, "", Some(A2aDialect::V0_3));
    check(Some("0.3"), "SendMessage", Some(A2aDialect::V0_3));
    check(Some("0.3.0"), "message/send", Some(A2aDialect::V0_3));
    check(Some(" 1.0 "), "message/send", Some(A2aDialect::V1_0));
    for newer in ["1", "1.0", "1.0.1", "1.7"] {
        check(Some(newer), "m", Some(A2aDialect::V1_0));
    }
    for foreign in [
        "0.2", "0.30", "2.0", "10.0", "1.x", "1.", "v1.0", "1.0-beta", "0", ".",
    ] {
        check(Some(foreign), "m", None);
    }
    let refusal = A2aRefusal::from(A2aDialect::of_version("2.0").unwrap_err());
    assert_eq!(refusal.code, ErrorCode::VersionNotSupported);
    assert_eq!(
        refusal.message,
        "A2A version `2.0` is not supported; use 0.3 or 1.0"
    );
}

#[test]
fn every_method_has_its_names() {
    let check = |name: &str, expected| assert_eq!(A2aMethod::named(name), expected, "{name}");
    check("message/send", Some((A2aMethod::Send, A2aDialect::V0_3)));
    check("SendMessage", Some((A2aMethod::Send, A2aDialect::V1_0)));
    check(
        "message/stream",
        Some((A2aMethod::SendStreaming, A2aDialect::V0_3)),
    );
    check(
        "SendStreamingMessage",
        Some((A2aMethod::SendStreaming, A2aDialect::V1_0)),
    );
    check(
        "tasks/resubscribe",
        Some((A2aMethod::Subscribe, A2aDialect::V0_3)),
    );
    check(
        "SubscribeToTask",
        Some((A2aMethod::Subscribe, A2aDialect::V1_0)),
    );
    check("ListTasks", Some((A2aMethod::ListTasks, A2aDialect::V1_0)));
    check("tasks/list", None);
    check(
        "tasks/pushNotificationConfig/delete",
        Some((A2aMethod::PushConfig, A2aDialect::V0_3)),
    );
    check("sendmessage", None);
}

fn sending(configuration: &Value) -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "a" }] },
        "configuration": configuration })
}

#[test]
fn a_send_waits_unless_its_dialect_says_otherwise() {
    let check = |configuration: Value, older: bool, newer: bool| {
        let read = |dialect| {
            SendParams::read(&sending(&configuration), dialect)
                .unwrap()
                .blocking
        };
        assert_eq!(
            (read(A2aDialect::V0_3), read(A2aDialect::V1_0)),
            (older, newer),
            "{configuration}"
        );
    };
    check(json!(null), true, true);
    check(json!({}), true, true);
    check(json!({ "blocking": false }), false, true);
    check(json!({ "returnImmediately": true }), true, false);
}

#[test]
fn a_send_with_its_configuration() {
    let configuration =
        json!({ "historyLength": 3.0, "pushNotificationConfig": { "url": "https://example.com" } });
    let params = SendParams::read(&sending(&configuration), A2aDialect::V0_3).unwrap();
    assert_eq!((params.history_length, params.wants_push), (Some(3), true));
    let broken =
        SendParams::read(&sending(&json!({ "historyLength": -1 })), A2aDialect::V0_3).unwrap_err();
    let expected =
        "`params.configuration.historyLength` must be a whole number that is not negative";
    assert_eq!(broken.to_string(), expected);
    let refusal = A2aRefusal::from(SendParams::read(&json!({}), A2aDialect::V1_0).unwrap_err());
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (ErrorCode::InvalidParams, "`params.message` must be given")
    );
}

#[test]
fn a_task_is_named_by_its_id() {
    let id = |params: Value| {
        TaskParams::read(&params)
            .ok()
            .map(|params| (params.id, params.history_length))
    };
    assert_eq!(
        id(json!({ "id": "t", "historyLength": "2" })),
        Some(("t".to_owned(), Some(2)))
    );
    assert_eq!(
        id(json!({ "name": "tasks/t" })),
        Some(("t".to_owned(), None))
    );
    for none in [
        json!({}),
        json!({ "id": "" }),
        json!({ "id": 3 }),
        json!({ "name": "tasks/" }),
        json!(null),
    ] {
        assert_eq!(id(none), None);
    }
}

#[test]
fn a_list_with_its_conditions() {
    let read = |params: Value| ListParams::read(&params);
    let usual = read(json!(null)).unwrap();
    assert_eq!(
        (usual.page_size, usual.status, usual.include_artifacts),
        (50, None, false)
    );
    // As a query string has it.
    let asked = read(
        json!({ "pageSize": "7", "status": "TASK_STATE_WORKING", "includeArtifacts": "true" }),
    )
    .unwrap();
    assert_eq!(
        (asked.page_size, asked.status, asked.include_artifacts),
        (7, Some(TaskState::Working), true)
    );
    assert_eq!(
        read(json!({ "status": "TASK_STATE_UNSPECIFIED" })).unwrap(),
        usual
    );
    for broken in [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": "0" }),
        json!({ "pageSize": 101 }),
        json!({ "pageSize": -1 }),
        json!({ "status": "busy" }),
        json!([]),
    ] {
        assert!(read(broken.clone()).is_err(), "{broken}");
    }
}

#[test]
fn an_extension_is_wanted_by_either_of_its_names() {
    assert!(activates([CANONICAL_URI]));
    assert!(activates(["https://example.com/other", DEPRECATED_URI]));
    let list = format!("https://example.com/other ,  {CANONICAL_URI}");
    assert!(activates([list.as_str()]));
    let longer = format!("{CANONICAL_URI}/more");
    assert!(!activates([longer.as_str(), "", ","]));
    assert!(!activates([]));
}

#[test]
fn only_the_user_sends_and_says_something() {
    let check = |message: Value, expected: &str| {
        let read = SendParams::read(&json!({ "message": message }), A2aDialect::V1_0);
        assert_eq!(read.unwrap_err().to_string(), expected);
    };
    let parts = json!([{ "text": "a" }]);
    check(
        json!({ "messageId": "m", "parts": parts }),
        "`params.message.role` must be given: `user` in 0.3, `ROLE_USER` in 1.0",
    );
    check(
        json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": parts }),
        "`params.message.role` must be the user's: this host is the agent",
    );
    check(
        json!({ "messageId": "m", "role": "user", "parts": [] }),
        "`params.message.parts` must hold at least one part",
    );
}
