//! What else may have changed while no host ran, and what a host leaves behind when it goes in order.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{
    AcknowledgementTiming, AppendStrength, ApprovalError, Approvals, Hook, HookCall, HookError,
    HookOutput, Journal as _, MemoryJournal, RecordKind,
};
use toolpost_model::{
    BoxFuture, EffectClass, Effects, ErrorClass, InvocationId, Outcome, PermissionMode, RequestId,
    Stage,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{
    Engine, act, answers::Doubting, asking, body, crashed, decide, ends, host, next_life, operator,
    question, questions, settle, start, target, yes,
};

/// A journal on which one call waits for an answer.
async fn parked(tool: &MockNativeTool, arguments: Value) -> (Arc<MemoryJournal>, InvocationId) {
    let host = host(tool).await;
    let _handle = start(&host, arguments).await;
    let id = question(&host.host).await.ask_id;
    (crashed(&host.journal).await, id)
}

async fn result_of(host: &TestHost, id: InvocationId) -> Value {
    host.host
        .wait(id, &operator(), Duration::from_secs(60))
        .await
        .unwrap();
    ends(&host.journal, id).await.remove(0)
}

#[tokio::test]
async fn what_expired_while_no_host_ran_has_expired() {
    let (journal, id) = parked(&act(), target("main")).await;
    let older = Arc::new(MemoryJournal::default());
    for mut row in journal.read(0, usize::MAX).await.unwrap() {
        if row.record.kind == RecordKind::Asked {
            let mut asked = body(&row);
            asked["ask"]["asked_at"] = json!("2001-01-01T00:00:00Z");
            asked["ask"]["expires_at"] = json!("2001-01-01T00:10:00Z");
            row.record.body = asked.to_string();
        }
        older
            .append(row.record, AppendStrength::Committed)
            .await
            .unwrap();
    }
    let tool = act();
    let host = next_life(&older, &tool).await;
    let result = result_of(&host, id).await;
    assert_eq!(
        (&result["outcome"], &result["error"]["code"]),
        (&json!("denied"), &json!("approval_expired"))
    );
    let late = decide(&host, id, yes()).await;
    assert!(matches!(late, Err(ApprovalError::Expired)), "{late:?}");
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_call_with_a_secret_cannot_wait_longer_than_its_host() {
    let schema = json!({ "type": "object", "properties": { "pin": { "type": "string", "x-sensitive": true } } });
    let tool = act().schema(schema);
    let (journal, id) = parked(&tool, json!({ "pin": "123456789" })).await;
    let host = next_life(&journal, &tool).await;
    let result = result_of(&host, id).await;
    assert_eq!(
        (&result["outcome"], &result["error"]["code"]),
        (&json!("canceled"), &json!("restart"))
    );
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .contains("sensitive")
    );
    assert!(host.host.approvals().is_empty());
}

#[tokio::test]
async fn rules_that_deny_now_deny_what_was_asked_before_and_what_was_approved() {
    let (journal, id) = parked(&act(), target("main")).await;
    let tool = act();
    let deny = || Engine::new(PermissionMode::Default, &["deny act"]);
    let host = TestHost::on(journal.clone(), |builder| {
        asking(builder, &tool).policy(deny())
    })
    .await;
    assert_eq!(result_of(&host, id).await["outcome"], "denied");

    let first = super::host(&act()).await;
    let handle = start(&first, target("main")).await;
    let id = question(&first.host).await.ask_id;
    decide(&first, id, yes()).await.unwrap();
    handle.answer().await;
    let journal = super::crashed_after(&first.journal, 5).await;
    let host = TestHost::on(journal, |builder| asking(builder, &tool).policy(deny())).await;
    assert_eq!(result_of(&host, id).await["outcome"], "denied");
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn what_was_asked_about_is_not_allowed_by_a_restart() {
    // A hook asked. It is not asked again, so nothing but the record knows.
    let tool = act();
    let build = |builder| {
        asking(builder, &tool)
            .policy(Engine::new(PermissionMode::Bypass, &[]))
            .hook(Doubting)
    };
    let host = TestHost::build(build).await;
    let _handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    let host = TestHost::on(crashed(&host.journal).await, |builder| {
        asking(builder, &tool).policy(Engine::new(PermissionMode::Bypass, &[]))
    });
    let host = host.await;
    assert_eq!(question(&host.host).await.ask_id, id);
    assert_eq!(tool.call_count(), 0);
    decide(&host, id, yes()).await.unwrap();
    assert_eq!(result_of(&host, id).await["outcome"], "succeeded");
    assert_eq!(tool.call_count(), 1);
}

/// A hook that counts on, to see whether it is asked twice.
struct Counting;

impl Hook for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let mut arguments = call.input.arguments().value().clone();
        arguments["n"] = json!(arguments["n"].as_u64().unwrap_or_default() + 1);
        Box::pin(std::future::ready(Ok(HookOutput::rewrite(
            arguments, "one more",
        ))))
    }
}

