//! Requests that are turned away leave a trace: counted for operators, logged without what was sent, and answered ever more
//! slowly. A valid token is never slowed.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolpost_model::PrincipalRole;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use super::{
    client::{Request, Response},
    running::{Place, Running},
};

const OPERATOR: &str = "operator-has-a-token";
const SECRET: &str = "guessed-wrong-0123456789";

/// Keeps the lines of the log. Each test is a process of its own.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<String>>>);

struct LineText(String);

impl Visit for LineText {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LineText(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl LogLines {
    fn begin() -> Self {
        let lines = Self::default();
        tracing::subscriber::set_global_default(lines.clone()).expect("one test a process");
        lines
    }

    fn of_refusals(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        assert!(
            lines.iter().all(|line| !line.contains("guessed")),
            "a secret is logged: {lines:?}"
        );
        lines
            .iter()
            .filter(|line| line.contains("refused"))
            .cloned()
            .collect()
    }
}

/// Sends a request from this machine's usual address.
async fn send_from_one(server: &Running, request: Request) -> Response {
    let mut connection = server.connect().await;
    connection.send(&request).await;
    connection.receive().await
}

async fn counts(server: &Running) -> Value {
    server
        .send(Request::get("/host").bearer(OPERATOR))
        .await
        .json()["refused_requests"]
        .clone()
}

fn place() -> Place {
    Place::without_native_tools().with_token("operator", PrincipalRole::Operator, OPERATOR)
}

#[tokio::test]
async fn wrong_tokens_are_counted_logged_once_and_slowed() {
    let lines = LogLines::begin();
    let server = place().start().await;
    let began = Instant::now();
    for _ in 0..20 {
        let refused = send_from_one(&server, Request::get("/tools").bearer(SECRET)).await;
        assert_eq!(refused.status(), 401);
    }
    // Nothing for sixteen of them, then 25, 50, 100 and 200 ms.
    assert!(
        began.elapsed() >= Duration::from_millis(375),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(counts(&server).await["wrong_token"], 20);
    let told = lines.of_refusals();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("127.0.0.1") && told[0].contains("wrong_token"),
        "{told:?}"
    );
    // From the same address, with a valid token: at once, also while wrong ones are held back.
    let slow = server.begin(Request::get("/tools").bearer(SECRET)).await;
    let began = Instant::now();
    for _ in 0..20 {
        let answered = send_from_one(&server, server.dressed(Request::get("/tools"))).await;
        assert_eq!(answered.status(), 200);
    }
    // Held back as wrong ones are by now, they would take ten seconds.
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    drop(slow);
    server.shut_down().await;
}

#[tokio::test]
async fn a_flood_of_wrong_tokens_holds_nothing_up() {
    let server = place().start().await;
    let mut open = Vec::new();
    for _ in 0..500 {
        open.push(server.begin(Request::get("/tools").bearer(SECRET)).await);
    }
    // More than are slowed at a time: the others are answered at once, and a valid token always is.
    let began = Instant::now();
    assert_eq!(server.send(Request::get("/tools")).await.status(), 200);
    // Behind all those refusals it would take minutes.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    for connection in &mut open {
        assert_eq!(connection.receive().await.status(), 401);
    }
    assert_eq!(counts(&server).await["wrong_token"], 500);
    server.shut_down().await;
}

#[tokio::test]
async fn every_kind_of_refusal_is_counted_on_every_face() {
    let lines = LogLines::begin();
    let server = place().start().await;
    for path in ["/tools", "/mcp", "/a2a", "/events"] {
        assert_eq!(
            send_from_one(&server, Request::get(path)).await.status(),
            401,
            "{path}"
        );
    }
    let foreign = Request::get("/tools").header("Origin", "https://evil.example");
    assert_eq!(
        send_from_one(&server, server.dressed(foreign))
            .await
            .status(),
        403
    );
    let rebound = Request::get("/health").header("Host", "evil.example");
    assert_eq!(send_from_one(&server, rebound).await.status(), 403);
    let stranger = Request::get("/stream").header("X-Session-Id", SECRET);
    assert_eq!(send_from_one(&server, stranger).await.status(), 404);
    let opened = server.send_bare(Request::post("/session", "")).await.json();
    let session = opened["session_id"].as_str().unwrap();
    let hello =
        json!({ "type": "handshake/req", "id": "h1", "agent_id": "x", "auth_token": SECRET });
    let hello = Request::post("/send", hello.to_string()).header("X-Session-Id", session);
    send_from_one(&server, hello).await;
    let expected = json!({
        "missing_token": 4, "wrong_token": 1, "foreign_origin": 2, "unknown_session": 1,
    });
    assert_eq!(counts(&server).await, expected);
    assert_eq!(
        lines.of_refusals().len(),
        1,
        "one line an address and minute"
    );
    let told = server.send(Request::get("/health")).await.json();
    assert!(
        told.get("refused_requests").is_none(),
        "only operators are told: {told}"
    );
    server.shut_down().await;
}
