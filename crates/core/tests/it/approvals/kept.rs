//! Answers that come when their caller has stopped waiting.

use std::time::Duration;

use serde_json::Value;
use toolpost_core::{ApprovalError, HostLimits, SchedulerLimits};
use toolpost_model::{ErrorClass, Outcome, Principal, ToolResult, Verdict};
use toolpost_testkit::{MockToolGate, TestHost};

use super::{
    act, asking, body, decide, edited, host, no, questions, records_of, start, target, yes,
};

/// Calls and stops waiting at once. Returns the question, which stays.
async fn impatient(host: &TestHost, arguments: Value) -> toolpost_model::PermissionRequest {
    let mut request = host.request("act", arguments);
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(10)));
    let answer = host.host.call(request).await;
    let error = answer.result().error.clone().unwrap();
    assert_eq!(
        (answer.result().outcome, error.class),
        (Outcome::Rejected, ErrorClass::ApprovalPending)
    );
    assert!(error.retry.needs_approval && error.retry.safe);
    let asked = host.host.approvals().remove(0);
    assert!(
        error.message.contains(&asked.ask_id.to_string()),
        "{}",
        error.message
    );
    assert_eq!(asked.waiting, 0);
    asked
}

async fn in_a_moment(host: &TestHost, arguments: Value) -> ToolResult {
    let mut request = host.request("act", arguments);
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_secs(60)));
    host.host.call(request).await.result().clone()
}

#[tokio::test(start_paused = true)]
async fn a_late_yes_is_good_for_one_call_of_the_same_caller() {
    let tool = act();
    let host = host(&tool).await;
    let asked = impatient(&host, target("main")).await;
    let decided = decide(&host, asked.ask_id, yes()).await.unwrap();
    assert!(decided.waiting == 0 && decided.kept_until.is_some());
    assert_eq!(tool.call_count(), 0, "nobody waits, so nothing runs");
    let view = host
        .host
        .invocation(asked.ask_id, &super::operator())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        view.status,
        toolpost_core::StatusWord::Ended,
        "the answer is not its end"
    );
    assert!(view.result.unwrap().get().contains("approval_pending"));

    let mut stranger = host.request("act", target("main"));
    stranger.session = host.host.default_session(&Principal::agent("other"));
    stranger.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(10)));
    let refused = host.host.call(stranger).await;
    assert_eq!(
        refused.result().error_class(),
        Some(ErrorClass::ApprovalPending)
    );
    let other = impatient_other(&host).await;
    assert_eq!(
        other.error_class(),
        Some(ErrorClass::ApprovalPending),
        "other arguments are another call"
    );

    let result = in_a_moment(&host, target("main")).await;
    assert_eq!((result.outcome, tool.call_count()), (Outcome::Succeeded, 1));
    let rows = records_of(&host, result.invocation_id).await;
    let started = body(&rows[0]);
    assert_eq!(started["approval"]["ask_id"], asked.ask_id.to_string());
    assert_eq!(started["approval"]["spent"], true);

    let mut again = host.request("act", target("main"));
    again.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(10)));
    let again = host.host.call(again).await;
    assert_eq!(
        again.result().error_class(),
        Some(ErrorClass::ApprovalPending),
        "it was good for one call"
    );
    assert_eq!(tool.call_count(), 1);
}

async fn impatient_other(host: &TestHost) -> ToolResult {
    let mut request = host.request("act", target("branch"));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(10)));
    host.host.call(request).await.result().clone()
}

#[tokio::test(start_paused = true)]
async fn a_late_no_is_told_to_the_next_call_and_not_to_the_one_after() {
    let tool = act();
    let host = host(&tool).await;
    let asked = impatient(&host, target("main")).await;
    decide(&host, asked.ask_id, no("use a branch"))
        .await
        .unwrap();
    let result = in_a_moment(&host, target("main")).await;
    assert!(result.error.unwrap().message.contains("use a branch"));
    impatient(&host, target("main")).await;
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_yes_with_other_arguments_runs_those() {
    let tool = act();
    let host = host(&tool).await;
    let asked = impatient(&host, target("main")).await;
    decide(&host, asked.ask_id, edited(target("branch")))
        .await
        .unwrap();
    let result = in_a_moment(&host, target("main")).await;
    assert_eq!(
        (result.outcome, tool.inputs()),
        (Outcome::Succeeded, vec![target("branch")])
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_yes_runs_out() {
    let tool = act();
    let host = host(&tool).await;
    let asked = impatient(&host, target("main")).await;
    decide(&host, asked.ask_id, yes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_601)).await;
    impatient(&host, target("main")).await;
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_waits_for_expires_too() {
    let tool = act();
    let host = host(&tool).await;
    let asked = impatient(&host, target("main")).await;
    questions(&host.host, 0).await;
    let late = decide(&host, asked.ask_id, yes()).await;
    assert!(matches!(late, Err(ApprovalError::Expired)), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_before_it_runs_has_not_used_its_yes() {
    let gate = MockToolGate::new();
    let tool = act();
    let busy = toolpost_testkit::MockNativeTool::named("demo.busy").gate(&gate);
    let scheduler = SchedulerLimits {
        concurrency: 1,
        session_concurrency: 1,
        ..HostLimits::default().scheduler
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let host =
        TestHost::build(|builder| asking(builder, &tool).tool(busy.clone()).limits(limits)).await;
    let asked = impatient(&host, target("main")).await;
    decide(&host, asked.ask_id, yes()).await.unwrap();
    let occupied = host
        .host
        .start(host.request("busy", serde_json::json!({})))
        .await;
    gate.entered(1).await;
    let mut request = host.request("act", target("main"));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(10)));
    let queued = host.host.call(request).await;
    assert_eq!(queued.result().error_class(), Some(ErrorClass::Queued));
    gate.let_through(1);
    occupied.answer().await;
    assert_eq!(
        in_a_moment(&host, target("main")).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_again_joins_the_question_that_stayed_and_a_cancel_withdraws_it() {
    let tool = act();
    let host = host(&tool).await;
    let asked = impatient(&host, target("main")).await;
    let handle = start(&host, target("main")).await;
    let joined = super::waiting(&host.host, 1).await;
    assert_eq!(joined.ask_id, asked.ask_id);
    host.host
        .cancel(handle.invocation_id(), &Principal::agent("test"));
    questions(&host.host, 0).await;
    let late = decide(&host, asked.ask_id, Verdict::Deny { feedback: None }).await;
    assert!(matches!(late, Err(ApprovalError::Withdrawn)), "{late:?}");
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
}

#[tokio::test]
async fn nobody_is_asked_twice_because_the_host_was_busy() {
    let gate = MockToolGate::new();
    let tool = act();
    let busy = toolpost_testkit::MockNativeTool::named("demo.busy").gate(&gate);
    let scheduler = SchedulerLimits {
        concurrency: 1,
        session_concurrency: 1,
        queue: 0,
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let host =
        TestHost::build(|builder| asking(builder, &tool).tool(busy.clone()).limits(limits)).await;
    let occupied = host
        .host
        .start(host.request("busy", serde_json::json!({})))
        .await;
    gate.entered(1).await;
    let handle = start(&host, target("main")).await;
    let asked = super::question(&host.host).await;
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(
        handle.answer().await.result().error_class(),
        Some(ErrorClass::RateLimited)
    );
    gate.let_through(1);
    occupied.answer().await;
    assert_eq!(
        host.call("act", target("main")).await.outcome,
        Outcome::Succeeded
    );
    let _again = start(&host, target("main")).await;
    questions(&host.host, 1).await;
    assert_eq!(tool.call_count(), 1);
}
