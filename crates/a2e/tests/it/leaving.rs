//! Calls that are stopped or dropped, and clients that leave.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_a2e::{CallError, CallOptions, Client, ConnectOptions, HostTransport, ToolApi};

use crate::peer::Peer;

fn call() -> CallOptions {
    CallOptions::new("t", json!({}))
}

fn canceled(call: &Value) -> Value {
    let data = json!({ "success": false, "tool_name": "t", "duration_ms": 1, "error": "stopped", "error_code": "canceled" });
    json!({ "type": "tool/call/resp", "req_id": call["id"], "data": data })
}

#[tokio::test]
async fn a_call_that_is_stopped_has_a_result() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    let call = call.unwrap();
    let host = async {
        let cancel = peer.message("tool/cancel/req").await;
        assert_eq!(cancel["call_id"], sent["id"]);
        events.say(&json!({ "type": "tool/cancel/resp", "req_id": cancel["id"], "call_id": sent["id"], "ok": true })).await;
        events.say(&canceled(&sent)).await;
    };
    let (stopped, ()) = tokio::join!(call.cancel(), host);
    assert_eq!(stopped, Ok(true));
    assert_eq!(
        call.result().await.unwrap().error_code.as_deref(),
        Some("canceled")
    );
}

#[tokio::test]
async fn a_host_that_cannot_cancel_is_not_asked() {
    let mut peer = Peer::start().await;
    let connect = Client::connect(
        HostTransport::http(&peer.url),
        ConnectOptions::new("tester"),
    );
    let (client, events) = tokio::join!(connect, peer.answer_handshake("s1", json!({})));
    let api = ToolApi::new(&client.unwrap());
    let (call, _) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    let call = call.unwrap();
    assert_eq!(call.cancel().await, Ok(false));
    drop(call);
    answer_ping(&mut peer, &api, &events).await;
}

/// The very next message is a ping, so nothing else was sent.
async fn answer_ping(peer: &mut Peer, api: &ToolApi, events: &crate::peer::Events) {
    let host = async {
        let ping = peer.message("ping").await;
        events
            .say(&json!({ "type": "pong", "req_id": ping["id"] }))
            .await;
    };
    let (pong, ()) = tokio::join!(api.client().ping(), host);
    pong.unwrap();
}

#[tokio::test]
async fn a_dropped_call_is_canceled() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (dropped, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    // Only when the confirmation has been seen is the call known to be with the host.
    answer_ping(&mut peer, &api, &events).await;
    drop(dropped.unwrap());
    assert_eq!(peer.message("tool/cancel/req").await["call_id"], sent["id"]);
    events.say(&canceled(&sent)).await;
    answer_ping(&mut peer, &api, &events).await;
}

#[tokio::test]
async fn a_call_dropped_on_its_way_is_canceled_once_it_has_arrived() {
    let (mut peer, api, _events) = Peer::with_api().await;
    let dropped = api.start(call()).await.unwrap();
    let request = peer.next("POST /send").await;
    drop(dropped);
    let sent = request.message();
    request.confirm();
    assert_eq!(peer.message("tool/cancel/req").await["call_id"], sent["id"]);
}

#[tokio::test]
async fn a_detached_call_goes_on() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (detached, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    detached.unwrap().detach();
    answer_ping(&mut peer, &api, &events).await;
    events.result(&sent, json!(1)).await;
    answer_ping(&mut peer, &api, &events).await;
}

#[tokio::test]
async fn a_call_that_ended_is_not_canceled() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (ended, sent) = tokio::join!(api.start(call().streaming()), peer.message("tool/call/req"));
    let mut ended = ended.unwrap();
    events.result(&sent, json!(1)).await;
    assert_eq!(ended.next_event().await, None);
    assert_eq!(ended.cancel().await, Ok(false));
    drop(ended);
    answer_ping(&mut peer, &api, &events).await;
}

#[tokio::test]
async fn closing_lets_calls_end_and_takes_no_new_ones() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (running, sent) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    let client = api.client().clone();
    let closing = tokio::spawn(async move { client.close_within(Duration::from_secs(7)).await });
    assert_eq!(peer.message("shutdown").await["timeout"], 7);
    assert_eq!(
        api.call("t", json!({})).await.unwrap_err(),
        CallError::Closed
    );
    assert!(!closing.is_finished());
    events.result(&sent, json!("late")).await;
    closing.await.unwrap();
    assert_eq!(
        running.unwrap().result().await.unwrap().data,
        Some(json!("late"))
    );
    assert!(!api.client().is_open());
    // Again is no harm.
    api.client().close().await;
}

#[tokio::test]
async fn closing_ends_when_the_host_has_forgotten_the_session() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (running, _) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    let client = api.client().clone();
    let closing = tokio::spawn(async move { client.close().await });
    peer.message("shutdown").await;
    drop(events);
    peer.next("GET /stream").await.answer(404, "{}");
    closing.await.unwrap();
    assert_eq!(
        running.unwrap().result().await.unwrap_err(),
        CallError::SessionLost
    );
}

#[tokio::test]
async fn a_dropped_client_takes_leave() {
    let (mut peer, api, _events) = Peer::with_api().await;
    drop(api);
    assert_eq!(peer.message("shutdown").await["timeout"], 0);
}
