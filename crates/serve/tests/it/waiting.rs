//! How long a caller waits over HTTP: patience limits the wait for approval or a slot, never the work, and a call with a key
//! stays.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_model::{EffectClass, PermissionMode, PrincipalRole};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Request, Response},
    running::{Place, Running},
};

const OLGA: &str = "olga-has-a-token";
/// Over before a person could answer.
const SHORT: Duration = Duration::from_millis(20);

/// A place that asks about calls of class `execute` and has the given `http.patience`.
fn place(patience: Duration) -> Place {
    let mut place = Place::without_native_tools().with_token("olga", PrincipalRole::Operator, OLGA);
    place.config.mode = PermissionMode::Default;
    place.config.http.patience = patience;
    place
}

fn push() -> MockNativeTool {
    MockNativeTool::named("demo.push")
        .class(EffectClass::Execute)
        .output("pushed")
}

async fn serve(place: &Place, tools: &[&MockNativeTool]) -> Running {
    let tools: Vec<MockNativeTool> = tools.iter().map(|&tool| tool.clone()).collect();
    place
        .start_with(|builder| {
            tools
                .into_iter()
                .fold(builder, |builder, tool| builder.tool(tool))
        })
        .await
}

/// The questions, once there are `count`.
async fn questions(server: &Running, count: usize) -> Vec<Value> {
    for _ in 0..10_000 {
        let listed = server
            .send(Request::get("/approvals").bearer(OLGA))
            .await
            .json();
        let questions = listed["approvals"].as_array().unwrap().clone();
        if questions.len() == count {
            return questions;
        }
    }
    panic!("there are never {count} questions");
}

async fn allow(server: &Running, ask_id: &Value) -> Response {
    let request = Request::post(
        format!("/approvals/{}", ask_id.as_str().unwrap()),
        r#"{"decision":"allow"}"#,
    );
    let answered = server.send(request.bearer(OLGA)).await;
    assert_eq!(answered.status(), 200, "{answered:?}");
    answered
}

/// Checks that a call stays for its question, and gives the body.
#[track_caller]
fn parked(response: &Response) -> Value {
    let told = response.json();
    assert_eq!(
        (response.status(), &told["status"]),
        (202, &json!("approval_pending")),
        "{told}"
    );
    let address = format!("/invocations/{}", told["invocation_id"].as_str().unwrap());
    assert_eq!(response.head.header("location"), Some(address.as_str()));
    assert!(
        told["ask_id"].is_string() && told["expires_at"].is_string(),
        "{told}"
    );
    told
}

#[tokio::test]
async fn patience_does_not_end_the_work() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .class(EffectClass::Read)
        .output("done");
    let server = serve(&place(SHORT), &[&tool]).await;
    let call = || Request::post("/tools/wait/call?patience=1", "{}");
    let mut plain = [
        server.begin(call()).await,
        server.begin(call().key("k")).await,
    ];
    let mut streams = [
        server.begin(call().streamed()).await,
        server.begin(call().streamed().key("l")).await,
    ];
    gate.entered(4).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.let_through(4);
    for call in &mut plain {
        let result = call.receive().await.json();
        assert_eq!(result["outcome"], "succeeded", "{result}");
    }
    for stream in &mut streams {
        stream.head().await;
        let result: Value =
            serde_json::from_str(&stream.frames().await.pop().unwrap().data).unwrap();
        assert_eq!(result["outcome"], "succeeded", "{result}");
    }
}

