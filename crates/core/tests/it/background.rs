//! Calls that outlive their caller's turn, and the operator's limits for tools and sources.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{CallHandleState, RecordKind, StatusWord};
use toolpost_model::{
    CallReport, Declaration, EffectClass, Effects, ErrorClass, Interrupt, InvocationId, Outcome,
    Principal, Tool, ToolCall, ToolFailure, ToolOutput, ToolSettings,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

#[tokio::test]
async fn a_call_in_the_background_outlives_its_handle_and_is_asked_for_by_its_id() {
    let gate = MockToolGate::new();
    let host = TestHost::with(
        MockNativeTool::named("demo.wait")
            .output("done")
            .gate(&gate),
    )
    .await;
    let mut request = host.request("wait", json!({}));
    request.delivery.background = true;
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::ZERO));
    let handle = host.host.start(request).await;
    assert!(matches!(handle.standing(), CallHandleState::Backgrounded));
    handle.accepted().await;
    let accepted = host
        .records()
        .await
        .iter()
        .any(|row| row.record.kind == RecordKind::Accepted);
    assert!(accepted, "what is acknowledged is on record");
    let id = handle.invocation_id();
    drop(handle);
    let me = Principal::agent("test");
    let other = Principal::agent("other");
    gate.entered(1).await;
    let view = host
        .host
        .wait(id, &me, Duration::ZERO)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.status, StatusWord::Running);
    assert!(
        host.host
            .wait(id, &other, Duration::ZERO)
            .await
            .unwrap()
            .is_none(),
        "not another's"
    );
    gate.let_through(1);
    let view = host
        .host
        .wait(id, &me, Duration::from_secs(60))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.status, StatusWord::Ended);
    let result: Value = serde_json::from_str(view.result.unwrap().get()).unwrap();
    assert_eq!(
        (&result["outcome"], &result["content"][0]["text"]),
        (&json!("succeeded"), &json!("done"))
    );
    let unknown = host
        .host
        .wait(InvocationId::new(), &me, Duration::from_secs(60))
        .await
        .unwrap();
    assert!(unknown.is_none());
}

/// Looks at a call, or stops it, as the tools for that do.
struct Look {
    stop: bool,
}

impl Tool for Look {
    fn declaration(&self) -> Declaration {
        let id = if self.stop { "demo.stop" } else { "demo.look" };
        Declaration::new(id.parse().unwrap(), "Looks at another call")
    }

