//! Events of calls: in order, before the answer, and honest about what was lost.

use serde_json::json;
use toolpost_a2e::{CallEvent, CallOptions, ClientCall};

use crate::peer::Peer;

fn streaming() -> CallOptions {
    CallOptions::new("t", json!({})).streaming()
}

/// Numbers of events as they are read; a loss is negative.
async fn read(call: &mut ClientCall) -> Vec<i64> {
    let mut numbers = Vec::new();
    while let Some(event) = call.next_event().await {
        numbers.push(match event {
            CallEvent::Event(event) => i64::try_from(event.seq).unwrap(),
            CallEvent::Lost(count) => -i64::try_from(count).unwrap(),
        });
    }
    numbers
}

#[tokio::test]
async fn events_come_before_the_answer() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(api.start(streaming()), peer.message("tool/call/req"));
    let mut call = call.unwrap();
    events.event(&sent, 1).await;
    let Some(CallEvent::Event(first)) = call.next_event().await else {
        panic!("no event")
    };
    assert_eq!(
        (&*first.kind, &first.data["message"]),
        ("status", &json!("step 1"))
    );
    events.event(&sent, 2).await;
    events.event(&sent, 3).await;
    events.result(&sent, json!("done")).await;
    assert_eq!(read(&mut call).await, [2, 3]);
    assert_eq!(read(&mut call).await, [] as [i64; 0]);
    assert_eq!(call.result().await.unwrap().data, Some(json!("done")));
    assert_eq!(api.client().counters().lost_events, 0);
}

#[tokio::test]
async fn holes_are_losses() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(api.start(streaming()), peer.message("tool/call/req"));
    for seq in [2, 3, 7, 7, 8] {
        events.event(&sent, seq).await;
    }
    events.result(&sent, json!(1)).await;
    assert_eq!(read(&mut call.unwrap()).await, [-1, 2, 3, -3, 7, 8]);
    assert_eq!(api.client().counters().lost_events, 4);
}

#[tokio::test]
async fn a_slow_reader_loses_events_and_holds_up_nobody() {
    let (mut peer, api, events) = Peer::with_api().await;
    let slow = streaming().event_room(2);
    let (slow, sent) = tokio::join!(api.start(slow), peer.message("tool/call/req"));
    for seq in 1..=10 {
        events.event(&sent, seq).await;
    }
    let host = async {
        let other = peer.message("tool/call/req").await;
        events.result(&other, json!(2)).await;
    };
    let (other, ()) = tokio::join!(api.call("t", json!({})), host);
    assert_eq!(other.unwrap().data, Some(json!(2)));
    events.result(&sent, json!(1)).await;
    let mut slow = slow.unwrap();
    assert_eq!(read(&mut slow).await, [1, 2, -8]);
    assert_eq!(slow.result().await.unwrap().data, Some(json!(1)));
}

#[tokio::test]
async fn a_call_without_events_has_none() {
    let (mut peer, api, events) = Peer::with_api().await;
    let options = CallOptions::new("t", json!({}));
    let (call, sent) = tokio::join!(api.start(options), peer.message("tool/call/req"));
    let mut call = call.unwrap();
    assert_eq!(call.next_event().await, None);
    events.event(&sent, 1).await;
    events.result(&sent, json!(1)).await;
    assert!(call.result().await.unwrap().success);
    assert_eq!(api.client().counters().unexpected, 1);
}

#[tokio::test]
async fn waiting_for_an_event_may_be_given_up() {
    let (mut peer, api, events) = Peer::with_api().await;
    let (call, sent) = tokio::join!(api.start(streaming()), peer.message("tool/call/req"));
    let mut call = call.unwrap();
    for seq in 1..=50 {
        // Polled once and dropped, again and again.
        tokio::select! {
            biased;
            event = call.next_event() => panic!("{event:?}"),
            () = std::future::ready(()) => {}
        }
        events.event(&sent, seq).await;
        let heard = call.next_event().await;
        assert!(matches!(heard, Some(CallEvent::Event(event)) if event.seq == seq));
    }
}
