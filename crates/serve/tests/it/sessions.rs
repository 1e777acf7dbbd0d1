//! `POST /sessions` and what belongs to one.

use serde_json::json;
use toolpost_model::PrincipalRole;
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{client::Request, running::Place};

const BOB: &str = "bob-has-a-token";
const OLGA: &str = "olga-has-a-token";

fn place() -> Place {
    Place::new()
        .with_token("bob", PrincipalRole::Agent, BOB)
        .with_token("olga", PrincipalRole::Operator, OLGA)
}

#[tokio::test]
async fn a_session_keeps_what_it_was_opened_for() {
    let server = place().start().await;
    let ask = json!({ "scope": "task", "task": "roof", "skills": ["climbing"], "model_capabilities": ["vision"] });
    let opened = server
        .send(Request::post("/sessions", ask.to_string()))
        .await;
    assert_eq!(opened.status(), 201);
    let id = opened.json()["session_id"].as_str().unwrap().to_owned();
    let expected =
        json!({ "session_id": id, "principal": "agent", "role": "agent", "surface": ask });
    assert_eq!(opened.json(), expected);
    assert_eq!(
        server
            .send(Request::get(format!("/sessions/{id}")))
            .await
            .json(),
        expected
    );
    let plain = server.send(Request::post("/sessions", "")).await.json();
    assert_eq!(plain["surface"], json!({ "scope": "session" }));
    assert_ne!(plain["session_id"], id);
}

#[tokio::test]
async fn a_surface_that_makes_no_sense_is_refused() {
    let mut place = place();
    place.config.http.body_limit = 1_000;
    let server = place.start().await;
    for body in [
        "{",
        "null",
        r#"{"scope":"world"}"#,
        r#"{"role":"operator"}"#,
        r#"{"task":1}"#,
        "\u{0}",
    ] {
        let refused = server.send(Request::post("/sessions", body)).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_surface_request"),
            "{body}"
        );
    }
    let large = json!({ "task": "x".repeat(2_000) }).to_string();
    let refused = server.send(Request::post("/sessions", large)).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (413, "too_large")
    );
    assert_eq!(
        server.send(Request::get("/health")).await.json()["sessions"],
        0
    );
}

#[tokio::test]
async fn a_surface_request_is_bounded_since_its_session_holds_it() {
    let server = place().start().await;
    let skills: Vec<String> = (0..8_000).map(|n| format!("skill-{n}")).collect();
    for body in [
        json!({ "task": "x".repeat(70_000) }),
        json!({ "skills": skills }),
    ] {
        let refused = server
            .send(Request::post("/sessions", body.to_string()))
            .await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_surface_request")
        );
    }
    assert_eq!(
        server.send(Request::get("/health")).await.json()["sessions"],
        0
    );
    let taken = server
        .send(Request::post(
            "/sessions",
            json!({ "task": "x".repeat(60_000) }).to_string(),
        ))
        .await;
    assert_eq!(taken.status(), 201);
}

#[tokio::test]
async fn a_session_is_known_to_its_owner_and_to_operators() {
    let server = place().start().await;
    let id = server.open_session(Request::post("/sessions", "")).await;
    let uses = |id: &str| {
        [
            Request::get(format!("/sessions/{id}")),
            Request::get("/tools").session(id),
            Request::get("/tools/echo").session(id),
            Request::call("echo", &json!({ "message": "hi" })).session(id),
            Request::post("/tools/echo/explain", r#"{"message":"hi"}"#).session(id),
        ]
    };
    for request in uses(&id) {
        assert_eq!(server.send(request.clone()).await.status(), 200);
        assert_eq!(
            server.send(request.clone().bearer(OLGA)).await.status(),
            200,
            "an operator"
        );
        let stranger = server.send(request.bearer(BOB)).await;
        assert_eq!(
            (stranger.status(), stranger.code().as_str()),
            (404, "unknown_session")
        );
    }
    for request in uses("0192f0e0-0000-7000-8000-000000000000")
        .into_iter()
        .chain(uses("x"))
    {
        let refused = server.send(request).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (404, "unknown_session")
        );
    }
    let refused = server
        .send(Request::get("/tools").header("Toolpost-Session", b"\xff"))
        .await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (400, "bad_session")
    );
    let close = Request::new("DELETE", format!("/sessions/{id}"));
    assert_eq!(server.send(close.clone().bearer(BOB)).await.status(), 404);
    assert_eq!(server.send(close).await.status(), 204);
}

