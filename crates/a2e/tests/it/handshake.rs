//! Coming in, or not.

use std::time::Duration;

use serde_json::json;
use toolpost_a2e::{AuthToken, Client, ConnectError, ConnectOptions, HostTransport};
use toolpost_model::{SurfaceRequest, SurfaceScope};

use crate::peer::Peer;

fn options() -> ConnectOptions {
    ConnectOptions::new("tester").token("s3cret")
}

#[tokio::test]
async fn an_agent_says_who_it_is_and_hears_what_is_served() {
    let mut peer = Peer::start().await;
    let surface = SurfaceRequest {
        scope: SurfaceScope::Session,
        task: Some("tidy".to_owned()),
        ..Default::default()
    };
    let connect = Client::connect(HostTransport::http(&peer.url), options().surface(surface));
    let host = async {
        peer.next("POST /session")
            .await
            .answer(200, r#"{"session_id":"s1"}"#);
        let first = peer.any().await;
        let second = peer.any().await;
        let (stream, send) = if first.line == "GET /stream" {
            (first, second)
        } else {
            (second, first)
        };
        let events = stream.stream();
        let sent = send.message();
        send.confirm();
        let caps =
            json!([{ "capability": "tools", "metadata": { "extensions": ["tool/cancel"] } }]);
        let welcome = json!({ "type": "handshake/resp", "req_id": sent["id"], "session_id": "s1", "max_parallel": 7,
            "accepted_caps": caps });
        events.say(&welcome).await;
        (sent, events)
    };
    let (client, (sent, _events)) = tokio::join!(connect, host);
    let client = client.unwrap();
    assert_eq!(sent["agent_id"], "tester");
    assert_eq!(sent["agent_caps"], json!(["tools"]));
    assert_eq!(sent["auth_token"], "s3cret");
    assert_eq!(sent["surface"]["task"], "tidy");
    assert_eq!(sent["extensions"], json!(["tool/list/changed"]));
    assert_eq!(
        (client.welcome().max_parallel, &*client.welcome().session_id),
        (7, "s1")
    );
    assert!(client.announces("tool/cancel") && !client.announces("tool/list/changed"));
}

#[tokio::test]
async fn a_refusal_has_its_reason() {
    let mut peer = Peer::start().await;
    let connect = Client::connect(HostTransport::http(&peer.url), options());
    let refuse = peer.answer_handshake("s1", json!({ "ok": false, "reason": "auth_failed" }));
    let (client, _) = tokio::join!(connect, refuse);
    let error = client.unwrap_err();
    assert!(
        matches!(&error, ConnectError::Refused { reason } if reason == "auth_failed"),
        "{error:?}"
    );
    assert!(error.to_string().contains("hint: "), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_none() {
    for fields in [json!({ "accepted_caps": 3 }), json!({ "type": "pong" })] {
        let mut peer = Peer::start().await;
        let connect = Client::connect(HostTransport::http(&peer.url), options());
        let (client, _) = tokio::join!(connect, peer.answer_handshake("s1", fields));
        let error = client.unwrap_err();
        assert!(
            matches!(&error, ConnectError::Malformed { .. }),
            "{error:?}"
        );
    }
    let mut peer = Peer::start().await;
    let connect = Client::connect(HostTransport::http(&peer.url), options());
    let fields = json!({ "type": "error", "code": "unauthorized", "message": "not you" });
    let (client, _) = tokio::join!(connect, peer.answer_handshake("s1", fields));
    assert_eq!(
        client.unwrap_err().to_string(),
        "the host answered the handshake with an error: not you (unauthorized)"
    );
}

#[tokio::test]
async fn nobody_there() {
    let peer = Peer::start().await;
    let url = peer.url.clone();
    peer.vanish().await;
    let error = Client::connect(HostTransport::http(url), options())
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_host_without_tls_behind_an_address_with() {
    let peer = Peer::start().await;
    let url = peer.url.replace("http://", "https://");
    let error = Client::connect(HostTransport::http(url), options())
        .await
        .unwrap_err();
    // A system without certificates cannot even begin.
    assert!(
        matches!(
            error,
            ConnectError::Unreachable { .. } | ConnectError::Setup { .. }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn somebody_else_there() {
    let mut peer = Peer::start().await;
    let connect = Client::connect(HostTransport::http(&peer.url), options());
    let other = async { peer.next("POST /session").await.answer(404, "{}") };
    let error = tokio::join!(connect, other).0.unwrap_err();
    assert!(
        matches!(error, ConnectError::Status { status: 404, .. }),
        "{error:?}"
    );

    let connect = Client::connect(HostTransport::http(&peer.url), options());
    let other = async { peer.next("POST /session").await.answer(200, "<html>") };
    let error = tokio::join!(connect, other).0.unwrap_err();
    assert!(matches!(error, ConnectError::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_host_that_says_nothing() {
    let mut peer = Peer::start().await;
    let patience = Duration::from_millis(100);
    let connect = Client::connect(HostTransport::http(&peer.url), options().timeout(patience));
    let silent = async {
        peer.next("POST /session")
            .await
            .answer(200, r#"{"session_id":"s1"}"#);
        // Kept, so that nothing is closed.
        (peer.any().await, peer.any().await)
    };
    let error = tokio::join!(connect, silent).0.unwrap_err();
    assert!(
        matches!(error, ConnectError::Timeout { after } if after == patience),
        "{error:?}"
    );
}

#[test]
fn a_token_cannot_be_printed() {
    let printed = format!("{:?} {:?}", AuthToken::from("s3cret"), options());
    assert!(!printed.contains("s3cret"), "{printed}");
    let request = toolpost_a2e::HandshakeRequest {
        auth_token: "s3cret".to_owned(),
        ..Default::default()
    };
    let message = toolpost_a2e::Message::new(toolpost_a2e::Body::HandshakeRequest(request));
    assert!(!format!("{message:?}").contains("s3cret"));
}
