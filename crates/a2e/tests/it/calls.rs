//! Calls over HTTP when nothing breaks.

use std::{collections::HashSet, time::Duration};

use serde_json::json;
use toolpost_a2e::{Body, CallError, CallOptions, ErrorCode};

use crate::peer::Peer;

#[tokio::test]
async fn a_call_and_its_result() {
    let (mut peer, api, events) = Peer::with_api().await;
    let host = async {
        let call = peer.message("tool/call/req").await;
        events.result(&call, json!({ "text": "hé" })).await;
        call
    };
    let (result, call) = tokio::join!(api.call("read_file", json!({ "path": "a" })), host);
    let result = result.unwrap();
    assert!(result.success);
    assert_eq!(result.data, Some(json!({ "text": "hé" })));
    assert_eq!(call["tool_name"], "read_file");
    assert_eq!(call["arguments"], json!({ "path": "a" }));
    assert_eq!(call["timeout"], 60);
    assert_eq!(call["id"].as_str().unwrap().len(), 32);
}

#[tokio::test]
async fn options_of_a_call() {
    let (mut peer, api, _events) = Peer::with_api().await;
    let options = CallOptions::new("t", json!({}))
        .timeout(Duration::from_millis(1_500))
        .correlation_id("c1")
        .streaming()
        .collect_events();
    let (call, sent) = tokio::join!(api.start(options), peer.message("tool/call/req"));
    assert_eq!(call.unwrap().id(), sent["id"]);
    assert_eq!(
        (&sent["timeout"], &sent["correlation_id"]),
        (&json!(2), &json!("c1"))
    );
    assert_eq!(
        (&sent["streaming"], &sent["collect_events"]),
        (&json!(true), &json!(true))
    );
}

#[tokio::test]
async fn failures_of_a_tool_are_results_and_errors_of_the_protocol_are_errors() {
    let (mut peer, api, events) = Peer::with_api().await;
    let host = async {
        let call = peer.message("tool/call/req").await;
        let data = json!({ "success": false, "tool_name": "t", "duration_ms": 1, "error": "no", "error_code": "tool_denied" });
        events
            .say(&json!({ "type": "tool/call/resp", "req_id": call["id"], "data": data }))
            .await;
        let call = peer.message("tool/call/req").await;
        events
            .say(&json!({ "type": "error", "req_id": call["id"], "code": "slow_reader", "message": "read", "retryable": true }))
            .await;
        let call = peer.message("tool/call/req").await;
        events
            .say(&json!({ "type": "pong", "req_id": call["id"] }))
            .await;
    };
    let agent = async {
        let result = api.call("t", json!({})).await.unwrap();
        assert_eq!(
            (result.success, result.error_code.as_deref()),
            (false, Some("tool_denied"))
        );
        match api.call("t", json!({})).await.unwrap_err() {
            CallError::Protocol(error) => {
                assert_eq!(
                    (error.code, &*error.message, error.retryable),
                    (ErrorCode::SlowReader, "read", true)
                );
            }
            other => panic!("{other:?}"),
        }
        let error = api.call("t", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::Malformed { .. }), "{error:?}");
    };
    tokio::join!(agent, host);
}

#[tokio::test]
async fn arguments_that_cannot_be_sent() {
    let (_peer, api, _events) = Peer::with_api().await;
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    for arguments in [
        json!(null),
        json!([1]),
        json!("{}"),
        json!({ "deep": deep }),
    ] {
        let error = api.call("t", arguments).await.unwrap_err();
        assert!(matches!(error, CallError::Arguments { .. }), "{error:?}");
        assert!(!error.outcome_is_unknown());
    }
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let (mut peer, api, events) = Peer::with_api().await;
    let calls = async {
        let numbers = (0..40).map(|number| {
            let api = api.clone();
            tokio::spawn(async move {
                (
                    number,
                    api.call("t", json!({ "n": number })).await.unwrap().data,
                )
            })
        });
        for call in numbers.collect::<Vec<_>>() {
            let (number, data) = call.await.unwrap();
            assert_eq!(data, Some(json!(number)));
        }
    };
    let host = async {
        let mut seen = Vec::new();
        for _ in 0..40 {
            seen.push(peer.message("tool/call/req").await);
        }
        for call in seen.iter().rev() {
            events.result(call, call["arguments"]["n"].clone()).await;
        }
    };
    tokio::join!(calls, host);
}

#[tokio::test]
async fn connections_are_used_again() {
    let (mut peer, api, events) = Peer::with_api().await;
    let host = async {
        let mut connections = HashSet::new();
        for _ in 0..30 {
            let request = peer.next("POST /send").await;
            connections.insert(request.connection);
            let call = request.message();
            // The answer may overtake the confirmation, and must not cost the connection.
            events.result(&call, json!(1)).await;
            request.confirm();
        }
        connections.len()
    };
    let agent = async {
        for _ in 0..30 {
            api.call("t", json!({})).await.unwrap();
        }
    };
    let (connections, ()) = tokio::join!(host, agent);
    // Where an answer overtakes its confirmation, the next call needs a second one.
    assert!(connections <= 4, "{connections} connections");
}

#[tokio::test]
async fn a_status_that_no_repeat_would_change() {
    let (mut peer, api, _events) = Peer::with_api().await;
    let host = async { peer.next("POST /send").await.answer(413, "{}") };
    let (result, ()) = tokio::join!(api.call("t", json!({})), host);
    assert_eq!(result.unwrap_err(), CallError::Status { status: 413 });
}

#[tokio::test]
async fn pings() {
    let (mut peer, api, events) = Peer::with_api().await;
    let host = async {
        let ping = peer.message("ping").await;
        events
            .say(&json!({ "type": "pong", "req_id": ping["id"], "uptime_seconds": 3 }))
            .await;
    };
    let (pong, ()) = tokio::join!(api.client().ping(), host);
    assert!((pong.unwrap().uptime_seconds - 3.0).abs() < f64::EPSILON);
}

#[tokio::test]
async fn time_runs_out() {
    let (mut peer, api, _events) = Peer::with_api().await;
    let client = api.client().clone();
    let wait = Duration::from_millis(100);
    let (answer, _) = tokio::join!(client.request(Body::ping(), wait), peer.message("ping"));
    assert_eq!(
        answer.unwrap_err(),
        CallError::Timeout {
            after: wait,
            taken: true
        }
    );
    peer.vanish().await;
    let error = client.request(Body::ping(), wait).await.unwrap_err();
    assert_eq!(
        error,
        CallError::Timeout {
            after: wait,
            taken: false
        }
    );
    assert!(!error.outcome_is_unknown());
}
