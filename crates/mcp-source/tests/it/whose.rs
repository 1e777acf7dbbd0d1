//! Whose words those are that a server does not put to any call.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::CallRequest;
use toolpost_model::{EventBody, ModelInput, Outcome, Principal, SurfaceRequest, ToolResult};

use crate::{
    calls::Person,
    stage::{Ear, Stage},
};

/// A call that is stopped and goes on speaking, while another one runs: what that one ended with, and heard.
async fn beside_a_stopped_call(stage: &Stage, same_session: bool) -> (ToolResult, Vec<EventBody>) {
    let session = match same_session {
        true => Arc::clone(&stage.test.session),
        false => {
            let opened = stage
                .test
                .host
                .open_session(Principal::agent("other"), SurfaceRequest::default())
                .await;
            opened.unwrap()
        }
    };
    let mut stopped = CallRequest::new(session, "fix__linger", ModelInput::value(json!({})));
    stopped.times.timeout = Some(Duration::from_millis(500));
    let (ear, mut events) = Ear::new();
    let mut running = stage.test.request("fix__outlast", json!({}));
    running.delivery.caller = Some(Arc::new(Person(
        json!({ "action": "accept", "content": { "name": "ada" } }),
    )));
    running.delivery.listener = Some(Arc::new(ear));
    let (stopped, running) =
        tokio::join!(stage.test.host.call(stopped), stage.test.host.call(running));
    assert_eq!(stopped.result().outcome, Outcome::TimedOut);
    let mut heard = Vec::new();
    while let Ok(event) = events.try_recv() {
        heard.push(event.body);
    }
    (running.result().clone(), heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stopped_call_says_reaches_no_other_session() {
    let stage = Stage::new("lingers").await;
    let (result, heard) = beside_a_stopped_call(&stage, false).await;
    let told: Value = serde_json::from_str(&result.model_text()).unwrap();
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("the call that this request belongs to"),
        "{told}"
    );
    let strange = |event: &EventBody| matches!(event, EventBody::Log { message, .. } if message == "words of another");
    assert!(!heard.iter().any(strange), "{heard:?}");
    // Nothing was heard of that call yet, so the next question could be its own, too.
    let mut asks = stage.test.request("fix__ask", json!({}));
    asks.delivery.caller = Some(Arc::new(Person(json!({ "action": "accept" }))));
    let asked = stage.test.host.call(asks).await.result().model_text();
    assert!(
        asked.contains("the call that this request belongs to"),
        "{asked}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn within_one_session_the_only_call_under_way_is_asked() {
    let stage = Stage::new("lingers").await;
    let (result, heard) = beside_a_stopped_call(&stage, true).await;
    let told: Value = serde_json::from_str(&result.model_text()).unwrap();
    assert_eq!(
        told,
        json!({ "action": "accept", "content": { "name": "ada" } }),
        "{heard:?}"
    );
}
