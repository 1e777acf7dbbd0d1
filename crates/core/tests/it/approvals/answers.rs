//! What a yes, a no, an edit and no answer do.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_core::{ApprovalError, Approvals, QuestionClosure, RecordKind};
use toolpost_model::{
    ApprovalStatus, ErrorClass, EventBody, InvocationId, Outcome, Principal, ReasonType, Verdict,
};
use toolpost_testkit::{CallEventRecorder, TestHost};

use super::{
    Engine, act, asking, body, decide, edited, host, kinds, no, operator, question, records_of,
    start, target, yes,
};

#[tokio::test]
async fn a_yes_lets_the_call_run_once_and_the_record_tells_the_story() {
    let tool = act();
    let host = host(&tool).await;
    let (events, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("act", target("main"));
    request.delivery.listener = Some(Arc::new(events));
    let handle = host.host.start(request).await;
    let asked = question(&host.host).await;
    assert_eq!(asked.ask_id, handle.invocation_id());
    assert_eq!(
        (asked.tool.as_str(), &asked.arguments),
        ("act", &target("main"))
    );
    assert_eq!((asked.principal.name.as_str(), asked.waiting), ("test", 1));
    assert_eq!(asked.suggestions, ["allow demo.act", "allow demo.*"]);
    assert_eq!((tool.call_count(), host.host.health().approvals), (0, 1));

    let decided = decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(
        (decided.allowed, decided.waiting, decided.kept_until),
        (true, 1, None)
    );
    let answer = handle.answer().await;
    assert_eq!(
        (answer.result().outcome, tool.call_count()),
        (Outcome::Succeeded, 1)
    );
    assert!(host.host.approvals().is_empty());

    let rows = records_of(&host, asked.ask_id).await;
    assert_eq!(kinds(&rows), ["asked", "decided", "started", "ended"]);
    let first = body(&rows[0]);
    let said = body(&rows[1]);
    let end = body(&rows[3]);
    assert_eq!(first["call"]["arguments"], target("main"));
    assert_eq!(first["ask"]["hash"], asked.call_hash.to_string());
    assert_eq!(first["decision"]["behavior"], "ask");
    assert_eq!(
        (&said["by"], &said["verdict"]["decision"]),
        (&json!("ann"), &json!("allow"))
    );
    assert_eq!(
        (&end["decision"]["behavior"], &end["approval"]["by"]),
        (&json!("allow"), &json!("ann"))
    );
    assert_eq!(
        end["decision"]["reason"]["type"],
        json!(ReasonType::Approval)
    );

    let statuses: Vec<ApprovalStatus> = recorder
        .all()
        .await
        .into_iter()
        .filter_map(|event| {
            if let EventBody::Approval(status) = event.body {
                Some(status)
            } else {
                None
            }
        })
        .collect();
    let ask_id = asked.ask_id;
    let expires_at = asked.expires_at;
    let expected = [
        ApprovalStatus::Pending { ask_id, expires_at },
        ApprovalStatus::Granted { ask_id },
    ];
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn a_no_ends_the_call_and_the_model_reads_why() {
    let tool = act();
    let host = host(&tool).await;
    let handle = start(&host, target("main")).await;
    decide(
        &host,
        question(&host.host).await.ask_id,
        no("push to a branch"),
    )
    .await
    .unwrap();
    let answer = handle.answer().await;
    let error = answer.result().error.as_ref().unwrap();
    assert_eq!(
        (answer.result().outcome, error.class),
        (Outcome::Denied, ErrorClass::ApprovalRejected)
    );
    assert!(
        error.message.contains("push to a branch") && error.message.contains("ann"),
        "{}",
        error.message
    );
    assert_eq!(tool.call_count(), 0);
    let rows = records_of(&host, answer.result().invocation_id).await;
    assert_eq!(kinds(&rows), ["asked", "decided", "ended"]);
    assert_eq!(body(&rows[2])["decision"]["behavior"], "deny");
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_a_no() {
    let tool = act();
    let host = host(&tool).await;
    let handle = start(&host, target("main")).await;
    let asked = question(&host.host).await;
    let answer = handle.answer().await;
    let error = answer.result().error.as_ref().unwrap();
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::ApprovalRejected, "approval_expired")
    );
    assert_eq!(
        (answer.result().outcome, tool.call_count()),
        (Outcome::Denied, 0)
    );
    assert!(matches!(
        decide(&host, asked.ask_id, yes()).await,
        Err(ApprovalError::Expired)
    ));
    assert_eq!(
        host.host.closed_approval(asked.ask_id),
        Some(QuestionClosure::Expired)
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_does_not_run_while_a_person_thinks() {
    let tool = act();
    let host = host(&tool).await;
    let mut request = host.request("act", target("main"));
    request.times.timeout = Some(Duration::from_millis(50));
    let handle = host.host.start(request).await;
    let asked = question(&host.host).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn edited_arguments_run_in_place_of_the_model_s_and_the_change_is_on_record() {
    let schema = json!({ "type": "object", "required": ["target"],
        "properties": { "target": { "type": "string" }, "n": { "type": "integer" } } });
    let tool = act().schema(schema);
    let host = host(&tool).await;
    let handle = start(&host, json!({ "target": "main", "n": 1 })).await;
    let id = question(&host.host).await.ask_id;
    for bad in [json!({}), json!({ "target": 1 }), json!("main")] {
        let refused = decide(&host, id, edited(bad.clone())).await;
        assert!(
            matches!(&refused, Err(ApprovalError::BadArguments(faults)) if !faults.is_empty()),
            "{bad}"
        );
    }
    assert_eq!(
        host.host.approvals().len(),
        1,
        "an answer that does not count leaves the question"
    );

    decide(&host, id, edited(json!({ "target": "branch", "n": 1 })))
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.inputs(), [json!({ "target": "branch", "n": 1 })]);
    let rows = records_of(&host, id).await;
    assert_eq!(kinds(&rows), ["asked", "decided", "started", "ended"]);
    assert_eq!(body(&rows[0])["call"]["arguments"]["target"], "main");
    assert_eq!(body(&rows[1])["changed_fields"], json!(["target"]));
    assert_eq!(
        body(&rows[3])["arguments"]["target"],
        "branch",
        "what it ran with, beside what it came with"
    );
    let mutation = body(&rows[3])["mutations"][0].clone();
    assert_eq!(
        (&mutation["source_type"], &mutation["source"]),
        (&json!("permission_prompt"), &json!("ann"))
    );
    assert!(
        mutation["changed_fields"].to_string().contains("target"),
        "{mutation}"
    );
}

#[tokio::test]
async fn an_edit_is_decided_again_and_a_deny_stands() {
    let tool = act();
    let host = host(&tool).await;
    let handle = start(&host, target("main")).await;
    decide(
        &host,
        question(&host.host).await.ask_id,
        edited(target("forbidden")),
    )
    .await
    .unwrap();
    let answer = handle.answer().await;
    assert_eq!(
        answer.result().error_class(),
        Some(ErrorClass::PermissionDenied)
    );
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn what_is_not_shown_cannot_be_edited_and_is_nowhere_to_be_read() {
    let schema = json!({ "type": "object", "properties": { "pin": { "type": "string", "x-sensitive": true } } });
    let tool = act().schema(schema);
    let host = host(&tool).await;
    let handle = start(&host, json!({ "pin": "123456789" })).await;
    let asked = question(&host.host).await;
    assert!(asked.redacted);
    assert!(!serde_json::to_string(&asked).unwrap().contains("123456789"));
    let refused = decide(&host, asked.ask_id, edited(json!({ "pin": "987654321" }))).await;
    assert!(matches!(refused, Err(ApprovalError::Redacted)));
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.inputs(), [json!({ "pin": "123456789" })]);
    for row in records_of(&host, asked.ask_id).await {
        assert!(
            !row.record.body.contains("123456789"),
            "{}",
            row.record.body
        );
    }
}

#[tokio::test]
async fn a_secret_that_comes_with_an_edit_is_not_recorded() {
    let schema = json!({ "type": "object", "properties": { "pin": { "type": "string", "x-sensitive": true } } });
    let tool = act().schema(schema);
    let host = host(&tool).await;
    let handle = start(&host, json!({})).await;
    let id = question(&host.host).await.ask_id;
    decide(&host, id, edited(json!({ "pin": "123456789" })))
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.inputs(), [json!({ "pin": "123456789" })]);
    for row in records_of(&host, id).await {
        assert!(
            !row.record.body.contains("123456789"),
            "{}",
            row.record.body
        );
    }
}

#[tokio::test]
async fn only_operators_answer_and_no_agent_does_for_itself() {
    let tool = act();
    let host = host(&tool).await;
    let _handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    let agent = host.host.decide(id, yes(), &Principal::agent("ann")).await;
    assert!(matches!(agent, Err(ApprovalError::NotOperator)));
    let namesake = host
        .host
        .decide(id, yes(), &Principal::operator("test"))
        .await;
    assert!(matches!(namesake, Err(ApprovalError::OwnCall(_))));
    let nothing = host
        .host
        .decide(InvocationId::new(), yes(), &operator())
        .await;
    assert!(matches!(nothing, Err(ApprovalError::Unknown(_))));
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn an_operator_answers_for_calls_of_its_own() {
    let tool = act();
    let host = host(&tool).await;
    let session = host.host.default_session(&operator());
    let mut request = host.request("act", target("main"));
    request.session = session;
    let handle = host.host.start(request).await;
    decide(&host, question(&host.host).await.ask_id, yes())
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn without_anybody_to_ask_an_ask_is_a_denial_and_explain_tells_the_two_apart() {
    for (approvals, asks) in [(Approvals::Nobody, false), (Approvals::ASK, true)] {
        let tool = act();
        let host = TestHost::build(|builder| {
            builder
                .tool(tool.clone())
                .policy(Engine::default())
                .approvals(approvals)
        });
        let host = host.await;
        let explained = host.host.explain(host.request("act", target("main"))).await;
        assert_eq!((explained.would_run, explained.would_ask), (false, asks));
        assert!(host.host.approvals().is_empty(), "explaining asks nobody");
        if !asks {
            let result = host.call("act", target("main")).await;
            assert_eq!(result.error.unwrap().code, "no_approver");
        }
    }
}

#[tokio::test]
async fn a_question_that_a_hook_wanted_is_asked_like_any_other() {
    let tool = act();
    let host = TestHost::build(|builder| {
        asking(builder, &tool)
            .policy(Engine::new(toolpost_model::PermissionMode::Bypass, &[]))
            .hook(Doubting)
    });
    let host = host.await;
    let handle = start(&host, target("main")).await;
    decide(&host, question(&host.host).await.ask_id, yes())
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.call_count(), 1);
}

/// A hook that wants a person to look at everything.
pub(super) struct Doubting;

impl toolpost_core::Hook for Doubting {
    fn name(&self) -> &str {
        "doubting"
    }

    fn before<'a>(
        &'a self,
        _: &'a toolpost_core::HookCall<'a>,
    ) -> toolpost_model::BoxFuture<'a, Result<toolpost_core::HookOutput, toolpost_core::HookError>>
    {
        Box::pin(std::future::ready(Ok(toolpost_core::HookOutput::opinion(
            toolpost_model::Behavior::Ask,
            "have a look",
        ))))
    }
}

#[tokio::test]
async fn an_answered_question_tells_who_was_faster() {
    let tool = act();
    let host = host(&tool).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    decide(&host, id, no("never")).await.unwrap();
    handle.answer().await;
    let again = decide(&host, id, yes()).await;
    let Err(ApprovalError::AlreadyDecided {
        by, allowed: false, ..
    }) = again
    else {
        panic!("{again:?}")
    };
    assert_eq!(by.as_str(), "ann");
    // Also for a host that was not there.
    let later = super::next_life(&host.journal, &tool).await;
    let again = later
        .host
        .decide(id, Verdict::Deny { feedback: None }, &operator())
        .await;
    assert!(
        matches!(
            again,
            Err(ApprovalError::AlreadyDecided { allowed: false, .. })
        ),
        "{again:?}"
    );
    let decided = host
        .records()
        .await
        .into_iter()
        .filter(|row| row.record.kind == RecordKind::Decided);
    assert_eq!(decided.count(), 1);
}