#[tokio::test]
async fn a_call_with_a_key_stays_parked_and_runs_once_after_the_yes() {
    let place = place(SHORT);
    let tool = push();
    let server = serve(&place, &[&tool]).await;
    let call = Request::call("push", &json!({ "branch": "main" })).key("k");
    let told = parked(&server.send(call.clone()).await);
    assert_eq!(
        questions(&server, 1).await[0]["waiting"],
        1,
        "the call itself waits"
    );
    assert_eq!(
        parked(&server.send(call.clone()).await),
        told,
        "a repeat finds the same call"
    );
    let other = server
        .send(Request::call("push", &json!({ "branch": "other" })).key("k"))
        .await;
    assert_eq!(
        (other.status(), other.code().as_str()),
        (409, "request_conflict")
    );
    let address = format!("/invocations/{}", told["invocation_id"].as_str().unwrap());
    let still = server
        .send(Request::get(format!("{address}?wait=0.01")))
        .await
        .json();
    assert_eq!(
        (&still["status"], &still["stage"]),
        (&json!("running"), &json!("await_approval"))
    );
    let mut waiting = server
        .begin(Request::get(format!("{address}?wait=50")))
        .await;
    let decided = allow(&server, &told["ask_id"]).await.json();
    assert!(
        decided["decided"]["kept_until"].is_null(),
        "the call takes the answer: {decided}"
    );
    let ended = waiting.receive().await.json();
    assert_eq!(
        (&ended["status"], &ended["result"]["outcome"]),
        (&json!("ended"), &json!("succeeded"))
    );
    assert_eq!(ended["result"]["invocation_id"], told["invocation_id"]);
    let one = server.send(call.clone()).await;
    let two = server.send(call).await;
    assert_eq!((one.status(), &one.body), (200, &two.body));
    assert_eq!(one.json(), ended["result"]);
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_repeat_that_waits_gets_the_result_of_the_parked_call() {
    let place = place(SHORT);
    let tool = push();
    let server = serve(&place, &[&tool]).await;
    let told = parked(
        &server
            .send(Request::call("push", &json!({})).key("k"))
            .await,
    );
    let mut repeat = server
        .begin(Request::post("/tools/push/call?patience=60", "{}").key("k"))
        .await;
    allow(&server, &told["ask_id"]).await;
    let result = repeat.receive().await.json();
    assert_eq!(
        (&result["outcome"], &result["invocation_id"]),
        (&json!("succeeded"), &told["invocation_id"])
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_parked_call_outlives_its_host() {
    let place = place(SHORT);
    let tool = push();
    let call = Request::call("push", &json!({})).key("k");
    let server = serve(&place, &[&tool]).await;
    let told = parked(&server.send(call.clone()).await);
    server.shut_down().await;
    let server = serve(&place, &[&tool]).await;
    assert_eq!(
        parked(&server.send(call.clone()).await),
        told,
        "the next host goes on with it"
    );
    // So it does with a call whose caller still waits when the host goes.
    let patient = Request::post("/tools/push/call?patience=60", r#"{"n":2}"#).key("patient");
    let mut waiting = server.begin(patient.clone()).await;
    questions(&server, 2).await;
    server.shut_down().await;
    let other = parked(&waiting.receive().await);
    let server = serve(&place, &[&tool]).await;
    questions(&server, 2).await;
    for (told, call) in [(told, call), (other, patient)] {
        allow(&server, &told["ask_id"]).await;
        let ended = server
            .ended(told["invocation_id"].as_str().unwrap())
            .await
            .json();
        assert_eq!(ended["result"]["outcome"], "succeeded");
        assert_eq!(server.send(call).await.json(), ended["result"]);
    }
    assert_eq!(tool.call_count(), 2);
}

#[tokio::test]
async fn a_no_reaches_a_parked_call() {
    let place = place(SHORT);
    let tool = push();
    let server = serve(&place, &[&tool]).await;
    let call = Request::call("push", &json!({})).key("k");
    let told = parked(&server.send(call.clone()).await);
    let no = Request::post(
        format!("/approvals/{}", told["ask_id"].as_str().unwrap()),
        r#"{"decision":"deny"}"#,
    );
    assert_eq!(server.send(no.bearer(OLGA)).await.status(), 200);
    server.ended(told["invocation_id"].as_str().unwrap()).await;
    let refused = server.send(call).await;
    assert_eq!(
        (refused.status(), &refused.json()["error"]["class"]),
        (403, &json!("approval_rejected"))
    );
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn without_a_key_the_answer_is_pending_and_a_yes_is_for_one_call() {
    let place = place(SHORT);
    let tool = push();
    let server = serve(&place, &[&tool]).await;
    let call = Request::call("push", &json!({}));
    let early = server.send(call.clone()).await;
    assert_eq!(
        (early.status(), &early.json()["error"]["class"]),
        (409, &json!("approval_pending"))
    );
    let question = questions(&server, 1).await.remove(0);
    assert_eq!(question["waiting"], 0);
    let decided = allow(&server, &question["ask_id"]).await.json();
    assert!(decided["decided"]["kept_until"].is_string(), "{decided}");
    assert_eq!(
        server.send(call.clone()).await.json()["outcome"],
        "succeeded"
    );
    assert_eq!(
        server.send(call).await.status(),
        409,
        "the grant is used up"
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn the_callers_patience_overrides_the_default() {
    let mut place = place(Duration::from_secs(3_000));
    let tool = push();
    place.config.approvals.timeout = Duration::from_secs(3_600);
    let server = serve(&place, &[&tool]).await;
    let call =
        |patience: &str| Request::post(format!("/tools/push/call?patience={patience}"), "{}");
    for patience in ["0", "0.01"] {
        let early = server.send(call(patience)).await;
        assert_eq!(
            (early.status(), &early.json()["error"]["class"]),
            (409, &json!("approval_pending"))
        );
        parked(&server.send(call(patience).key("k")).await);
    }
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn streams_and_background_calls_are_not_limited_by_default() {
    let place = place(Duration::from_millis(1));
    let tool = push();
    let server = serve(&place, &[&tool]).await;
    let mut streams = Vec::new();
    for key in [None, Some("k")] {
        let request = Request::call("push", &json!({ "key": key })).streamed();
        let mut stream = server
            .begin(key.map_or(request.clone(), |key| request.key(key)))
            .await;
        stream.head().await;
        while stream.frame().await.unwrap().event != "approval" {}
        streams.push(stream);
    }
    let background = server
        .send(Request::post(
            "/tools/push/call?background=true",
            r#"{"key":"b"}"#,
        ))
        .await;
    assert_eq!(
        (background.status(), &background.json()["status"]),
        (202, &json!("backgrounded"))
    );
    let address = format!(
        "/invocations/{}",
        background.json()["invocation_id"].as_str().unwrap()
    );
    assert_eq!(background.head.header("location"), Some(address.as_str()));
    tokio::time::sleep(SHORT).await;
    for question in questions(&server, 3).await {
        allow(&server, &question["ask_id"]).await;
    }
    for mut stream in streams {
        let last = stream.frames().await.pop().unwrap();
        let result: Value = serde_json::from_str(&last.data).unwrap();
        assert_eq!(
            (last.event.as_str(), &result["outcome"]),
            ("result", &json!("succeeded"))
        );
    }
    let ended = server
        .ended(background.json()["invocation_id"].as_str().unwrap())
        .await
        .json();
    assert_eq!(ended["result"]["outcome"], "succeeded");
}

#[tokio::test]
async fn a_stream_with_a_key_ends_when_its_patience_is_over_and_the_call_stays() {
    let place = place(SHORT);
    let tool = push();
    let server = serve(&place, &[&tool]).await;
    let request = Request::post("/tools/push/call?patience=0.5", "{}").streamed();
    let last = |frames: Vec<super::client::Frame>| {
        let last = frames.last().unwrap().clone();
        (
            last.event,
            serde_json::from_str::<Value>(&last.data).unwrap(),
        )
    };
    let mut stream = server.begin(request.clone().key("k")).await;
    stream.head().await;
    let (event, told) = last(stream.frames().await);
    assert_eq!(
        (event.as_str(), &told["status"]),
        ("pending", &json!("approval_pending")),
        "{told}"
    );
    let mut repeat = server.begin(request.clone().key("k")).await;
    repeat.head().await;
    assert_eq!(last(repeat.frames().await), (event, told.clone()));
    // Without a key nobody finds the call again, so it ends.
    let mut stream = server.begin(request).await;
    stream.head().await;
    let (event, result) = last(stream.frames().await);
    assert_eq!(
        (event.as_str(), &result["error"]["class"]),
        ("result", &json!("approval_pending"))
    );
    allow(&server, &told["ask_id"]).await;
    let ended = server
        .ended(told["invocation_id"].as_str().unwrap())
        .await
        .json();
    assert_eq!(
        (&ended["result"]["outcome"], tool.call_count()),
        (&json!("succeeded"), 1)
    );
}

#[tokio::test]
async fn a_queue_is_limited_by_the_callers_patience_only() {
    let gate = MockToolGate::new();
    let wait = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .class(EffectClass::Read)
        .output("done");
    let mut place = place(Duration::from_millis(1));
    place.config.limits.concurrency = 1;
    let server = serve(&place, &[&wait]).await;
    let call = |query: &str| Request::post(format!("/tools/wait/call{query}"), "{}");
    let mut first = server.begin(call("")).await;
    gate.entered(1).await;
    let hasty = server.send(call("?patience=0.01")).await;
    assert_eq!(
        (hasty.status(), &hasty.json()["error"]["class"]),
        (429, &json!("queued"))
    );
    let stays = server.send(call("?patience=0.01").key("k")).await;
    let told = stays.json();
    assert_eq!(
        (stays.status(), &told["status"]),
        (202, &json!("queued")),
        "{told}"
    );
    let mut patient = vec![
        server.begin(call("")).await,
        server.begin(call("?patience=0")).await,
    ];
    tokio::time::sleep(SHORT).await;
    gate.let_through(4);
    assert_eq!(first.receive().await.status(), 200);
    for call in &mut patient {
        assert_eq!(call.receive().await.json()["outcome"], "succeeded");
    }
    let ended = server
        .ended(told["invocation_id"].as_str().unwrap())
        .await
        .json();
    assert_eq!(
        server.send(call("?patience=0.01").key("k")).await.json(),
        ended["result"]
    );
    assert_eq!(wait.call_count(), 4);
}
