//! One mount a session, and what sessions share.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::json;
use toolpost_core::CallRequest;
use toolpost_model::{ModelInput, Outcome};
use toolpost_modules::ProcessIsolation;

use super::stage::{BOTH, Core, Stage, Wanted, processes, until};

#[tokio::test(flavor = "multi_thread")]
async fn each_session_has_a_mount_of_its_own_and_the_first_takes_the_first() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-desk"]).await;
        let first = stage.session("a").await;
        let second = stage.session("b").await;
        let count = async |session| {
            stage
                .call_in(session, "count_mounts", json!({}))
                .await
                .structured_content
                .unwrap()
        };
        let one = count(&first).await;
        assert_eq!(
            one,
            json!({ "mounts": 1, "session": first.id().as_str(), "calls": 1 })
        );
        let two = count(&second).await;
        assert_eq!(
            two,
            json!({ "mounts": 2, "session": second.id().as_str(), "calls": 1 })
        );
        assert_eq!(count(&first).await["calls"], 2);
        assert_eq!(count(&first).await["mounts"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_may_have_a_process_each() {
    let wanted = Wanted::new(Core::StandIn, &["tool-desk", "tool-rough"]);
    let stage = wanted
        .set(|wanted| wanted.settings.isolation = ProcessIsolation::Process)
        .start()
        .await;
    let first = stage.session("a").await;
    let second = stage.session("b").await;
    for session in [&first, &second] {
        let counted = stage
            .call_in(session, "count_mounts", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(
            (&counted["mounts"], &counted["calls"]),
            (&json!(1), &json!(1))
        );
    }
    let crashed = stage.call_in(&first, "crash", json!({})).await;
    assert!(crashed.is_error);
    let counted = stage
        .call_in(&second, "count_mounts", json!({}))
        .await
        .structured_content
        .unwrap();
    assert_eq!(
        counted["calls"], 2,
        "the other session's process is another one"
    );
    let counted = stage
        .call_in(&first, "count_mounts", json!({}))
        .await
        .structured_content
        .unwrap();
    assert_eq!(counted["calls"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_different_sessions_overlap() {
    let stage = Stage::new(Core::StandIn, &["tool-rough"]).await;
    let mut sessions = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let session = stage.session(name).await;
        stage.call_in(&session, "nothing", json!({})).await;
        sessions.push(session);
    }
    let meet = sessions.iter().enumerate().map(|(number, session)| {
        stage.call_in(
            session,
            "meet",
            json!({ "name": number.to_string(), "count": 4 }),
        )
    });
    let met = futures_util::future::join_all(meet).await;
    assert!(
        met.iter()
            .all(|result| result.outcome == Outcome::Succeeded),
        "{met:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_host_that_is_gone() {
    let stage = Stage::new(Core::StandIn, &["tool-shell"]).await;
    let arguments = json!({ "command": "exec sleep 48120", "run_in_background": true });
    assert_eq!(
        stage.call("shell", arguments).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(processes("sleep 48120").len(), 1);
    let Stage { test, modules, .. } = stage;
    drop((test, modules));
    until("its end", || processes("sleep 48120").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_outlives_the_call_that_began_it() {
    let wanted = Wanted::new(Core::StandIn, &["tool-slow"]).set(|wanted| {
        wanted.modules[0]
            .planned
            .config
            .insert("seconds".to_owned(), json!(2));
    });
    let stage = wanted.start().await;
    let first = stage.session("a").await;
    let second = stage.session("b").await;
    assert_eq!(
        stage
            .call_in(&first, "slow", json!({}))
            .await
            .structured_content
            .unwrap()["mounts"],
        1
    );
    let mut request = CallRequest::new(Arc::clone(&second), "slow", ModelInput::value(json!({})));
    request.times.timeout = Some(Duration::from_millis(300));
    let stopped = stage.test.host.call(request).await.result().clone();
    assert_eq!(stopped.outcome, Outcome::TimedOut);
    let counted = stage
        .call_in(&second, "slow", json!({}))
        .await
        .structured_content
        .unwrap();
    assert_eq!(
        counted["mounts"], 2,
        "the call after the one that was stopped has the mount it began"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_module_sees_an_id_that_another_session_has() {
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let stage = Stage::new(Core::StandIn, &["tool-slow"]).await;
        for who in ["a", "b"] {
            let session = stage.session(who).await;
            let told = stage
                .call_in(&session, "slow", json!({}))
                .await
                .structured_content
                .unwrap();
            assert_eq!(told["now"], session.id().as_str());
            seen.insert(told["at_mount"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_session_loses_the_others_keep() {
    let stage = Stage::new(Core::StandIn, &["tool-slow", "tool-rough"]).await;
    let first = stage.session("a").await;
    let second = stage.session("b").await;
    assert_eq!(
        stage.call_in(&second, "slow", json!({})).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(
        stage.call_in(&first, "remove", json!({})).await.outcome,
        Outcome::Succeeded
    );
    // The list is made anew for this one, so it has been made for the one before it.
    assert_eq!(
        stage.call_in(&first, "grow", json!({})).await.outcome,
        Outcome::Succeeded
    );
    until("the new tool", || {
        stage.tools().contains(&"grown".to_owned())
    })
    .await;
    assert!(stage.tools().contains(&"slow".to_owned()));
    let lost = stage
        .call_in(&first, "slow", json!({}))
        .await
        .error
        .unwrap();
    assert!(
        lost.message.contains("has no tool `slow` any more"),
        "{lost:?}"
    );
    assert_eq!(
        stage.call_in(&second, "slow", json!({})).await.outcome,
        Outcome::Succeeded
    );
}
