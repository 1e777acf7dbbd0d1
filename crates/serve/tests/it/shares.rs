//! A hostile agent takes all it can get of one thing. The ordinary agent's calls and the operator's still go through, and the
//! refusal names the limit, its settings and a time to try again.

use serde_json::{Value, json};
use toolpost_model::PrincipalRole;
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Connection, Request, Response},
    running::{Place, Running},
};

const GREEDY: &str = "greedy-has-a-token";
const ORDINARY: &str = "ordinary-has-a-token";
const OPERATOR: &str = "operator-has-a-token";

fn place() -> Place {
    Place::without_native_tools()
        .with_token("greedy", PrincipalRole::Agent, GREEDY)
        .with_token("ordinary", PrincipalRole::Agent, ORDINARY)
        .with_token("operator", PrincipalRole::Operator, OPERATOR)
}

/// Checks that a refusal names its settings and says when to come back.
#[track_caller]
fn is_refused(refused: &Response, settings: &[&str]) {
    assert_eq!(refused.status(), 429, "{refused:?}");
    let wait: u64 = refused
        .head
        .header("retry-after")
        .expect("a time to try again")
        .parse()
        .unwrap();
    assert!(wait >= 1, "{refused:?}");
    let message = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    for setting in settings {
        assert!(message.contains(&format!("`{setting}`")), "{message}");
    }
}

/// Waits until the host's counts of calls are these.
async fn until(server: &Running, running: usize, queued: usize) {
    for _ in 0..10_000 {
        let health = server.send(Request::get("/health")).await.json();
        if (&health["running"], &health["queued"]) == (&json!(running), &json!(queued)) {
            return;
        }
    }
    let health = server.send(Request::get("/health")).await.json();
    panic!("never {running} running and {queued} waiting: {health}");
}

async fn begin_many(server: &Running, request: &Request, count: usize) -> Vec<Connection> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(server.begin(request.clone()).await);
    }
    open
}

/// 16 slots: one is reserved, a share is 4, and 2 stay free. 32 places in the queue: 3, 8 and 4.
#[tokio::test]
async fn slots_and_the_queue_are_not_one_agents_own() {
    let mut place = place();
    place.config.limits.concurrency = 16;
    place.config.limits.queue = 32;
    let gate = MockToolGate::new();
    let hold = MockNativeTool::named("demo.hold").gate(&gate);
    let quick = MockNativeTool::named("demo.quick").output("done");
    let server = place
        .start_with(|builder| builder.tool(hold).tool(quick))
        .await;
    let hold = Request::call("hold", &json!({})).bearer(GREEDY);
    let running = begin_many(&server, &hold, 13).await;
    until(&server, 13, 0).await;
    // From two sessions, since one session may fill only half of the queue.
    let other = server
        .open_session(Request::post("/sessions", "{}").bearer(GREEDY))
        .await;
    let waiting = begin_many(&server, &hold, 15).await;
    let more = begin_many(&server, &hold.clone().session(&other), 10).await;
    until(&server, 13, 25).await;
    is_refused(
        &server.send(hold.session(&other)).await,
        &["limits.queue", "limits.share"],
    );
    for token in [ORDINARY, OPERATOR] {
        let answered = server
            .send(Request::call("quick", &json!({})).bearer(token))
            .await;
        assert_eq!(answered.status(), 200, "{answered:?}");
    }
    until(&server, 13, 25).await;
    gate.let_through(13 + 25);
    for mut connection in running.into_iter().chain(waiting).chain(more) {
        assert_eq!(connection.receive().await.status(), 200);
    }
    server.shut_down().await;
}

/// 16 streams: one is reserved, a share is 4, and 2 stay free.
#[tokio::test]
async fn streams_are_not_one_agents_own() {
    let mut place = place();
    place.config.limits.streams = 16;
    let server = place.start().await;
    let stream = Request::get("/sessions/default/events");
    let mut open = Vec::new();
    for _ in 0..13 {
        let mut connection = server.begin(stream.clone().bearer(GREEDY)).await;
        assert_eq!(connection.head().await.status, 200);
        open.push(connection);
    }
    let settings = ["limits.streams", "limits.share"];
    is_refused(&server.send(stream.clone().bearer(GREEDY)).await, &settings);
    for (request, token) in [
        (stream.clone(), ORDINARY),
        (Request::get("/events"), OPERATOR),
    ] {
        let mut connection = server.begin(request.bearer(token)).await;
        assert_eq!(connection.head().await.status, 200);
        open.push(connection);
    }
    is_refused(&mcp_stream(&server).await, &settings);
    let refused = a2e_stream(&server).await;
    assert_eq!(refused.status(), 429, "{refused:?}");
    assert!(refused.head.header("retry-after").is_some(), "{refused:?}");
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("`limits.streams`"),
        "{refused:?}"
    );
    // What its reader leaves is free again.
    open.drain(..12);
    for _ in 0..10_000 {
        let mut connection = server.begin(stream.clone().bearer(GREEDY)).await;
        if connection.head().await.status == 200 {
            return server.shut_down().await;
        }
    }
    panic!("the places never came back");
}

