//! Callers that come together, and callers that leave.

use std::time::Duration;

use toolpost_core::{ApprovalError, HostLimits, QuestionClosure};
use toolpost_model::{ErrorClass, Outcome, Principal, SurfaceRequest};
use toolpost_testkit::TestHost;

use super::{
    act, asking, decide, ends, host, kinds, question, questions, records_of, start, target,
    waiting, yes,
};

#[tokio::test]
async fn the_same_call_twice_is_one_question_and_whoever_leaves_takes_nothing_from_the_other() {
    let tool = act();
    let host = host(&tool).await;
    let first = start(&host, target("main")).await;
    question(&host.host).await;
    let second = start(&host, target("main")).await;
    let asked = waiting(&host.host, 2).await;
    assert_eq!(asked.ask_id, first.invocation_id());
    let third = start(&host, target("main")).await;
    waiting(&host.host, 3).await;

    let gone = first.invocation_id();
    let stays = second.invocation_id();
    let last = third.invocation_id();
    drop(first);
    waiting(&host.host, 2).await;
    let decided = decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!((decided.waiting, decided.kept_until), (2, None));
    assert_eq!(second.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(third.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.call_count(), 2);
    for id in [stays, last] {
        assert_eq!(
            kinds(&records_of(&host, id).await),
            ["asked", "started", "ended"]
        );
    }
    assert_eq!(ends(&host.journal, gone).await[0]["outcome"], "canceled");
    // The answer stands with the call that raised the question, though that one had gone.
    let rows = kinds(&records_of(&host, gone).await);
    assert_eq!(rows, ["asked", "ended", "decided"]);
}

#[tokio::test]
async fn other_callers_and_other_arguments_are_other_questions() {
    let tool = act();
    let host = host(&tool).await;
    let _one = start(&host, target("main")).await;
    let _two = start(&host, target("branch")).await;
    let mut request = host.request("act", target("main"));
    request.session = host.host.default_session(&Principal::agent("other"));
    let _three = host.host.start(request).await;
    let open = questions(&host.host, 3).await;
    let hashes: std::collections::HashSet<_> = open.iter().map(|asked| asked.call_hash).collect();
    assert_eq!(hashes.len(), 3);
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_only_caller_cancels_goes_or_closes_its_session() {
    for way in ["canceled", "gone", "closed"] {
        let tool = act();
        let host = host(&tool).await;
        let owner = Principal::agent("owner");
        let session = host
            .host
            .open_session(owner.clone(), SurfaceRequest::default())
            .await
            .unwrap();
        let mut request = host.request("act", target("main"));
        request.session = session.clone();
        let handle = host.host.start(request).await;
        let asked = question(&host.host).await;
        let id = handle.invocation_id();
        match way {
            "canceled" => assert!(host.host.cancel(id, &owner)),
            "gone" => drop(handle),
            _ => host.host.close_session(&session).await.unwrap(),
        }
        questions(&host.host, 0).await;
        let late = decide(&host, asked.ask_id, yes()).await;
        assert!(
            matches!(late, Err(ApprovalError::Withdrawn)),
            "{way}: {late:?}"
        );
        assert_eq!(
            host.host.closed_approval(asked.ask_id),
            Some(QuestionClosure::Withdrawn)
        );
        super::settle(&host).await;
        assert_eq!(
            ends(&host.journal, id).await[0]["outcome"],
            "canceled",
            "{way}"
        );
        assert_eq!(tool.call_count(), 0, "{way}");
    }
}

#[tokio::test]
async fn too_many_questions_are_refused_and_one_caller_gets_half_of_the_room() {
    let tool = act();
    let limits = HostLimits {
        approvals: 4,
        ..HostLimits::default()
    };
    let host = TestHost::build(|builder| asking(builder, &tool).limits(limits)).await;
    let mut parked = vec![
        start(&host, target("a")).await,
        start(&host, target("a")).await,
    ];
    waiting(&host.host, 2).await;
    for arguments in [target("a"), target("b")] {
        let refused = host.call("act", arguments).await.error.unwrap();
        assert_eq!(
            (refused.class, refused.code.as_ref()),
            (ErrorClass::RateLimited, "too_many_approvals")
        );
        assert!(
            refused.message.contains("`approvals.waiting`"),
            "{}",
            refused.message
        );
    }
    for name in ["x", "y"] {
        let mut request = host.request("act", target(name));
        request.session = host.host.default_session(&Principal::agent("other"));
        parked.push(host.host.start(request).await);
    }
    questions(&host.host, 3).await;
    let mut request = host.request("act", target("z"));
    request.session = host.host.default_session(&Principal::agent("third"));
    let refused = host.host.call(request).await;
    assert_eq!(refused.result().outcome, Outcome::Rejected);
    assert!(
        refused
            .result()
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("4 calls wait")
    );
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_no_longer_leaves_the_others_waiting() {
    let tool = act();
    let host = host(&tool).await;
    let patient = start(&host, target("main")).await;
    question(&host.host).await;
    let mut request = host.request("act", target("main"));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_secs(1)));
    let answer = host.host.call(request).await;
    assert_eq!(
        answer.result().error_class(),
        Some(ErrorClass::ApprovalPending)
    );
    let asked = waiting(&host.host, 1).await;
    let decided = decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(decided.kept_until, None, "there was somebody to hear it");
    assert_eq!(patient.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.call_count(), 1);
}
