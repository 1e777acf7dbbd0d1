//! Deadlines, cancellation, panics, limits and shutdown.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::json;
use toolpost_core::{HostLimits, SchedulerLimits};
use toolpost_model::{
    CancelSupport, EffectClass, ErrorClass, EventBody, FnTool, Outcome, Principal,
    ToolExecutionSettings, ToolFailure, ToolOutput, ToolProgress, ToolSettings,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, MockToolGate, TestHost};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_the_work_is_stopped_and_the_guidance_is_honest() {
    for (class, safe) in [(EffectClass::Read, true), (EffectClass::Write, false)] {
        let host = TestHost::with(
            MockNativeTool::named("demo.wait")
                .class(class)
                .gate(&MockToolGate::new()),
        )
        .await;
        let mut request = host.request("wait", json!({}));
        request.times.timeout = Some(Duration::from_millis(50));
        let answer = host.host.call(request).await;
        let error = answer.result().error.clone().unwrap();
        assert_eq!(
            (answer.result().outcome, error.class),
            (Outcome::TimedOut, ErrorClass::Timeout)
        );
        assert_eq!(error.retry.safe, safe);
        assert_eq!(host.host.health().running, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_a_longer_deadline_than_the_ceiling() {
    let limits = HostLimits {
        deadline_ceiling: Duration::from_millis(70),
        ..HostLimits::default()
    };
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("demo.wait").gate(&MockToolGate::new()))
            .limits(limits)
    })
    .await;
    let mut request = host.request("wait", json!({}));
    request.times.timeout = Some(Duration::from_secs(3600));
    let answer = host.host.call(request).await;
    assert!(
        answer
            .result()
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("70 ms")
    );
}

#[tokio::test]
async fn a_running_call_is_canceled_by_its_owner_and_by_nobody_else() {
    let gate = MockToolGate::new();
    let host = TestHost::with(MockNativeTool::named("demo.wait").gate(&gate)).await;
    let handle = host.host.start(host.request("wait", json!({}))).await;
    gate.entered(1).await;
    let id = handle.invocation_id();
    assert!(!host.host.cancel(id, &Principal::agent("stranger")));
    assert!(host.host.cancel(id, &Principal::agent("test")));
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Canceled);
    assert!(
        !host.host.cancel(id, &Principal::agent("test")),
        "it is over"
    );
}

#[tokio::test]
async fn a_tool_that_listens_may_finish_and_then_the_truth_is_told() {
    let tool = FnTool::named("demo.listen")
        .unwrap()
        .class(EffectClass::Write)
        .declare(|d| d.interface.execution.cancel = CancelSupport::Cooperative)
        .run(|_: Nothing, context| async move {
            context.status("listening");
            context.canceled().await;
            Ok::<_, ToolFailure>("finished all the same")
        });
    let host = TestHost::with(tool).await;
    let (events, mut recorder) = CallEventRecorder::new(64);
    let mut request = host.request("listen", json!({}));
    request.delivery.listener = Some(Arc::new(events));
    let handle = host.host.start(request).await;
    while !matches!(
        recorder.next().await.unwrap().body,
        EventBody::Status { .. }
    ) {}
    host.host
        .cancel(handle.invocation_id(), &Principal::agent("test"));
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_tool_still_has_to_say_is_shown() {
    let tool = FnTool::named("demo.talk")
        .unwrap()
        .class(EffectClass::Execute)
        .declare(|d| d.interface.execution.cancel = CancelSupport::Cooperative)
        .run(|_: Nothing, context| async move {
            context.canceled().await;
            let mut failure = ToolFailure::new("stopped").hint("ask for less");
            failure.content = vec![toolpost_model::ResultContent::text("so far")];
            failure.exit_code = Some(137);
            Err::<ToolOutput, _>(failure)
        });
    let host = TestHost::with(tool).await;
    let mut request = host.request("talk", json!({}));
    request.times.timeout = Some(Duration::from_millis(50));
    let answer = host.host.call(request).await;
    let result = answer.result();
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::TimedOut, Some(ErrorClass::Timeout))
    );
    assert_eq!(result.exit_code, Some(137));
    assert!(
        result.model_text().ends_with("so far"),
        "{}",
        result.model_text()
    );
}

