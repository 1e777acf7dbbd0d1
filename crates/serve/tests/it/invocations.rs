//! One call from outside: its deadline, looking at it, canceling it, and whose it is.

use serde_json::{Value, json};
use toolpost_model::{EffectClass, PrincipalRole, ToolExecutionSettings, ToolSettings};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Connection, Request},
    running::{Place, Running},
};

const BOB: &str = "bob-has-a-token";
const OLGA: &str = "olga-has-a-token";

async fn server_with(tool: &MockNativeTool) -> Running {
    let place = Place::without_native_tools()
        .with_token("bob", PrincipalRole::Agent, BOB)
        .with_token("olga", PrincipalRole::Operator, OLGA);
    let tool = tool.clone();
    place.start_with(|builder| builder.tool(tool)).await
}

/// Begins a call and waits until it stands at the gate.
async fn begin(server: &Running, gate: &MockToolGate) -> (Connection, String) {
    let mut connection = server
        .begin(Request::call("wait", &json!({})).streamed())
        .await;
    connection.head().await;
    let frame = connection.frame().await.unwrap();
    gate.entered(1).await;
    let data: Value = serde_json::from_str(&frame.data).unwrap();
    (
        connection,
        data["invocation_id"].as_str().unwrap().to_owned(),
    )
}

async fn result(connection: &mut Connection) -> Value {
    let frame = connection.frames().await.pop().unwrap();
    assert_eq!(frame.event, "result");
    serde_json::from_str(&frame.data).unwrap()
}

#[tokio::test]
async fn a_call_is_stopped_at_the_deadline_wished_for() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .class(EffectClass::Execute);
    let server = server_with(&tool).await;
    let answer = server
        .send(Request::post("/tools/wait/call?timeout=0.01", "{}"))
        .await;
    let result = answer.json();
    assert_eq!(
        (answer.status(), &result["outcome"]),
        (200, &json!("timed_out"))
    );
    assert_eq!(
        (&result["error"]["class"], &result["error"]["retry"]["safe"]),
        (&json!("timeout"), &json!(false))
    );
    let message = result["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "the call was stopped at its deadline of 10 ms; it may have taken effect"
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn the_operator_has_the_last_word_on_deadlines() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait").gate(&gate);
    let mut place = Place::without_native_tools();
    let short = std::time::Duration::from_millis(20);
    place.config.limits.deadline_ceiling = short;
    place.config.tools.insert(
        "wait".to_owned(),
        ToolSettings {
            execution: ToolExecutionSettings {
                timeout: Some(short * 2),
                ..ToolExecutionSettings::default()
            },
            ..ToolSettings::default()
        },
    );
    let server = place.start_with(|builder| builder.tool(tool)).await;
    for target in ["/tools/wait/call?timeout=3600", "/tools/wait/call"] {
        let result = server.send(Request::post(target, "{}")).await.json();
        assert_eq!(
            result["error"]["message"], "the call was stopped at its deadline of 20 ms",
            "{target}"
        );
    }
}

#[tokio::test]
async fn a_deadline_that_is_none_is_refused() {
    let tool = MockNativeTool::named("demo.wait");
    let server = server_with(&tool).await;
    for (value, code) in [
        ("0", "bad_timeout"),
        ("-1", "bad_timeout"),
        ("-0.0", "bad_timeout"),
        ("NaN", "bad_timeout"),
        ("inf", "bad_timeout"),
        ("1e300", "bad_timeout"),
        ("1e-20", "bad_timeout"),
        ("soon", "bad_query"),
        ("", "bad_query"),
        ("1,5", "bad_query"),
    ] {
        let refused = server
            .send(Request::post(
                format!("/tools/wait/call?timeout={value}"),
                "{}",
            ))
            .await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, code),
            "{value}"
        );
    }
    assert_eq!(tool.call_count(), 0);
    let kept = server
        .send(Request::post(
            "/tools/wait/call?timeout=1.5&correlation_id=a%20b",
            "{}",
        ))
        .await;
    assert_eq!(kept.status(), 200);
}

#[tokio::test]
async fn a_call_is_canceled_by_its_caller_or_an_operator_and_by_nobody_else() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait").gate(&gate);
    let server = server_with(&tool).await;
    for token in [server.token().to_owned(), OLGA.to_owned()] {
        let (mut connection, id) = begin(&server, &gate).await;
        let cancel = Request::post(format!("/invocations/{id}/cancel"), "");
        let stranger = server.send(cancel.clone().bearer(BOB)).await;
        assert_eq!(
            (stranger.status(), stranger.code().as_str()),
            (404, "unknown_invocation")
        );
        let asked = server.send(cancel.clone().bearer(&token)).await;
        assert_eq!(
            asked.json(),
            json!({ "invocation_id": id, "cancel": "requested" })
        );
        let result = result(&mut connection).await;
        assert_eq!(result["outcome"], "canceled");
        assert_eq!(
            result["error"]["message"],
            "the call was stopped while it ran: it was canceled on request"
        );
        server.ended(&id).await;
        let late = server.send(cancel.clone().bearer(&token)).await;
        assert_eq!(
            late.json(),
            json!({ "invocation_id": id, "cancel": "already_ended" })
        );
        assert_eq!(server.send(cancel.bearer(BOB)).await.status(), 404);
    }
}

#[tokio::test]
async fn a_call_is_seen_by_its_caller_and_by_operators() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .output("seen");
    let server = server_with(&tool).await;
    let (mut connection, id) = begin(&server, &gate).await;
    let look = |token: &str| Request::get(format!("/invocations/{id}")).bearer(token);
    let own = server.token().to_owned();
    for token in [own.as_str(), OLGA] {
        let told = server.send(look(token)).await.json();
        let expected =
            json!({ "invocation_id": id, "status": "running", "tool": "wait", "stage": "execute" });
        assert_eq!(told, expected);
    }
    assert_eq!(server.send(look(BOB)).await.status(), 404);
    gate.let_through(1);
    let result = result(&mut connection).await;
    for token in [own.as_str(), OLGA] {
        let told = server.ended_for(look(token)).await.json();
        assert_eq!(
            told,
            json!({ "invocation_id": id, "status": "ended", "tool": "wait", "result": result })
        );
    }
    let stranger = server.send(look(BOB)).await;
    assert_eq!(
        (stranger.status(), stranger.code().as_str()),
        (404, "unknown_invocation")
    );
}

#[tokio::test]
async fn an_id_that_is_none_is_told_apart_from_one_that_is_unknown() {
    let server = Place::new().start().await;
    for (id, status, code) in [
        ("none", 400, "bad_id"),
        ("0192f0e0-0000-7000-8000-00000000000g", 400, "bad_id"),
        (
            "0192f0e0-0000-7000-8000-000000000000",
            404,
            "unknown_invocation",
        ),
    ] {
        for request in [
            Request::get(format!("/invocations/{id}")),
            Request::post(format!("/invocations/{id}/cancel"), ""),
        ] {
            let refused = server.send(request).await;
            assert_eq!(
                (refused.status(), refused.code().as_str()),
                (status, code),
                "{id}"
            );
        }
    }
}

#[tokio::test]
async fn what_ended_can_be_looked_at_after_a_restart() {
    let place = Place::new();
    let server = place.start().await;
    let result = server.call("echo", json!({ "message": "kept" })).await;
    let id = result.json()["invocation_id"].as_str().unwrap().to_owned();
    server.shut_down().await;
    let server = place.start().await;
    let told = server.ended(&id).await;
    assert!(told.text().contains(result.text()), "{told:?}");
}