/// The greedy agent's stream of news over MCP.
async fn mcp_stream(server: &Running) -> Response {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let accept = "application/json, text/event-stream";
    let hello = Request::post("/mcp", hello.to_string())
        .bearer(GREEDY)
        .header("Accept", accept);
    let opened = server.send(hello).await;
    let session = opened
        .head
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    let stream = Request::get("/mcp")
        .bearer(GREEDY)
        .header("Mcp-Session-Id", session);
    server.send(stream.streamed()).await
}

/// The greedy agent's stream of answers over A2E.
async fn a2e_stream(server: &Running) -> Response {
    let opened = server.send(Request::post("/session", "")).await.json();
    let session = opened["session_id"].as_str().unwrap().to_owned();
    let hello =
        json!({ "type": "handshake/req", "id": "h1", "agent_id": "greedy", "auth_token": GREEDY });
    let hello = Request::post("/send", hello.to_string()).header("X-Session-Id", &session);
    let taken = server.send(hello).await;
    assert_eq!(taken.status(), 200, "{taken:?}");
    server
        .send(Request::get("/stream").header("X-Session-Id", &session))
        .await
}

#[tokio::test]
async fn the_journal_is_not_one_agents_own() {
    let mut place = place();
    place.config.limits.journal = 4 << 20;
    let echo = MockNativeTool::named("demo.echo").output("heard");
    let server = place.start_with(|builder| builder.tool(echo)).await;
    let large = Request::call("echo", &json!({ "text": "x".repeat(256 << 10) }));
    let mut refused = None;
    for _ in 0..64 {
        let answer = server.send(large.clone().bearer(GREEDY)).await;
        if answer.status() != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("it is stopped before the journal is full");
    is_refused(&refused, &["limits.journal", "limits.share"]);
    assert_eq!(refused.code(), "journal_share");
    let before = size(&server).await;
    for _ in 0..16 {
        assert_eq!(
            server.send(large.clone().bearer(GREEDY)).await.status(),
            429
        );
    }
    assert_eq!(
        size(&server).await,
        before,
        "a refused call leaves no record"
    );
    for token in [ORDINARY, OPERATOR] {
        let answer = server
            .send(Request::call("echo", &json!({})).bearer(token))
            .await;
        assert_eq!(answer.status(), 200, "{answer:?}");
    }
    server.shut_down().await;
}

/// How many records the host has.
async fn size(server: &Running) -> u64 {
    server.server.host().journal_head().await.unwrap().seq
}

#[tokio::test]
async fn kept_results_are_not_one_agents_own() {
    let mut place = place();
    place.config.limits.artifacts = 4 << 20;
    place.config.limits.inline_chars = 1_000;
    let tool = toolpost_model::FnTool::named("demo.large")
        .unwrap()
        .class(toolpost_model::EffectClass::Read)
        .run(|arguments: Large, _| async move {
            Ok::<_, toolpost_model::ToolFailure>(arguments.letter.repeat(256 << 10))
        });
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let call = |letter: &str, token: &str| {
        Request::call("large", &json!({ "letter": letter })).bearer(token)
    };
    let mut lost = None;
    for letter in "abcdefghijklmnop".chars() {
        let result = server.send(call(&letter.to_string(), GREEDY)).await.json();
        if is_kept(&result) {
            continue;
        }
        lost = Some(result);
        break;
    }
    let lost = lost
        .expect("it is stopped before the store is full")
        .to_string();
    for setting in ["`limits.artifacts`", "`limits.share`"] {
        assert!(lost.contains(setting), "{lost}");
    }
    for (letter, token) in [("y", ORDINARY), ("z", OPERATOR)] {
        let result = server.send(call(letter, token)).await.json();
        assert!(is_kept(&result), "{result}");
    }
    server.shut_down().await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Large {
    letter: String,
}

fn is_kept(result: &Value) -> bool {
    result["artifacts"]
        .as_array()
        .is_some_and(|kept| !kept.is_empty())
}