#[tokio::test]
async fn dropping_the_handle_cancels_unless_it_was_let_go() {
    let gate = MockToolGate::new();
    let host = TestHost::with(MockNativeTool::named("demo.wait").gate(&gate)).await;
    let handle = host.host.start(host.request("wait", json!({}))).await;
    gate.entered(1).await;
    let dropped = handle.invocation_id();
    drop(handle);
    let mut handle = host.host.start(host.request("wait", json!({}))).await;
    handle.detach();
    gate.entered(1).await;
    let let_go = handle.invocation_id();
    drop(handle);
    gate.let_through(1);
    host.host.shutdown(Duration::from_secs(10)).await;
    for (id, outcome) in [(dropped, "canceled"), (let_go, "succeeded")] {
        let view = host
            .host
            .invocation(id, &Principal::agent("test"))
            .await
            .unwrap()
            .unwrap();
        let result: serde_json::Value = serde_json::from_str(view.result.unwrap().get()).unwrap();
        assert_eq!(result["outcome"], outcome);
    }
}

#[tokio::test]
async fn a_panic_is_a_result_and_the_host_goes_on() {
    let tool = FnTool::named("demo.boom")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, _| async {
            if true {
                panic!("kaboom");
            }
            Ok::<_, ToolFailure>(())
        });
    let host = TestHost::with(tool).await;
    for _ in 0..2 {
        let error = host.call("boom", json!({})).await.error.unwrap();
        assert_eq!(
            (error.class, error.code.as_ref()),
            (ErrorClass::ExecutionFailed, "panicked")
        );
        assert!(error.message.contains("kaboom"));
    }
}

#[tokio::test]
async fn a_full_queue_rejects_with_the_limits_name_and_loses_nothing_else() {
    let gate = MockToolGate::new();
    let limits = HostLimits {
        scheduler: SchedulerLimits {
            concurrency: 1,
            session_concurrency: 1,
            queue: 1,
        },
        ..HostLimits::default()
    };
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("demo.wait").gate(&gate))
            .limits(limits)
    })
    .await;
    let running = host.host.start(host.request("wait", json!({}))).await;
    gate.entered(1).await;
    let (events, mut recorder) = CallEventRecorder::new(64);
    let mut request = host.request("wait", json!({}));
    request.delivery.listener = Some(Arc::new(events));
    let waiting = host.host.start(request).await;
    while !matches!(
        recorder.next().await.unwrap().body,
        EventBody::Status { .. }
    ) {}
    let rejected = host.call("wait", json!({})).await;
    let error = rejected.error.unwrap();
    assert_eq!(
        (rejected.outcome, error.class),
        (Outcome::Rejected, ErrorClass::RateLimited)
    );
    assert!(error.message.contains("limits.queue") && error.retry.after_ms.is_some());
    gate.let_through(2);
    assert_eq!(running.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(waiting.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_slow_reader_loses_events_not_time_and_the_hole_shows() {
    let tool = FnTool::named("demo.chatty")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, context| async move {
            for done in 0..100 {
                context.progress(ToolProgress {
                    done: Some(done),
                    ..ToolProgress::default()
                });
            }
            Ok::<_, ToolFailure>(ToolOutput::default())
        });
    let host = TestHost::with(tool).await;
    let (events, recorder) = CallEventRecorder::new(8);
    let mut request = host.request("chatty", json!({}));
    request.delivery.listener = Some(Arc::new(events));
    let answer = host.host.call(request).await;
    assert_eq!(answer.result().outcome, Outcome::Succeeded);
    let seen = recorder.all().await;
    assert_eq!(seen.len(), 8);
    let body: serde_json::Value =
        serde_json::from_str(&host.call_records().await[0].record.body).unwrap();
    let sent = body["events"]["sent"].as_u64().unwrap();
    let dropped = body["events"]["dropped"].as_u64().unwrap();
    assert!(sent > 100 && dropped >= sent - 8 - 2, "{sent} {dropped}");
}

#[tokio::test]
async fn shutdown_drains_cancels_the_rest_and_takes_no_more() {
    let gate = MockToolGate::new();
    let host = TestHost::with(MockNativeTool::named("demo.wait").gate(&gate)).await;
    let handle = host.host.start(host.request("wait", json!({}))).await;
    gate.entered(1).await;
    host.host.shutdown(Duration::from_millis(20)).await;
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Canceled);
    assert!(
        answer
            .result()
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("shutting down")
    );
    let late = host.call("wait", json!({})).await;
    assert_eq!(
        (late.outcome, late.error.unwrap().code.as_ref()),
        (Outcome::Rejected, "shutdown")
    );
}