#[tokio::test]
async fn a_resumed_call_runs_with_what_hooks_had_made_of_it_and_is_not_shown_to_them_again() {
    for acknowledged in [
        AcknowledgementTiming::AtTheEnd,
        AcknowledgementTiming::Early,
    ] {
        let tool = act();
        let build = |builder| asking(builder, &tool).hook(Counting);
        let host = TestHost::build(build).await;
        let mut request = host.request("act", json!({ "n": 1 }));
        request.delivery.acknowledged = acknowledged;
        let _handle = host.host.start(request).await;
        let id = question(&host.host).await.ask_id;
        let host = TestHost::on(crashed(&host.journal).await, build).await;
        assert_eq!(question(&host.host).await.arguments, json!({ "n": 2 }));
        decide(&host, id, yes()).await.unwrap();
        assert_eq!(result_of(&host, id).await["outcome"], "succeeded");
        assert_eq!(tool.inputs(), [json!({ "n": 2 })]);
    }
}

#[tokio::test]
async fn other_facts_are_another_question() {
    let (journal, id) = parked(&act(), target("main")).await;
    let careful = act().effects(Effects::of(EffectClass::Write).with_caution("mind the gap"));
    let host = next_life(&journal, &careful).await;
    let asked = question(&host.host).await;
    assert_ne!(
        asked.ask_id, id,
        "what was seen before the restart is something else"
    );
    assert!(matches!(
        decide(&host, id, yes()).await,
        Err(ApprovalError::Withdrawn)
    ));
    // And it outlives this host in turn.
    let host = next_life(&crashed(&host.journal).await, &careful).await;
    assert_eq!(question(&host.host).await.ask_id, asked.ask_id);
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(result_of(&host, id).await["outcome"], "succeeded");
    assert_eq!(careful.call_count(), 1);
}

#[tokio::test]
async fn a_yes_does_not_cover_other_facts_after_a_restart() {
    let first = host(&act()).await;
    let handle = start(&first, target("main")).await;
    let id = question(&first.host).await.ask_id;
    decide(&first, id, yes()).await.unwrap();
    handle.answer().await;
    let careful = act().effects(Effects::of(EffectClass::Write).with_caution("mind the gap"));
    let host = next_life(&super::crashed_after(&first.journal, 5).await, &careful).await;
    let asked = question(&host.host).await;
    assert_ne!(asked.ask_id, id);
    assert_eq!(careful.call_count(), 0);
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(result_of(&host, id).await["outcome"], "succeeded");
}

