//! A caller that goes away: a call nobody can ask about again is stopped, one that can be repeated goes on.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;
use toolpost_model::{EffectClass, FnTool, InvocationId, Tool, ToolFailure};
use toolpost_testkit::MockToolGate;

use super::{
    client::{Request, within},
    running::{Place, Running},
};

/// What is heard of the calls of [`waiting`].
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Entered(InvocationId),
    Dropped(InvocationId),
}

/// Tells that the work was dropped before its end.
struct Watched {
    id: InvocationId,
    tell: mpsc::UnboundedSender<Heard>,
    done: bool,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.done {
            let _ = self.tell.send(Heard::Dropped(self.id));
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool whose calls wait until `open` is let through, and tell when they begin and when they are dropped.
fn waiting(
    open: &Arc<tokio::sync::Semaphore>,
) -> (impl Tool + use<>, mpsc::UnboundedReceiver<Heard>) {
    let (tell, heard) = mpsc::unbounded_channel();
    let open = Arc::clone(open);
    let tool = FnTool::named("demo.wait")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: Nothing, context| {
            let tell = tell.clone();
            let open = Arc::clone(&open);
            async move {
                let mut watched = Watched {
                    id: context.invocation_id(),
                    tell: tell.clone(),
                    done: false,
                };
                let _ = tell.send(Heard::Entered(watched.id));
                open.acquire().await.unwrap().forget();
                watched.done = true;
                Ok::<_, ToolFailure>("through")
            }
        });
    (tool, heard)
}

async fn next(heard: &mut mpsc::UnboundedReceiver<Heard>) -> Heard {
    within(heard.recv()).await.expect("the tool lives")
}

async fn entered(heard: &mut mpsc::UnboundedReceiver<Heard>) -> InvocationId {
    match next(heard).await {
        Heard::Entered(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn outcome(server: &Running, id: InvocationId) -> String {
    let told = server.ended(&id.to_string()).await.json();
    told["result"]["outcome"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_its_call() {
    let open = Arc::new(tokio::sync::Semaphore::new(0));
    let (tool, mut heard) = waiting(&open);
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    for request in [
        Request::call("wait", &json!({})),
        Request::call("wait", &json!({})).streamed(),
    ] {
        let connection = server.begin(request).await;
        let id = entered(&mut heard).await;
        drop(connection);
        assert_eq!(next(&mut heard).await, Heard::Dropped(id));
        let told = server.ended(&id.to_string()).await.json();
        assert_eq!(told["result"]["outcome"], "canceled");
        let message = told["result"]["error"]["message"].as_str().unwrap();
        assert!(message.contains("the caller disconnected"), "{message}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_after_some_events_ends_its_call() {
    let open = Arc::new(tokio::sync::Semaphore::new(0));
    let (tool, mut heard) = waiting(&open);
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let mut connection = server
        .begin(Request::call("wait", &json!({})).streamed())
        .await;
    connection.head().await;
    connection.frame().await.unwrap();
    let id = entered(&mut heard).await;
    drop(connection);
    assert_eq!(next(&mut heard).await, Heard::Dropped(id));
    assert_eq!(outcome(&server, id).await, "canceled");
}

#[tokio::test]
async fn a_call_with_a_key_goes_on_without_its_caller() {
    let open = Arc::new(tokio::sync::Semaphore::new(0));
    let (tool, mut heard) = waiting(&open);
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let call = Request::call("wait", &json!({}));
    let plain = call.clone().key("plain");
    let streamed = call.clone().key("streamed").streamed();
    let first = server.begin(plain.clone()).await;
    let one = entered(&mut heard).await;
    let second = server.begin(streamed.clone()).await;
    let two = entered(&mut heard).await;
    let third = server.begin(call).await;
    let three = entered(&mut heard).await;
    drop(first);
    drop(second);
    // It went last: once its going is noticed, so was that of the others, and only its call has ended.
    drop(third);
    assert_eq!(next(&mut heard).await, Heard::Dropped(three));
    open.add_permits(2);
    assert_eq!(
        (outcome(&server, one).await, outcome(&server, two).await),
        ("succeeded".into(), "succeeded".into())
    );
    for (request, id) in [(plain, one), (streamed, two)] {
        let repeat = server.send(request.without("Accept")).await;
        assert_eq!(repeat.json()["invocation_id"], id.to_string());
        assert_eq!(repeat.json()["content"][0]["text"], "through");
    }
    assert!(heard.try_recv().is_err(), "nothing ran a second time");
}

#[tokio::test]
async fn a_caller_that_leaves_the_queue_never_starts() {
    let gate = MockToolGate::new();
    let mut place = Place::without_native_tools();
    place.config.limits.concurrency = 1;
    let tool = toolpost_testkit::MockNativeTool::named("demo.wait").gate(&gate);
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let mut running = server.begin(Request::call("wait", &json!({}))).await;
    gate.entered(1).await;
    let mut queued = server
        .begin(Request::call("wait", &json!({})).streamed())
        .await;
    queued.head().await;
    let frame = queued.frame().await.unwrap();
    let id =
        serde_json::from_str::<serde_json::Value>(&frame.data).unwrap()["invocation_id"].clone();
    drop(queued);
    let told = server.ended(id.as_str().unwrap()).await.json();
    assert_eq!(told["result"]["outcome"], "canceled");
    gate.let_through(1);
    assert_eq!(running.receive().await.status(), 200);
    assert_eq!(tool.call_count(), 1);
}