    fn effects(&self, _: &toolpost_model::CallInput) -> Option<Effects> {
        Some(Effects {
            unscheduled: true,
            ..Effects::of(EffectClass::Read)
        })
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let id = call.input.arguments().str("id").unwrap_or_default();
        let id = if id == "self" {
            call.context.invocation_id()
        } else {
            id.parse()?
        };
        let report: CallReport = if self.stop {
            call.context.cancel_call(id).await?
        } else {
            call.context
                .look_at_call(id, Duration::from_millis(1))
                .await?
        };
        let outcome = report.result.map(|result| result.outcome.as_str());
        Ok(json!({ "under_way": report.stage.is_some(), "outcome": outcome }).into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_looks_at_its_callers_own_calls_even_beside_one_that_runs_alone() {
    let gate = MockToolGate::new();
    let host = TestHost::build(|builder| {
        let alone = MockNativeTool::named("demo.alone")
            .class(EffectClass::Unknown)
            .gate(&gate);
        builder
            .tool(alone)
            .tool(Look { stop: false })
            .tool(Look { stop: true })
    })
    .await;
    let mut request = host.request("alone", json!({}));
    request.delivery.background = true;
    let handle = host.host.start(request).await;
    gate.entered(1).await;
    let id = handle.invocation_id().to_string();
    let look = |tool: &'static str, id: String| {
        let host = &host;
        async move { host.call(tool, json!({ "id": id })).await }
    };
    let running = look("look", id.clone()).await;
    assert_eq!(
        running.structured_content.unwrap(),
        json!({ "under_way": true, "outcome": null })
    );
    // Neither another's calls nor the very call that asks.
    let mut foreign = host.request("look", json!({ "id": id }));
    foreign.session = host.host.default_session(&Principal::agent("other"));
    let foreign = host.host.call(foreign).await;
    assert_eq!(
        foreign.result().error.as_ref().unwrap().code,
        "unknown_call"
    );
    let mut operator = host.request("look", json!({ "id": id }));
    operator.session = host.host.default_session(&Principal::operator("boss"));
    assert!(
        host.host.call(operator).await.result().is_error,
        "not even where the caller is an operator"
    );
    assert_eq!(
        look("look", "self".to_owned()).await.error.unwrap().class,
        ErrorClass::InvalidArguments
    );
    let stopped = look("stop", id.clone()).await;
    assert_eq!(stopped.structured_content.unwrap()["under_way"], true);
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
    let ended = look("look", id).await;
    assert_eq!(
        ended.structured_content.unwrap(),
        json!({ "under_way": false, "outcome": "canceled" })
    );
}

fn settings(change: impl FnOnce(&mut ToolSettings)) -> HashMap<String, ToolSettings> {
    let mut settings = ToolSettings::default();
    change(&mut settings);
    HashMap::from([("wait".to_owned(), settings)])
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_not_run_again() {
    for class in [ErrorClass::DependencyUnavailable, ErrorClass::RateLimited] {
        let away = MockNativeTool::named("demo.away")
            .class(EffectClass::Read)
            .failing(ToolFailure::of(class, "it is away"));
        let host = TestHost::with(away.clone()).await;
        let error = host.call("away", json!({})).await.error.unwrap();
        assert_eq!((error.class, error.retry.safe), (class, true));
        assert_eq!(away.call_count(), 1, "{class:?}");
    }
}

#[tokio::test]
async fn the_operators_limits_for_a_tool_and_a_source_hold_over_all_sessions() {
    for by_source in [false, true] {
        let gate = MockToolGate::new();
        let wait = MockNativeTool::named("demo.wait").gate(&gate);
        let limit = settings(|settings| settings.execution.concurrency = (!by_source).then_some(2));
        let host = TestHost::build(|builder| {
            let builder =
                builder.source(toolpost_model::ToolSet::new("here", [Arc::new(wait) as _]));
            let builder = builder
                .tool(MockNativeTool::named("demo.free"))
                .settings(limit);
            if by_source {
                builder.source_limit("here", 2)
            } else {
                builder
            }
        })
        .await;
        let mut handles = Vec::new();
        for caller in 0..4 {
            let mut request = host.request("wait", json!({}));
            request.session = host
                .host
                .default_session(&Principal::agent(&format!("agent {caller}")));
            handles.push(host.host.start(request).await);
        }
        gate.entered(2).await;
        while host.host.health().queued < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            host.call("free", json!({})).await.outcome,
            Outcome::Succeeded,
            "others are not held up"
        );
        assert_eq!(host.host.health().running, 2);
        gate.let_through(4);
        for handle in handles {
            assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
        }
    }
}

#[tokio::test]
async fn the_operator_says_what_is_alone_and_what_is_interrupted() {
    let gate = MockToolGate::new();
    let wait = MockNativeTool::named("demo.wait")
        .class(EffectClass::Read)
        .gate(&gate);
    let alone = settings(|settings| {
        settings.execution.exclusive = Some(true);
        settings.execution.interrupt = Some(Interrupt::Cancel);
    });
    let host = TestHost::build(|builder| builder.tool(wait).settings(alone)).await;
    let entry = host.host.catalog().get("wait").cloned().unwrap();
    assert_eq!(
        entry.declaration().interface.execution.interrupt,
        Interrupt::Cancel
    );
    let first = host.host.start(host.request("wait", json!({}))).await;
    gate.entered(1).await;
    let second = host.host.start(host.request("wait", json!({}))).await;
    while host.host.health().queued < 1 {
        tokio::task::yield_now().await;
    }
    gate.let_through(2);
    for handle in [first, second] {
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    }
    // And what need not be alone although its tool does not say so.
    let gate = MockToolGate::new();
    let unknown = MockNativeTool::named("demo.wait")
        .class(EffectClass::Unknown)
        .gate(&gate);
    let beside = settings(|settings| settings.execution.exclusive = Some(false));
    let host = TestHost::build(|builder| builder.tool(unknown).settings(beside)).await;
    let handles = [
        host.host.start(host.request("wait", json!({}))).await,
        host.host.start(host.request("wait", json!({}))).await,
    ];
    gate.entered(2).await;
    gate.let_through(2);
    for handle in handles {
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    }
}
