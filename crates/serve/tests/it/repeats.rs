//! `Idempotency-Key`: a repeat gets the first answer, byte for byte, and nothing runs twice.

use serde_json::json;
use toolpost_model::{EffectClass, Lifecycle, PrincipalRole, ToolFailure};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::Request,
    running::{Place, Running},
};

fn once(key: &str) -> Request {
    Request::call("once", &json!({ "n": 1 })).key(key)
}

fn counting() -> MockNativeTool {
    MockNativeTool::named("demo.once")
        .class(EffectClass::Write)
        .output("done")
}

async fn server_with(tool: &MockNativeTool) -> Running {
    let tool = tool.clone();
    Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await
}

#[tokio::test]
async fn a_repeat_gets_the_same_bytes() {
    let tool = counting();
    let server = server_with(&tool).await;
    let first = server.send(once("k")).await;
    assert_eq!(first.json()["outcome"], "succeeded");
    for _ in 0..3 {
        let repeat = server.send(once("k")).await;
        assert_eq!(
            (repeat.status(), &repeat.body),
            (first.status(), &first.body)
        );
    }
    assert_eq!(tool.call_count(), 1);
    let other = server.send(once("l")).await;
    assert_ne!(other.json()["invocation_id"], first.json()["invocation_id"]);
    let without = server.send(once("k").without("Idempotency-Key")).await;
    assert_ne!(
        without.json()["invocation_id"],
        first.json()["invocation_id"]
    );
    assert_eq!(tool.call_count(), 3);
}

#[tokio::test]
async fn failures_of_every_kind_are_kept_too() {
    let mut place = Place::without_native_tools();
    place.config.mode = toolpost_model::PermissionMode::NeverAsk;
    let broken = MockNativeTool::named("demo.broken").failing(ToolFailure::new("it broke"));
    let server = place
        .start_with(|builder| {
            let unset =
                |tool: &mut toolpost_model::Declaration| tool.lifecycle = Lifecycle::Disabled;
            builder
                .tool(broken.clone())
                .tool(counting())
                .tool(MockNativeTool::named("demo.off").declare(unset))
        })
        .await;
    for (place, (tool, body, status)) in [
        ("broken", "{}", 200),
        ("once", "{}", 403),
        ("off", "{}", 403),
        ("missing", "{}", 404),
        ("broken", "{", 400),
    ]
    .into_iter()
    .enumerate()
    {
        let request = Request::post(format!("/tools/{tool}/call"), body).key(&format!("k{place}"));
        let first = server.send(request.clone()).await;
        let repeat = server.send(request).await;
        assert_eq!(first.status(), status, "{tool}");
        assert_eq!(
            (repeat.status(), &repeat.body),
            (status, &first.body),
            "{tool}"
        );
    }
    assert_eq!(broken.call_count(), 1);
}

#[tokio::test]
async fn repeats_in_the_same_moment_share_one_call() {
    let gate = MockToolGate::new();
    let tool = counting().gate(&gate);
    let server = server_with(&tool).await;
    let mut connections = vec![server.begin(once("k")).await];
    gate.entered(1).await;
    for place in 0..6 {
        let request = if place % 2 == 0 {
            once("k")
        } else {
            once("k").streamed()
        };
        connections.push(server.begin(request).await);
    }
    // The streams are answered as soon as they have joined the call under way.
    for connection in connections.iter_mut().skip(2).step_by(2) {
        assert_eq!(connection.head().await.status, 200);
    }
    let conflict = server
        .send(Request::call("once", &json!({ "n": 2 })).key("k"))
        .await;
    assert_eq!(
        (conflict.status(), conflict.code().as_str()),
        (409, "request_conflict")
    );
    gate.let_through(1);
    let mut bodies = Vec::new();
    for (place, connection) in connections.iter_mut().enumerate() {
        bodies.push(match place > 0 && place % 2 == 0 {
            true => connection.frames().await.pop().unwrap().data,
            false => connection.receive().await.text().to_owned(),
        });
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:#?}");
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn the_same_key_with_another_call_is_a_conflict() {
    let tool = counting();
    let other = MockNativeTool::named("demo.other");
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool.clone()).tool(other.clone()))
        .await;
    let first = server.send(once("k")).await;
    for request in [
        Request::call("once", &json!({ "n": 2 })).key("k"),
        Request::call("other", &json!({ "n": 1 })).key("k"),
        Request::call("missing", &json!({ "n": 1 })).key("k"),
    ] {
        let conflict = server.send(request).await;
        assert_eq!(conflict.status(), 409);
        let result = conflict.json();
        assert_eq!(
            (&result["outcome"], &result["error"]["class"]),
            (&json!("rejected"), &json!("request_conflict"))
        );
    }
    assert_eq!(
        server.send(once("k")).await.body,
        first.body,
        "the first call keeps the key"
    );
    let spaced = Request::post("/tools/once/call", "{ \"n\":\n 1 }").key("k");
    assert_eq!(
        server.send(spaced).await.body,
        first.body,
        "blanks between tokens mean nothing"
    );
    assert_eq!((tool.call_count(), other.call_count()), (1, 0));
}

#[tokio::test]
async fn a_key_belongs_to_one_session_of_one_caller() {
    let tool = counting();
    let place =
        Place::without_native_tools().with_token("bob", PrincipalRole::Agent, "bob-has-a-token");
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let session = server.open_session(Request::post("/sessions", "")).await;
    let mut ids = Vec::new();
    for request in [
        once("k"),
        once("k").session(&session),
        once("k").bearer("bob-has-a-token"),
    ] {
        ids.push(
            server.send(request).await.json()["invocation_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), tool.call_count()), (3, 3));
}

#[tokio::test]
async fn a_key_must_be_printable_and_short() {
    let tool = counting();
    let server = server_with(&tool).await;
    for key in ["".to_owned(), "x".repeat(257)] {
        let refused = server.send(once(&key)).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_key"),
            "{key:?}"
        );
    }
    let refused = server
        .send(once("k").header("Idempotency-Key", b"k\xe4y"))
        .await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (400, "bad_key")
    );
    assert_eq!(tool.call_count(), 0);
    assert_eq!(server.send(once(&"x".repeat(256))).await.status(), 200);
}

#[tokio::test]
async fn a_repeat_gets_the_same_bytes_from_the_next_server() {
    let tool = counting();
    let mut place = Place::without_native_tools();
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let session = server.open_session(Request::post("/sessions", "")).await;
    let plain = server.send(once("k")).await;
    let in_session = server.send(once("k").session(&session)).await;
    server.shut_down().await;

    // What the tool would say now must not matter, nor whether it would be allowed.
    place.config.mode = toolpost_model::PermissionMode::Plan;
    let changed = counting().output("changed");
    let server = place
        .start_with(|builder| builder.tool(changed.clone()))
        .await;
    assert_eq!(server.send(once("k")).await.body, plain.body);
    assert_eq!(
        server.send(once("k").session(&session)).await.body,
        in_session.body
    );
    let conflict = server
        .send(Request::call("once", &json!({})).key("k"))
        .await;
    assert_eq!(conflict.status(), 409);
    assert_eq!((tool.call_count(), changed.call_count()), (2, 0));
}
