//! Garbage from the host: counted, and never in anybody's way.

use serde_json::json;
use toolpost_a2e::{CallError, CallOptions, ConnectOptions, HostNotice, ListOptions, ToolApi};

use crate::peer::Peer;

fn call() -> CallOptions {
    CallOptions::new("t", json!({})).streaming()
}

#[tokio::test]
async fn garbage_is_counted() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    for unreadable in [
        "data: hello\n\n",
        "data: [1]\n\n",
        "data: {\"type\":3}\n\n",
        "data: \u{1}\n\n",
    ] {
        events.write(unreadable).await;
    }
    events.write(b"data: \xff\xfe\n\n".to_vec()).await;
    // An event that cannot be read does not end the call.
    events
        .say(&json!({ "type": "tool/event", "req_id": sent["id"], "seq": -3 }))
        .await;
    // For nobody.
    events
        .say(&json!({ "type": "pong", "req_id": "0123456789abcdef0123456789abcdef" }))
        .await;
    events
        .say(&json!({ "type": "pong", "req_id": "of somebody else" }))
        .await;
    events.write(": alive\r\n\r\nretry: 1\r\n\r\n").await;
    events.result(&sent, json!(1)).await;
    assert!(call.unwrap().result().await.unwrap().success);
    let counters = api.client().counters();
    assert_eq!((counters.unreadable, counters.unexpected), (6, 2));
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_call_at_once() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    let data = json!({ "success": true, "tool_name": "t", "duration_ms": 1.5 });
    events
        .say(&json!({ "type": "tool/call/resp", "req_id": sent["id"], "data": data }))
        .await;
    match call.unwrap().result().await.unwrap_err() {
        CallError::Malformed { reason } => assert!(reason.contains("duration_ms"), "{reason}"),
        other => panic!("{other:?}"),
    }
    let host = async {
        let list = peer.message("tool/list/req").await;
        let tools = json!([{ "name": "t" }]);
        events
            .say(&json!({ "type": "tool/list/resp", "req_id": list["id"], "tools": tools }))
            .await;
    };
    let (list, ()) = tokio::join!(async { api.list(&ListOptions::all()).await }, host);
    assert!(matches!(list.unwrap_err(), CallError::Malformed { .. }));
}

#[tokio::test]
async fn a_huge_answer_is_not_read() {
    let options = ConnectOptions::new("tester").message_limit(10_000);
    let (mut peer, client, events) = Peer::with_options(options).await;
    let api = ToolApi::new(&client);
    let (call, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    // As hosts write it: names first.
    let id = sent["id"].as_str().unwrap();
    let huge = format!(
        "data: {{\"type\":\"tool/call/resp\",\"req_id\":\"{id}\",\"data\":\"{}",
        "x".repeat(200_000)
    );
    events.write(huge).await;
    events.write("\"}\n\n").await;
    let error = call.unwrap().result().await.unwrap_err();
    assert!(matches!(error, CallError::Malformed { .. }), "{error:?}");
    let (call, sent) = tokio::join!(api.start(self::call()), peer.message("tool/call/req"));
    events.result(&sent, json!("x".repeat(5_000))).await;
    assert!(call.unwrap().result().await.unwrap().success);
}

#[tokio::test]
async fn what_nobody_asked_for_is_a_notice() {
    let (_peer, client, events) = Peer::with_client().await;
    let mut notices = client.notices();
    events
        .say(&json!({ "type": "tool/list/changed", "id": "1" }))
        .await;
    events
        .say(&json!({ "type": "error", "code": "parse_error", "message": "what?" }))
        .await;
    events
        .say(&json!({ "type": "mcp/server/push", "server": "x" }))
        .await;
    assert!(matches!(
        notices.next().await,
        Some(HostNotice::ToolListChanged)
    ));
    assert!(
        matches!(notices.next().await, Some(HostNotice::HostError(error)) if error.message == "what?")
    );
    assert!(
        matches!(notices.next().await, Some(HostNotice::Push(message)) if message.body.kind() == "mcp/server/push")
    );
    drop(client);
    // The connection's own task may still be ending; then there is nobody left to say anything.
    assert!(notices.next().await.is_none());
}