#[tokio::test]
async fn closing_a_session_ends_its_calls_and_its_id() {
    let gate = MockToolGate::new();
    let host = TestHost::with(MockNativeTool::named("demo.wait").gate(&gate)).await;
    let agent = Principal::agent("a");
    let session = host
        .host
        .open_session(agent.clone(), Default::default())
        .await
        .unwrap();
    let mut request = host.request("wait", json!({}));
    request.session = Arc::clone(&session);
    let handle = host.host.start(request).await;
    gate.entered(1).await;
    assert!(
        host.host
            .session(session.id(), &Principal::agent("b"))
            .await
            .is_err(),
        "another's session is unknown"
    );
    host.host.close_session(&session).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
    assert!(host.host.session(session.id(), &agent).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_more_time_than_the_operator_set_for_the_tool() {
    let settings = ToolSettings {
        execution: ToolExecutionSettings {
            timeout: Some(Duration::from_millis(30)),
            ..ToolExecutionSettings::default()
        },
        ..ToolSettings::default()
    };
    let settings = HashMap::from([("wait".to_owned(), settings)]);
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("demo.wait").gate(&MockToolGate::new()))
            .settings(settings)
    })
    .await;
    for wished in [
        None,
        Some(Duration::from_secs(60)),
        Some(Duration::from_millis(10)),
    ] {
        let mut request = host.request("wait", json!({}));
        request.times.timeout = wished;
        let answer = host.host.call(request).await;
        let (expected, hint) = if wished == Some(Duration::from_millis(10)) {
            ("10 ms", "or for a longer deadline")
        } else {
            ("30 ms", "the operator's `tools.wait.timeout`")
        };
        let error = answer.result().error.as_ref().unwrap();
        assert!(error.message.contains(expected), "{wished:?}");
        assert!(
            error
                .hint
                .as_deref()
                .is_some_and(|text| text.contains(hint)),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_a_call_with_an_end() {
    let gate = MockToolGate::new();
    let host = TestHost::with(
        MockNativeTool::named("demo.wait")
            .class(EffectClass::Write)
            .gate(&gate),
    )
    .await;
    let inner = host.host.clone();
    let request = host.request("wait", json!({}));
    let caller = tokio::spawn(async move { inner.call(request).await });
    gate.entered(1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    host.host.shutdown(Duration::from_secs(10)).await;
    let row = host.records().await.pop().unwrap();
    assert_eq!(row.record.kind, toolpost_core::RecordKind::Ended);
    let body: serde_json::Value = serde_json::from_str(&row.record.body).unwrap();
    assert_eq!(body["result"]["outcome"], "canceled");
    assert!(
        body["result"]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the caller disconnected")
    );
}

/// A tool whose checks break.
struct Broken;

impl toolpost_model::Tool for Broken {
    fn declaration(&self) -> toolpost_model::Declaration {
        toolpost_model::Declaration::new("demo.broken".parse().unwrap(), "Breaks before it runs")
    }
    fn check(&self, _: &toolpost_model::CallInput) -> Result<(), toolpost_model::InputRefusal> {
        panic!("kaboom in check")
    }
    async fn execute(&self, _: toolpost_model::ToolCall) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::default())
    }
}

#[tokio::test]
async fn a_panic_before_the_tool_runs_is_a_result_too_and_leaves_nothing_behind() {
    let host = TestHost::with(Broken).await;
    for id in ["r1", "r1"] {
        let mut request = host.request("broken", json!({}));
        request.identity.request_id = Some(toolpost_model::RequestId::new(id));
        let answer = host.host.call(request).await;
        let error = answer.result().error.as_ref().unwrap();
        assert_eq!(error.code, "panicked");
        assert!(error.message.contains("kaboom in check"));
        let view = host
            .host
            .invocation(answer.result().invocation_id, &Principal::agent("test"))
            .await
            .unwrap();
        assert_eq!(view.unwrap().status, toolpost_core::StatusWord::Ended);
    }
    assert_eq!(
        host.call_records().await.len(),
        1,
        "one end: the repeat got the first answer"
    );
}