#[tokio::test]
async fn a_repeat_of_the_request_waits_for_the_call_that_was_resumed() {
    let tool = act();
    let first = host(&tool).await;
    let request = |host: &TestHost| {
        let mut request = host.request("act", target("main"));
        request.identity.request_id = Some(RequestId::new("r1"));
        request
    };
    let _handle = first.host.start(request(&first)).await;
    let id = question(&first.host).await.ask_id;
    let host = next_life(&crashed(&first.journal).await, &tool).await;
    question(&host.host).await;
    assert_eq!(host.host.unheard(host.session.id()), [RequestId::new("r1")]);
    let again = host.host.start(request(&host)).await;
    assert_eq!(again.invocation_id(), id);
    assert_eq!(host.host.approvals()[0].waiting, 1, "it is the same call");
    decide(&host, id, yes()).await.unwrap();
    assert_eq!(again.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_host_without_anybody_to_ask_leaves_the_question_to_one_that_has() {
    let tool = act();
    let first = host(&tool).await;
    let mut request = first.request("act", target("main"));
    request.identity.request_id = Some(RequestId::new("r1"));
    let _handle = first.host.start(request).await;
    let id = question(&first.host).await.ask_id;
    let build = |builder| asking(builder, &tool).approvals(Approvals::Nobody);
    let alone = TestHost::on(crashed(&first.journal).await, build).await;
    let view = alone
        .host
        .invocation(id, &operator())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.stage, Some(Stage::AwaitApproval));
    let mut repeat = alone.request("act", target("main"));
    repeat.identity.request_id = Some(RequestId::new("r1"));
    let told = alone.host.call(repeat).await;
    assert_eq!(
        told.result().error_class(),
        Some(ErrorClass::ApprovalPending)
    );
    settle(&alone).await;
    assert!(ends(&alone.journal, id).await.is_empty());
    let host = next_life(&alone.journal, &tool).await;
    assert_eq!(question(&host.host).await.ask_id, id);
}

#[tokio::test]
async fn a_host_that_goes_tells_who_waits_to_come_again_and_keeps_the_question() {
    let tool = act();
    let first = host(&tool).await;
    let mut request = first.request("act", target("main"));
    request.identity.request_id = Some(RequestId::new("r1"));
    let handle = first.host.start(request).await;
    let id = question(&first.host).await.ask_id;
    settle(&first).await;
    let answer = handle.answer().await;
    assert_eq!(
        answer.result().error_class(),
        Some(ErrorClass::ApprovalPending)
    );
    assert_eq!(
        ends(&first.journal, id).await.len(),
        1,
        "what was answered is on record"
    );

    let host = next_life(&first.journal, &tool).await;
    let asked = question(&host.host).await;
    assert_eq!((asked.ask_id, asked.waiting), (id, 0));
    let decided = decide(&host, id, yes()).await.unwrap();
    assert!(decided.kept_until.is_some());
    assert_eq!(tool.call_count(), 0);
    // Under the same request id or another: the host had not taken it.
    let mut again = host.request("act", target("main"));
    again.identity.request_id = Some(RequestId::new("r1"));
    let answer = host.host.call(again).await;
    assert_eq!(
        (answer.result().outcome, tool.call_count()),
        (Outcome::Succeeded, 1)
    );
    assert_ne!(answer.result().invocation_id, id);
}

#[tokio::test]
async fn a_call_in_the_background_stays_open_when_its_host_goes_and_goes_on_with_the_next() {
    let tool = act();
    let first = host(&tool).await;
    let mut request = first.request("act", target("main"));
    request.delivery.background = true;
    let handle = first.host.start(request).await;
    handle.accepted().await;
    let id = handle.invocation_id();
    drop(handle);
    question(&first.host).await;
    settle(&first).await;
    assert!(
        ends(&first.journal, id).await.is_empty(),
        "nobody was told anything"
    );

    let host = next_life(&first.journal, &tool).await;
    assert_eq!(question(&host.host).await.ask_id, id);
    // And again: a resumed call has nobody who waits either.
    settle(&host).await;
    let host = next_life(&first.journal, &tool).await;
    question(&host.host).await;
    decide(&host, id, yes()).await.unwrap();
    assert_eq!(result_of(&host, id).await["outcome"], "succeeded");
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_kept_question_and_a_kept_answer_outlive_hosts_and_are_used_once() {
    let tool = act();
    let first = host(&tool).await;
    let mut request = first.request("act", target("main"));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(1)));
    first.host.call(request).await;
    let id = question(&first.host).await.ask_id;

    let second = next_life(&crashed(&first.journal).await, &tool).await;
    assert_eq!(question(&second.host).await.ask_id, id);
    let third = next_life(&crashed(&second.journal).await, &tool).await;
    assert_eq!(question(&third.host).await.ask_id, id);
    decide(&third, id, yes()).await.unwrap();

    // Twice, for the answer must be carried over a start too.
    let fourth = next_life(&crashed(&third.journal).await, &tool).await;
    let fifth = next_life(&crashed(&fourth.journal).await, &tool).await;
    assert!(fifth.host.approvals().is_empty());
    let result = fifth.call("act", target("main")).await;
    assert_eq!((result.outcome, tool.call_count()), (Outcome::Succeeded, 1));

    let sixth = next_life(&crashed(&fifth.journal).await, &tool).await;
    let handle = start(&sixth, target("main")).await;
    let asked = questions(&sixth.host, 1).await.remove(0);
    assert_eq!(
        asked.ask_id,
        handle.invocation_id(),
        "the answer was used, so this is a new question"
    );
    assert_eq!(tool.call_count(), 1);
}
