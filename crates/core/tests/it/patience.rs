//! What ends when a caller's patience is over, and what goes on: waiting ends, work does not, and a caller that can come
//! back leaves its call parked.

use std::time::Duration;

use serde_json::json;
use toolpost_core::{Approvals, Patience, PendingCause};
use toolpost_model::{
    ApprovalScope, EffectClass, ErrorClass, Outcome, PermissionMode, Principal, RequestId, Verdict,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

const SECOND: Duration = Duration::from_secs(1);

async fn host(tool: &MockNativeTool) -> TestHost {
    let policy = TestHost::policy(PermissionMode::Default, &[]);
    TestHost::build(|builder| {
        builder
            .policy(policy)
            .approvals(Approvals::ASK)
            .tool(tool.clone())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_when_patience_is_over_and_ends_with_the_time_for_the_whole_call() {
    for (is_whole, expected) in [(false, Outcome::Succeeded), (true, Outcome::TimedOut)] {
        let gate = MockToolGate::new();
        let tool = MockNativeTool::named("demo.wait")
            .gate(&gate)
            .class(EffectClass::Read);
        let host = host(&tool).await;
        let mut request = host.request("wait", json!({}));
        if is_whole {
            request.times.total_time = Some(SECOND);
        } else {
            request.times.patience = Some(Patience::Turn(SECOND));
        }
        let handle = host.host.start(request).await;
        gate.entered(1).await;
        tokio::time::sleep(SECOND * 2).await;
        gate.let_through(1);
        assert_eq!(
            handle.answer().await.result().outcome,
            expected,
            "whole call: {is_whole}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_limit_of_waiting_ends_an_unanswered_call_as_pending() {
    let tool = MockNativeTool::named("demo.push").class(EffectClass::Execute);
    let host = host(&tool).await;
    for (n, (patience, total_time)) in [
        (Some(Patience::Approval(Duration::ZERO)), None),
        (Some(Patience::Approval(SECOND)), None),
        (Some(Patience::Turn(SECOND)), None),
        (None, Some(SECOND)),
        (Some(Patience::Approval(SECOND * 60)), Some(SECOND)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut request = host.request("push", json!({ "n": n }));
        request.times.patience = patience;
        request.times.total_time = total_time;
        let answer = host.host.call(request).await;
        assert_eq!(
            answer.result().error_class(),
            Some(ErrorClass::ApprovalPending),
            "{patience:?}"
        );
    }
    assert_eq!(
        (host.host.approvals().len(), tool.call_count()),
        (5, 0),
        "the questions stay"
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_can_come_back_leaves_its_call_parked() {
    let tool = MockNativeTool::named("demo.push").class(EffectClass::Execute);
    let host = host(&tool).await;
    let request = || {
        let mut request = host.request("push", json!({}));
        request.identity.request_id = Some(RequestId::new("r"));
        request
    };
    let first = host.host.start(request()).await;
    let pending = first
        .answer_within(Some(Patience::Approval(SECOND)))
        .await
        .unwrap_err();
    let question = host.host.approvals().remove(0);
    assert_eq!(
        (pending.invocation_id, question.waiting),
        (question.ask_id, 1)
    );
    let ask_id = question.ask_id;
    let expires_at = question.expires_at;
    assert_eq!(pending.cause, PendingCause::Approval { ask_id, expires_at });
    for patience in [
        Patience::Approval(SECOND),
        Patience::Turn(SECOND),
        Patience::Approval(Duration::ZERO),
    ] {
        let again = host
            .host
            .start(request())
            .await
            .answer_within(Some(patience))
            .await;
        assert_eq!(again.unwrap_err(), pending, "{patience:?}");
    }
    let patient = host.host.start(request()).await;
    let allow = Verdict::Allow {
        scope: ApprovalScope::Once,
        rule: None,
        valid_for_seconds: None,
        arguments: None,
    };
    host.host
        .decide(ask_id, allow, &Principal::operator("olga"))
        .await
        .unwrap();
    let answer = patient.answer_within(None).await.unwrap();
    assert_eq!(
        (answer.result().outcome, answer.result().invocation_id),
        (Outcome::Succeeded, ask_id)
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_the_queue_stays_there_for_a_caller_that_can_come_back() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.write")
        .gate(&gate)
        .class(EffectClass::Unknown);
    let policy = TestHost::policy(PermissionMode::Bypass, &[]);
    let host = TestHost::build(|builder| builder.policy(policy).tool(tool.clone())).await;
    let first = host.host.start(host.request("write", json!({}))).await;
    gate.entered(1).await;
    let mut request = host.request("write", json!({}));
    request.identity.request_id = Some(RequestId::new("r"));
    request.delivery.acknowledged = toolpost_core::AcknowledgementTiming::Early;
    let second = host.host.start(request).await;
    let pending = second
        .answer_within(Some(Patience::Turn(SECOND)))
        .await
        .unwrap_err();
    assert_eq!(pending.cause, PendingCause::Queue);
    gate.let_through(2);
    assert_eq!(first.answer().await.result().outcome, Outcome::Succeeded);
    let principal = host.session.principal();
    let ended = host
        .host
        .wait(pending.invocation_id, principal, SECOND * 60)
        .await
        .unwrap()
        .unwrap();
    assert!(ended.result.is_some(), "{ended:?}");
    assert_eq!(tool.call_count(), 2);
}
