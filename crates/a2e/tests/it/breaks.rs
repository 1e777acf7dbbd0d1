//! Streams and POSTs that break, and calls that do not notice.

use serde_json::json;
use toolpost_a2e::{CallOptions, HostNotice};

use crate::peer::{Peer, result};

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_off() {
    let (mut peer, api, events) = Peer::with_api().await;
    let mut notices = api.client().notices();
    let options = CallOptions::new("t", json!({})).streaming();
    let (call, sent) = tokio::join!(api.start(options), peer.message("tool/call/req"));
    let mut call = call.unwrap();
    let event = json!({ "type": "tool/event", "req_id": sent["id"], "seq": 1 });
    events.say_as("7-1", &event).await;
    // Half an event is no event.
    events.write("id: 7-2\ndata: {\"type\":").await;
    assert!(call.next_event().await.is_some());
    drop(events);

    let again = peer.next("GET /stream").await;
    assert_eq!(
        (again.session.as_deref(), again.last_event_id.as_deref()),
        (Some("s1"), Some("7-1"))
    );
    let events = again.stream();
    // What has no answer is sent once more, under its id; the host knows it.
    assert_eq!(peer.message("tool/call/req").await, sent);
    events.say_as("7-2", &result(&sent, json!("once"))).await;
    events.say_as("7-3", &result(&sent, json!("twice"))).await;
    assert_eq!(call.result().await.unwrap().data, Some(json!("once")));
    assert!(matches!(
        notices.next().await,
        Some(HostNotice::Reconnected)
    ));

    // Answered calls are not.
    drop(events);
    let again = peer.next("GET /stream").await;
    assert_eq!(again.last_event_id.as_deref(), Some("7-3"));
    let events = again.stream();
    let host = async {
        let ping = peer.message("ping").await;
        events
            .say(&json!({ "type": "pong", "req_id": ping["id"] }))
            .await;
    };
    tokio::join!(host, async { api.client().ping().await.unwrap() });
    let counters = api.client().counters();
    assert_eq!((counters.reconnects, counters.unexpected), (2, 1));
}

#[tokio::test]
async fn a_stream_that_cannot_be_had_at_once() {
    let (mut peer, api, events) = Peer::with_api().await;
    drop(events);
    peer.next("GET /stream").await.answer(503, "");
    peer.next("GET /stream").await.hang_up();
    peer.next("GET /stream").await.answer(200, "not a stream");
    let events = peer.next("GET /stream").await.stream();
    let host = async {
        let call = peer.message("tool/call/req").await;
        events.result(&call, json!(1)).await;
    };
    let (called, ()) = tokio::join!(api.call("t", json!({})), host);
    assert!(called.unwrap().success);
}

#[tokio::test]
async fn a_post_is_repeated_as_it_was() {
    let (mut peer, api, events) = Peer::with_api().await;
    let host = async {
        let first = peer.next("POST /send").await;
        let text = first.body.clone();
        first.hang_up();
        let second = peer.next("POST /send").await;
        assert_eq!(second.body, text);
        second.answer(503, "{}");
        let third = peer.next("POST /send").await;
        assert_eq!(third.body, text);
        third.answer(429, "{}");
        let fourth = peer.next("POST /send").await;
        assert_eq!(
            (&fourth.body, fourth.session.as_deref()),
            (&text, Some("s1"))
        );
        let call = fourth.message();
        fourth.confirm();
        events.result(&call, json!("at last")).await;
    };
    let (called, ()) = tokio::join!(api.call("t", json!({})), host);
    assert_eq!(called.unwrap().data, Some(json!("at last")));
}

#[tokio::test]
async fn an_answer_ends_the_repeating() {
    let (mut peer, api, events) = Peer::with_api().await;
    let host = async {
        // The host has it, but could not say so.
        let first = peer.next("POST /send").await;
        let call = first.message();
        first.hang_up();
        events.result(&call, json!(1)).await;
    };
    let (called, ()) = tokio::join!(api.call("t", json!({})), host);
    assert!(called.unwrap().success);
    // At most one repeat may have been under way.
    let client = api.client().clone();
    let host = async {
        loop {
            let request = peer.next("POST /send").await;
            let message = request.message();
            request.confirm();
            if message["type"] == "ping" {
                return events
                    .say(&json!({ "type": "pong", "req_id": message["id"] }))
                    .await;
            }
        }
    };
    let (pong, ()) = tokio::join!(client.ping(), host);
    pong.unwrap();
}

#[tokio::test]
async fn a_host_that_dies_and_comes_back_has_the_answer() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(
        api.start(CallOptions::new("t", json!({}))),
        peer.message("tool/call/req")
    );
    let call = call.unwrap();
    // Killed: everything breaks at once, nobody listens for a while, then the same address is back.
    let address = peer.url.strip_prefix("http://").unwrap().to_owned();
    drop(events);
    peer.vanish().await;
    let mut peer = Peer::at(&address).await;
    let again = peer.next("GET /stream").await;
    assert_eq!(again.session.as_deref(), Some("s1"));
    let events = again.stream();
    assert_eq!(peer.message("tool/call/req").await, sent);
    events.result(&sent, json!("kept")).await;
    assert_eq!(call.result().await.unwrap().data, Some(json!("kept")));
}
