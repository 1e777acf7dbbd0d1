//! Hooks and cancellation, callers that stop waiting, nested calls, acknowledgement.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolpost_core::HookOutput;
use toolpost_model::{
    Declaration, EffectClass, ErrorClass, FnTool, HookEvent, HookStanding, NestedCall, Outcome,
    Principal, ResultContent, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_testkit::TestHost;

use super::{Probe, act, host, last, runs};

/// A hook that says when it is asked and waits to be let go.
fn held(event: HookEvent) -> (Probe, Arc<Semaphore>, Arc<Semaphore>) {
    let asked = Arc::new(Semaphore::new(0));
    let go = Arc::new(Semaphore::new(0));
    let inside = (Arc::clone(&asked), Arc::clone(&go));
    let probe = Probe::asking(event, move |_, _| {
        let (asked, go) = inside.clone();
        Box::pin(async move {
            asked.add_permits(1);
            go.acquire().await.unwrap().forget();
            Ok(HookOutput::replace("blotted", ""))
        })
    });
    (
        Probe {
            limit: Some(Duration::from_secs(50)),
            ..probe
        },
        asked,
        go,
    )
}

#[tokio::test]
async fn a_call_that_is_canceled_while_a_hook_thinks_never_starts() {
    let (probe, asked, _go) = held(HookEvent::Before);
    let tool = act();
    let host = host(&tool, [probe]).await;
    let handle = host.host.start(host.request("act", json!({}))).await;
    asked.acquire().await.unwrap().forget();
    assert!(
        host.host
            .cancel(handle.invocation_id(), &Principal::agent("test"))
    );
    let answer = handle.answer().await;
    assert_eq!(
        (answer.result().outcome, tool.call_count()),
        (Outcome::Canceled, 0)
    );
    assert_eq!(
        runs(&host).await[0]["error"],
        "the call ended before the hook answered"
    );
}

#[tokio::test]
async fn a_cancel_does_not_get_a_result_past_a_hook() {
    let (probe, asked, go) = held(HookEvent::After);
    let host = host(&act(), [probe.standing(HookStanding::Guard)]).await;
    let handle = host.host.start(host.request("act", json!({}))).await;
    asked.acquire().await.unwrap().forget();
    host.host
        .cancel(handle.invocation_id(), &Principal::agent("test"));
    go.add_permits(1);
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Succeeded, "it was done");
    assert_eq!(answer.result().content, [ResultContent::text("blotted")]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_for_a_hook_is_told_that_nothing_ran() {
    let (probe, ..) = held(HookEvent::Before);
    let tool = act();
    let host = host(&tool, [probe]).await;
    let mut request = host.request("act", json!({}));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(20)));
    let answer = host.host.call(request).await;
    assert_eq!(
        (answer.result().error_class(), tool.call_count()),
        (Some(ErrorClass::Queued), 0)
    );
}

/// Calls `demo.act`.
struct Outer;

impl Tool for Outer {
    fn declaration(&self) -> Declaration {
        Declaration::new("demo.outer".parse().unwrap(), "Calls another tool")
    }
    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let nested = NestedCall::new("act", json!({ "n": 1 }));
        Ok(serde_json::to_value(call.context.call_tool(nested).await?)?.into())
    }
}

#[tokio::test]
async fn a_nested_call_passes_the_hooks_like_any_other() {
    let stop = Probe::asking(HookEvent::Before, |call, _| {
        let inner = call.declaration.tool_id.as_str() == "demo.act";
        let said = if inner {
            HookOutput::stop("not from inside")
        } else {
            HookOutput::proceed()
        };
        Box::pin(std::future::ready(Ok(said)))
    });
    let tool = act();
    let host = TestHost::build(|builder| builder.tool(Outer).tool(tool.clone()).hook(stop)).await;
    let result = host.call("outer", json!({})).await;
    assert_eq!((result.outcome, tool.call_count()), (Outcome::Succeeded, 0));
    assert_eq!(
        result.structured_content.unwrap()["error"]["class"],
        "hook_blocked"
    );
}

#[tokio::test]
async fn a_panicking_tool_is_still_told_to_the_hooks() {
    let probe = Probe::silent();
    let seen = probe.seen.clone();
    let tool = FnTool::named("demo.act")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: serde_json::Map<String, Value>, _| async move {
            let out_of_ink = true;
            assert!(!out_of_ink, "out of ink");
            Ok::<_, ToolFailure>("done")
        });
    let host = TestHost::build(|builder| builder.tool(tool).hook(probe)).await;
    assert_eq!(
        host.call("act", json!({})).await.error.unwrap().code,
        "panicked"
    );
    assert_eq!(seen.lock().unwrap()[1].0, HookEvent::Failure);
    assert_eq!(last(&host).await["hooks"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn hooks_hear_of_calls_that_never_ran_but_not_of_calls_of_no_tool() {
    let probe = Probe::silent();
    let seen = probe.seen.clone();
    let host = host(&act(), [probe]).await;
    host.call("nothing", json!({})).await;
    assert!(seen.lock().unwrap().is_empty());
    host.call("act", json!({ "n": "one" })).await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!(
        seen,
        [(
            HookEvent::Failure,
            json!({ "n": "one" }),
            Some("failed".to_owned())
        )]
    );
}
