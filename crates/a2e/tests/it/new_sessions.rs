//! A host that has forgotten the session.

use serde_json::json;
use toolpost_a2e::{CallError, CallOptions, HostNotice, ListOptions};

use crate::peer::Peer;

fn call() -> CallOptions {
    CallOptions::new("t", json!({}))
}

#[tokio::test]
async fn what_was_taken_is_lost_and_what_was_not_is_sent_anew() {
    let (mut peer, api, _events) = Peer::with_api().await;
    let mut notices = api.client().notices();
    let (taken, _) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    let waiting = api.start(call()).await.unwrap();
    let request = peer.next("POST /send").await;
    let first_try = request.message();
    request.answer(404, r#"{"detail":"Session not found"}"#);
    let events = peer.let_in("s2").await;
    let lost = taken.unwrap().result().await.unwrap_err();
    assert_eq!(lost, CallError::SessionLost);
    assert!(lost.outcome_is_unknown());

    let request = peer.next("POST /send").await;
    assert_eq!(
        (request.session.as_deref(), request.message()),
        (Some("s2"), first_try.clone())
    );
    request.confirm();
    events.result(&first_try, json!("second session")).await;
    assert_eq!(
        waiting.result().await.unwrap().data,
        Some(json!("second session"))
    );
    assert!(matches!(notices.next().await, Some(HostNotice::NewSession)));
    assert_eq!(api.client().welcome().session_id, "s2");
}

#[tokio::test]
async fn the_stream_tells_too() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (taken, _) = tokio::join!(api.start(call()), peer.message("tool/call/req"));
    drop(events);
    peer.next("GET /stream").await.answer(404, "{}");
    assert_eq!(
        taken.unwrap().result().await.unwrap_err(),
        CallError::SessionLost
    );
    // A host that is starting: the client tries again.
    peer.next("POST /session").await.answer(503, "{}");
    peer.next("POST /session").await.hang_up();
    let events = peer.let_in("s2").await;
    let host = async {
        let call = peer.message("tool/call/req").await;
        events.result(&call, json!(1)).await;
    };
    let (called, ()) = tokio::join!(api.call("t", json!({})), host);
    assert!(called.unwrap().success);
}

#[tokio::test]
async fn what_may_have_been_taken_is_not_sent_to_a_new_session() {
    let (mut peer, api, _events) = Peer::with_api().await;
    let call = api.start(call()).await.unwrap();
    // It arrived, and the confirmation did not.
    peer.next("POST /send").await.hang_up();
    peer.next("POST /send").await.answer(404, "{}");
    let _events = peer.let_in("s2").await;
    assert_eq!(call.result().await.unwrap_err(), CallError::SessionLost);
}

#[tokio::test]
async fn a_new_session_may_be_refused() {
    let (mut peer, api, _first) = Peer::with_api().await;
    let waiting = api.start(call()).await.unwrap();
    peer.next("POST /send").await.answer(404, "{}");
    let _events = peer
        .answer_handshake("s2", json!({ "ok": false, "reason": "auth_failed" }))
        .await;
    let refused = CallError::Refused {
        reason: "auth_failed".to_owned(),
    };
    assert_eq!(waiting.result().await.unwrap_err(), refused);
    assert_eq!(api.call("t", json!({})).await.unwrap_err(), refused);
    assert!(!api.client().is_open());
}

#[tokio::test]
async fn lists_are_fetched_anew() {
    let (mut peer, api, events) = Peer::with_api().await;
    let mut notices = api.client().notices();
    let all = ListOptions::all();
    let host = async {
        let request = peer.message("tool/list/req").await;
        events
            .say(&json!({ "type": "tool/list/resp", "req_id": request["id"], "tools": [] }))
            .await;
    };
    let (tools, ()) = tokio::join!(api.list(&all), host);
    assert!(tools.unwrap().is_empty());
    drop(events);
    peer.next("GET /stream").await.answer(404, "{}");
    let events = peer.let_in("s2").await;
    assert!(matches!(notices.next().await, Some(HostNotice::NewSession)));
    let host = async {
        let request = peer.message("tool/list/req").await;
        let tools = json!([{ "name": "t", "description": "" }]);
        events
            .say(&json!({ "type": "tool/list/resp", "req_id": request["id"], "tools": tools }))
            .await;
    };
    let (tools, ()) = tokio::join!(api.list(&all), host);
    assert_eq!(tools.unwrap().len(), 1);
}
