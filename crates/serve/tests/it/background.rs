//! Calls that go on without their caller, and calls of one turn.

use serde_json::{Value, json};
use toolpost_model::{EffectClass, PrincipalRole};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::Request,
    running::{Place, Running},
};

const BOB: &str = "bob-has-a-token";

async fn serve(tools: &[&MockNativeTool]) -> Running {
    let place = Place::without_native_tools().with_token("bob", PrincipalRole::Agent, BOB);
    let tools: Vec<MockNativeTool> = tools.iter().map(|&tool| tool.clone()).collect();
    place
        .start_with(|builder| {
            tools
                .into_iter()
                .fold(builder, |builder, tool| builder.tool(tool))
        })
        .await
}

#[tokio::test]
async fn a_call_in_the_background_is_answered_at_once_and_asked_for_by_its_id() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .class(EffectClass::Execute)
        .output("done");
    let server = serve(&[&tool]).await;
    let begun = server
        .send(Request::post("/tools/wait/call?background=true", "{}"))
        .await;
    let told = begun.json();
    assert_eq!(
        (begun.status(), &told["status"]),
        (202, &json!("backgrounded"))
    );
    let path = format!("/invocations/{}", told["invocation_id"].as_str().unwrap());
    gate.entered(1).await;
    let early = server
        .send(Request::get(format!("{path}?wait=0.01")))
        .await
        .json();
    assert_eq!(early["status"], "running");
    let stranger = server
        .send(Request::get(format!("{path}?wait=0.01")).bearer(BOB))
        .await;
    assert_eq!(stranger.status(), 404);
    let waiting = server.begin(Request::get(format!("{path}?wait=50"))).await;
    gate.let_through(1);
    let mut waiting = waiting;
    let ended = waiting.receive().await.json();
    assert_eq!(
        (&ended["status"], &ended["result"]["outcome"]),
        (&json!("ended"), &json!("succeeded"))
    );
    for bad in ["?wait=0", "?wait=-1", "?wait=soon", "?wiat=1"] {
        assert_eq!(
            server
                .send(Request::get(format!("{path}{bad}")))
                .await
                .status(),
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn a_repeat_of_a_call_in_the_background_finds_the_same_one() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .class(EffectClass::Execute);
    let server = serve(&[&tool]).await;
    let request = Request::post("/tools/wait/call?background=true", "{}").key("k");
    let one = server.send(request.clone()).await;
    let two = server.send(request.clone()).await;
    assert_eq!((one.status(), two.status()), (202, 202));
    assert_eq!(one.json(), two.json());
    gate.entered(1).await;
    gate.let_through(1);
    server
        .ended(one.json()["invocation_id"].as_str().unwrap())
        .await;
    let over = server.send(request).await;
    assert_eq!(
        (over.status(), &over.json()["outcome"]),
        (200, &json!("succeeded"))
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_call_that_depends_on_another_waits_for_its_success() {
    let gate = MockToolGate::new();
    let first = MockNativeTool::named("demo.first")
        .gate(&gate)
        .class(EffectClass::Execute);
    let second = MockNativeTool::named("demo.second").class(EffectClass::Execute);
    let server = serve(&[&first, &second]).await;
    let batch = |index: u32, depends_on: &[u32]| {
        let place = json!({ "id": "turn", "index": index, "depends_on": depends_on });
        place
            .to_string()
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect::<String>()
    };
    let mut one = server
        .begin(Request::post(
            format!("/tools/first/call?batch={}", batch(0, &[])),
            "{}",
        ))
        .await;
    gate.entered(1).await;
    let mut two = server
        .begin(Request::post(
            format!("/tools/second/call?batch={}", batch(1, &[0])),
            "{}",
        ))
        .await;
    let before = server.send(Request::get("/health")).await;
    assert_eq!((before.status(), second.call_count()), (200, 0));
    gate.let_through(1);
    let outcomes: [Value; 2] = [one.receive().await.json(), two.receive().await.json()];
    assert!(
        outcomes
            .iter()
            .all(|result| result["outcome"] == "succeeded"),
        "{outcomes:?}"
    );
    assert_eq!(second.call_count(), 1);
}

#[tokio::test]
async fn a_place_that_is_none_is_refused() {
    let tool = MockNativeTool::named("demo.wait");
    let server = serve(&[&tool]).await;
    for bad in [
        "x",
        "%7B%7D",
        "%7B%22id%22%3A%22a%22%2C%22index%22%3A-1%7D",
        "%5B%5D",
    ] {
        let refused = server
            .send(Request::post(format!("/tools/wait/call?batch={bad}"), "{}"))
            .await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_batch"),
            "{bad}"
        );
    }
    for bad in ["patience=-1", "patience=86401", "patience=NaN"] {
        let refused = server
            .send(Request::post(format!("/tools/wait/call?{bad}"), "{}"))
            .await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_patience"),
            "{bad}"
        );
    }
    assert_eq!(tool.call_count(), 0);
}
