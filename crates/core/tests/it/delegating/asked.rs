//! What an authority is asked, when it is asked anew, and when it is not asked again.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{
    AcknowledgementTiming, AppendStrength, Approvals, Export, ExportFormat, Journal as _,
    MemoryJournal, RecordKind,
};
use toolpost_model::{
    ApprovalScope,
    Behavior::{Allow, Ask, Deny},
    EffectClass, Outcome, PermissionMode, Principal, RequestId, Verdict,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

use super::{Bureau, act, decision, governed, host};

#[tokio::test]
async fn an_authority_sees_the_call_without_its_secrets() {
    let bureau = Bureau::voting(Allow);
    let questions = bureau.questions.clone();
    let tool = act().declare(|declaration| declaration.version = "2.1".to_owned());
    let host = host(
        &tool,
        PermissionMode::Default,
        &["delegate bureau act"],
        vec![bureau],
    )
    .await;
    let result = host
        .call("act", json!({ "n": 1, "pin": "hunter2-hunter2" }))
        .await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    let mut question = questions.all().remove(0);
    assert!(!question.to_string().contains("hunter2"), "{question}");
    let arguments = question["arguments"].take();
    assert_eq!(arguments["n"], 1);
    assert!(
        arguments["pin"].as_str().unwrap().contains("redacted"),
        "{arguments}"
    );
    assert_eq!(question["effects"].take()["class"], "write");
    let expected = json!({
        "event": "decide", "authority": "bureau", "rules": ["delegate bureau act"],
        "invocation_id": result.invocation_id, "session_id": host.session.id(),
        "principal": { "name": "test", "role": "agent" },
        "tool": { "id": "demo.act", "name": "act", "version": "2.1" },
        "arguments": null, "effects": null, "mode": "default", "dry_run": false,
    });
    assert_eq!(question, expected);
    assert_eq!(
        tool.inputs()[0]["pin"],
        "hunter2-hunter2",
        "the tool gets the value itself"
    );
}

#[tokio::test]
async fn words_of_an_authority_that_repeat_a_secret_are_redacted() {
    let repeats = Bureau::answering(|_| {
        let reason = Some("never hunter2-hunter2".to_owned());
        Box::pin(std::future::ready(Ok(toolpost_core::AuthorityAnswer {
            behavior: Deny,
            reason,
        })))
    });
    let host = host(
        &act(),
        PermissionMode::Bypass,
        &["delegate bureau act"],
        vec![repeats],
    )
    .await;
    let result = host.call("act", json!({ "pin": "hunter2-hunter2" })).await;
    assert!(!serde_json::to_string(&result).unwrap().contains("hunter2"));
    assert!(!decision(&host).await.to_string().contains("hunter2"));
}

#[tokio::test]
async fn explain_asks_with_dry_run_and_comes_to_the_decision_of_the_call() {
    for vote in [Allow, Ask, Deny] {
        let bureau = Bureau {
            kept_for: Some(Duration::from_secs(60)),
            ..Bureau::voting(vote)
        };
        let questions = bureau.questions.clone();
        let host = host(
            &act(),
            PermissionMode::Default,
            &["delegate bureau act"],
            vec![bureau],
        )
        .await;
        let explained = host
            .host
            .explain(host.request("act", json!({ "n": 1 })))
            .await;
        host.call("act", json!({ "n": 1 })).await;
        let told = serde_json::to_value(explained.decision).unwrap();
        let made = decision(&host).await;
        assert_eq!(
            (&told["behavior"], &told["reason"]),
            (&made["behavior"], &made["reason"])
        );
        assert_eq!(made["behavior"], json!(vote));
        let dry: Vec<Value> = questions
            .all()
            .iter()
            .map(|question| question["dry_run"].clone())
            .collect();
        assert_eq!(
            dry,
            [json!(true), json!(false)],
            "a dry run is neither kept nor answered from kept ones"
        );
        let considered = explained.layers.permission.unwrap().considered;
        assert_eq!(considered[0].rule.rule, "delegate bureau act");
        assert_eq!(considered[0].effect, vote);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_only_where_the_operator_says_so_and_only_for_the_same_input() {
    for kept_for in [None, Some(Duration::from_secs(30))] {
        let bureau = Bureau {
            kept_for,
            ..Bureau::voting(Allow)
        };
        let questions = bureau.questions.clone();
        let host = host(
            &act(),
            PermissionMode::Default,
            &["delegate bureau act"],
            vec![bureau],
        )
        .await;
        for n in [1, 1, 2, 1] {
            assert_eq!(
                host.call("act", json!({ "n": n })).await.outcome,
                Outcome::Succeeded
            );
        }
        let is_kept = kept_for.is_some();
        assert_eq!(questions.count(), if is_kept { 2 } else { 4 });
        assert_eq!(
            decision(&host).await["delegated"][0]["cached"] == true,
            is_kept
        );
        tokio::time::advance(Duration::from_secs(31)).await;
        host.call("act", json!({ "n": 1 })).await;
        assert_eq!(questions.count(), if is_kept { 3 } else { 5 });
        assert!(decision(&host).await["delegated"][0]["cached"].is_null());
    }
}

#[tokio::test]
async fn a_canceled_call_drops_its_question_and_nothing_runs() {
    struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let bureau = Bureau::answering(move |_| {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        begun.send(receiver).unwrap();
        let held = Dropped(Some(sender));
        Box::pin(async move {
            let _held = held;
            std::future::pending().await
        })
    });
    let tool = act();
    let host = host(
        &tool,
        PermissionMode::Bypass,
        &["delegate bureau act"],
        vec![bureau],
    )
    .await;
    let handle = host.host.start(host.request("act", json!({}))).await;
    let dropped = begins.recv().await.unwrap();
    host.host
        .cancel(handle.invocation_id(), &Principal::operator("ann"));
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
    dropped.await.unwrap();
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn after_a_persons_yes_the_authority_is_asked_anew_and_may_deny() {
    for (second, outcome) in [
        (Ask, Outcome::Succeeded),
        (Allow, Outcome::Succeeded),
        (Deny, Outcome::Denied),
    ] {
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let bureau = Bureau::deciding(move |_| {
            match counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Ask,
                _ => second,
            }
        });
        let tool = act();
        let host = TestHost::build(|builder| {
            let builder = builder.tool(tool.clone()).approvals(Approvals::ASK);
            governed(
                builder,
                PermissionMode::Bypass,
                &["delegate bureau act"],
                vec![bureau],
            )
        })
        .await;
        let handle = host.host.start(host.request("act", json!({}))).await;
        let mut changes = host.host.approval_changes();
        while host.host.approvals().is_empty() {
            changes.changed().await.unwrap();
        }
        let question = host.host.approvals().remove(0);
        assert_eq!(
            question.decision.reason.text,
            "the authority `bureau` requires a person's approval: so it is"
        );
        assert!(
            question.suggestions.is_empty(),
            "no rule answers an authority: {:?}",
            question.suggestions
        );
        let yes = Verdict::Allow {
            scope: ApprovalScope::Once,
            rule: None,
            valid_for_seconds: None,
            arguments: None,
        };
        host.host
            .decide(question.ask_id, yes, &Principal::operator("ann"))
            .await
            .unwrap();
        assert_eq!(
            handle.answer().await.result().outcome,
            outcome,
            "{second:?}"
        );
        assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_call_that_is_recovered_after_a_crash_is_put_to_the_authority_anew() {
    let gate = MockToolGate::new();
    let read = || {
        MockNativeTool::named("demo.act")
            .class(EffectClass::Read)
            .output("done")
    };
    let first = host(
        &read().gate(&gate),
        PermissionMode::Default,
        &["delegate bureau act"],
        vec![Bureau::voting(Allow)],
    )
    .await;
    let mut request = first.request("act", json!({}));
    request.identity.request_id = Some(RequestId::new("r1"));
    request.delivery.acknowledged = AcknowledgementTiming::Early;
    let _handle = first.host.start(request).await;
    gate.entered(1).await;
    for (vote, runs) in [(Allow, 1), (Deny, 0)] {
        let copy = Arc::new(MemoryJournal::default());
        for row in first.records().await {
            copy.append(row.record, AppendStrength::Committed)
                .await
                .unwrap();
        }
        let bureau = Bureau::voting(vote);
        let tool = read();
        let questions = bureau.questions.clone();
        let next = TestHost::on(Arc::clone(&copy), |builder| {
            governed(
                builder.tool(tool.clone()),
                PermissionMode::Default,
                &["delegate bureau act"],
                vec![bureau],
            )
        })
        .await;
        next.host.shutdown(Duration::from_secs(10)).await;
        assert_eq!(
            (questions.count(), tool.call_count()),
            (1, runs),
            "{vote:?}"
        );
    }
}

#[tokio::test]
async fn a_call_is_acknowledged_before_its_authority_has_answered() {
    let never = Bureau::answering(|_| Box::pin(std::future::pending()));
    let host = host(
        &act(),
        PermissionMode::Bypass,
        &["delegate bureau act"],
        vec![never],
    )
    .await;
    let mut request = host.request("act", json!({}));
    request.delivery.acknowledged = AcknowledgementTiming::OnceOnRecord;
    let handle = host.host.start(request).await;
    handle.accepted().await;
    assert_eq!(
        host.call_records().await.last().unwrap().record.kind,
        RecordKind::Accepted
    );
    host.host
        .cancel(handle.invocation_id(), &Principal::operator("ann"));
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
}

#[tokio::test]
async fn a_secret_that_is_an_authoritys_name_leaves_the_record_readable() {
    let tool = act();
    let bureau = Bureau::voting(Allow).named("team-policy");
    let host = host(
        &tool,
        PermissionMode::Default,
        &["delegate team-policy act"],
        vec![bureau],
    )
    .await;
    let called = host
        .call("act", json!({ "n": 1, "pin": "team-policy" }))
        .await;
    assert_eq!(called.outcome, Outcome::Succeeded);
    assert_eq!(
        decision(&host).await["delegated"][0]["authority"],
        "team-policy"
    );
    let mut export = Export::new(ExportFormat::AgentTool);
    for row in host.records().await {
        export.take(&row, &mut Vec::new()).unwrap();
    }
}