#[tokio::test]
async fn closing_a_session_ends_its_calls_and_its_id() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .output("through");
    let server = place().start_with(|builder| builder.tool(tool)).await;
    let closed = server.open_session(Request::post("/sessions", "")).await;
    let kept = server.open_session(Request::post("/sessions", "")).await;
    let call = Request::call("wait", &json!({}));
    let mut ends = server.begin(call.clone().session(&closed)).await;
    let mut stays = server.begin(call.clone().session(&kept)).await;
    let mut default = server.begin(call.clone()).await;
    gate.entered(3).await;
    let gone = server
        .send(Request::new("DELETE", format!("/sessions/{closed}")))
        .await;
    assert_eq!((gone.status(), gone.body.len()), (204, 0));
    let result = ends.receive().await.json();
    assert_eq!(result["outcome"], "canceled");
    assert_eq!(
        result["error"]["message"],
        "the call was stopped while it ran: its session was closed"
    );
    gate.let_through(2);
    assert_eq!(stays.receive().await.json()["outcome"], "succeeded");
    assert_eq!(default.receive().await.json()["outcome"], "succeeded");
    for request in [
        Request::get(format!("/sessions/{closed}")),
        Request::new("DELETE", format!("/sessions/{closed}")),
        call.session(&closed),
    ] {
        assert_eq!(server.send(request).await.code(), "unknown_session");
    }
}

#[tokio::test]
async fn an_open_session_lives_on_in_the_next_server_and_a_closed_one_does_not() {
    let place = place();
    let server = place.start().await;
    let ask = json!({ "task": "roof" }).to_string();
    let open = server
        .open_session(Request::post("/sessions", ask).bearer(BOB))
        .await;
    let closed = server
        .open_session(Request::post("/sessions", "").bearer(BOB))
        .await;
    let close = Request::new("DELETE", format!("/sessions/{closed}"));
    assert_eq!(server.send(close.bearer(BOB)).await.status(), 204);
    server.shut_down().await;

    let server = place.start().await;
    let look = |id: &str| Request::get(format!("/sessions/{id}"));
    assert_eq!(
        server.send(look(&open)).await.status(),
        404,
        "still nobody else's"
    );
    let told = server.send(look(&open).bearer(BOB)).await.json();
    assert_eq!(
        (&told["principal"], &told["surface"]["task"]),
        (&json!("bob"), &json!("roof"))
    );
    assert_eq!(
        server.send(look(&closed).bearer(BOB)).await.code(),
        "unknown_session"
    );
    let call = Request::call("echo", &json!({ "message": "hi" }))
        .session(&open)
        .bearer(BOB);
    assert_eq!(server.send(call).await.status(), 200);
}

#[tokio::test]
async fn the_longest_unused_session_makes_room_and_comes_back_when_it_is_used() {
    let mut place = place();
    place.config.limits.sessions = 2;
    let server = place.start().await;
    let first = server.open_session(Request::post("/sessions", "")).await;
    server.open_session(Request::post("/sessions", "")).await;
    for _ in 0..5 {
        server.open_session(Request::post("/sessions", "")).await;
    }
    assert!(
        server.server.host().health().sessions <= 3,
        "two, and the caller's own"
    );
    let call = Request::call("echo", &json!({ "message": "hi" })).session(&first);
    assert_eq!(server.send(call).await.status(), 200);
}

#[tokio::test]
async fn there_is_room_for_so_many_sessions_at_work() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait").gate(&gate);
    let mut place = place();
    place.config.limits.sessions = 2;
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let mut at_work = Vec::new();
    for _ in 0..2 {
        let id = server.open_session(Request::post("/sessions", "")).await;
        at_work.push(
            server
                .begin(Request::call("wait", &json!({})).session(&id))
                .await,
        );
        gate.entered(1).await;
    }
    let refused = server.send(Request::post("/sessions", "")).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "too_many_sessions")
    );
    let message = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("`limits.sessions`"), "{message}");
    gate.let_through(2);
    for connection in &mut at_work {
        assert_eq!(connection.receive().await.status(), 200);
    }
}

#[tokio::test]
async fn a_callers_own_session_cannot_be_closed() {
    let server = place().start().await;
    server.call("echo", json!({ "message": "hi" })).await;
    let close = Request::new("DELETE", "/sessions/default:agent:agent");
    let refused = server.send(close.clone()).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (400, "default_session")
    );
    assert_eq!(
        server.send(close.bearer(BOB)).await.code(),
        "unknown_session"
    );
}
