//! Many requests on one connection, many connections at once, and readers that do not keep up.

use serde_json::{Value, json};
use tokio::net::TcpSocket;
use toolpost_model::{EffectClass, FnTool, LogLevel, Tool, ToolFailure};
use toolpost_store::JournalReader;
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Connection, Request},
    running::Place,
};

fn echo(message: &str) -> Request {
    Request::call("echo", &json!({ "message": message }))
}

#[tokio::test]
async fn one_connection_takes_one_request_after_another() {
    let server = Place::new().start().await;
    let mut connection = server.connect().await;
    for round in 0..50 {
        let message = format!("round {round}");
        connection.send(&server.dressed(echo(&message))).await;
        assert_eq!(
            connection.receive().await.json()["content"][0]["text"],
            message
        );
        // A refusal in between does not end the connection.
        connection.send(&Request::get("/tools")).await;
        assert_eq!(connection.receive().await.status(), 401);
        connection
            .send(&server.dressed(echo("streamed").streamed()))
            .await;
        assert_eq!(connection.head().await.status, 200);
        assert_eq!(connection.frames().await.last().unwrap().event, "result");
    }
    connection
        .send(&server.dressed(echo("last")).header("Connection", "close"))
        .await;
    assert_eq!(connection.receive().await.status(), 200);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_their_order() {
    let server = Place::new().start().await;
    let mut bytes = Vec::new();
    for round in 0..20 {
        bytes.extend(server.dressed(echo(&round.to_string())).bytes());
        bytes.extend(server.dressed(Request::get("/nowhere")).bytes());
    }
    let mut connection = server.connect().await;
    connection.write(&bytes).await;
    for round in 0..20 {
        assert_eq!(
            connection.receive().await.json()["content"][0]["text"],
            round.to_string()
        );
        assert_eq!(connection.receive().await.status(), 404);
    }
}

#[tokio::test]
async fn a_request_that_comes_in_pieces_is_read() {
    let server = Place::new().start().await;
    let mut connection = server.connect().await;
    for byte in server.dressed(echo("slowly")).bytes() {
        connection.write(&[byte]).await;
    }
    assert_eq!(
        connection.receive().await.json()["content"][0]["text"],
        "slowly"
    );
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_harms_nobody() {
    let server = Place::new().start().await;
    for noise in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\0\0\0\0",
    ] {
        let mut connection = server.connect().await;
        connection.write(noise).await;
        connection.write(b"\r\n\r\n").await;
        let head = connection.head().await;
        assert_eq!(head.status, 400, "{noise:?}");
    }
    let huge = Request::get("/health").header("X-Long", "x".repeat(1 << 20));
    assert_eq!(server.send(huge).await.status(), 431);
    assert_eq!(
        server.send(Request::get("/health")).await.json()["running"],
        0
    );
}

#[tokio::test]
async fn callers_do_not_wait_for_one_another() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .output("through");
    let server = Place::new().start_with(|builder| builder.tool(tool)).await;
    let mut slow = server.begin(Request::call("wait", &json!({}))).await;
    gate.entered(1).await;
    assert_eq!(
        server
            .call("echo", json!({ "message": "quick" }))
            .await
            .status(),
        200
    );
    let mut others = Vec::new();
    for round in 0..20 {
        others.push(server.begin(echo(&round.to_string())).await);
    }
    for (round, connection) in others.iter_mut().enumerate().rev() {
        assert_eq!(
            connection.receive().await.json()["content"][0]["text"],
            round.to_string()
        );
    }
    gate.let_through(1);
    assert_eq!(slow.receive().await.json()["content"][0]["text"], "through");
}

const LINES: u64 = 1_000;
const LINE_BYTES: usize = 64 << 10;

/// A tool that says far more than any buffer between it and its reader holds.
fn chatterbox() -> impl Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    FnTool::named("demo.chatter")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, context| async move {
            for _ in 0..LINES {
                context.log(LogLevel::Info, "x".repeat(LINE_BYTES));
                tokio::task::yield_now().await;
            }
            Ok::<_, ToolFailure>("said it all")
        })
}

#[tokio::test]
async fn a_reader_that_does_not_keep_up_loses_events_and_holds_up_nobody() {
    let place = Place::new();
    let server = place.start_with(|builder| builder.tool(chatterbox())).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut slow = Connection::over(
        socket
            .connect(server.server.address().unwrap())
            .await
            .unwrap(),
    );
    slow.send(&server.dressed(Request::call("chatter", &json!({})).streamed()))
        .await;
    assert_eq!(slow.head().await.status, 200);
    let first: Value = serde_json::from_str(&slow.frame().await.unwrap().data).unwrap();
    // The call ends although nobody reads, and others are served meanwhile.
    let id = first["invocation_id"].as_str().unwrap();
    assert_eq!(
        server.ended(id).await.json()["result"]["outcome"],
        "succeeded"
    );
    assert_eq!(
        server
            .call("echo", json!({ "message": "hi" }))
            .await
            .status(),
        200
    );
    let frames = slow.frames().await;
    let (result, events) = frames.split_last().unwrap();
    assert_eq!(result.event, "result");
    let ids: Vec<u64> = events.iter().map(|frame| frame.id.unwrap()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "in order");
    assert!(
        (ids.len() as u64) < LINES,
        "{} events were kept for a reader that was away",
        ids.len()
    );
    let recorded = JournalReader::open(&place.data_dir().join("journal.db")).unwrap();
    let ended = recorded
        .records_of(id.parse().unwrap())
        .unwrap()
        .pop()
        .unwrap();
    let told: Value = serde_json::from_str(&ended.record.body).unwrap();
    assert!(
        told["events"]["dropped"].as_u64().unwrap() > 0,
        "what was lost is on record: {}",
        told["events"]
    );
}
