//! Deadlines, cancels and deaths: nothing is left behind, and everybody is told the truth.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_model::{ErrorClass, Outcome, SandboxTier};

use super::stage::{BOTH, Core, Stage, Wanted, module, processes, until};

const SOON: Duration = Duration::from_millis(400);

/// Calls, waits until the processes are there, and cancels.
async fn canceled(stage: &Stage, tool: &str, arguments: Value, words: &str, least: usize) {
    let host = stage.test.host.clone();
    let request = stage.test.request(tool, arguments);
    let principal = stage.test.session.principal().clone();
    let handle = host.start(request).await;
    let id = handle.invocation_id();
    until("its processes", || processes(words).len() >= least).await;
    assert!(host.cancel(id, &principal));
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Canceled, "{answer:?}");
    assert_eq!(processes(words), Vec::<String>::new(), "{tool}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_call_leaves_no_process_behind() {
    for (core, mark) in BOTH.into_iter().zip(["48101", "48102"]) {
        let stage = Stage::new(core, &["tool-shell"]).await;
        let words = format!("sleep {mark}");
        // Shell, its child, and a grandchild in a session of its own.
        let command = format!("(setsid sleep {mark} &) ; sleep {mark} & sleep {mark}");
        canceled(&stage, "shell", json!({ "command": command }), &words, 3).await;
        canceled(&stage, "shielded", json!({ "mark": mark }), &words, 2).await;
        canceled(&stage, "daemon", json!({ "mark": mark }), &words, 2).await;
        // All of that in one process, which still works.
        assert_eq!(
            stage
                .call("shell", json!({ "command": "true" }))
                .await
                .outcome,
            Outcome::Succeeded
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_behind_on_machines_that_confine_less() {
    for (tier, mark) in [
        (SandboxTier::B, "48111"),
        (SandboxTier::C, "48112"),
        (SandboxTier::N, "48113"),
    ] {
        let stage = Wanted::new(Core::StandIn, &["tool-shell"])
            .set(|wanted| wanted.tier = tier)
            .start()
            .await;
        let words = format!("sleep {mark}");
        let command = format!("(setsid sleep {mark} &) ; sleep {mark} & sleep {mark}");
        canceled(&stage, "shell", json!({ "command": command }), &words, 3).await;
        canceled(&stage, "daemon", json!({ "mark": mark }), &words, 2).await;
        assert_eq!(
            stage
                .call("shell", json!({ "command": "true" }))
                .await
                .outcome,
            Outcome::Succeeded
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_out_of_time_leaves_no_process_behind() {
    let stage = Stage::new(Core::StandIn, &["tool-shell"]).await;
    let command = "setsid sleep 48103 & sleep 48103";
    let late = stage
        .call_within("shell", json!({ "command": command }), SOON)
        .await;
    assert_eq!(late.outcome, Outcome::TimedOut, "{late:?}");
    assert_eq!(processes("sleep 48103"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn background_children_live_as_long_as_their_session() {
    let stage = Stage::new(Core::StandIn, &["tool-shell"]).await;
    let session = stage.session("a").await;
    let arguments = json!({ "command": "exec sleep 48104", "run_in_background": true });
    let started = stage.call_in(&session, "shell", arguments).await;
    assert_eq!(started.outcome, Outcome::Succeeded);
    let other = stage
        .call_in(&session, "shell", json!({ "command": "true" }))
        .await;
    assert_eq!(other.outcome, Outcome::Succeeded);
    assert_eq!(processes("sleep 48104").len(), 1);
    // A call of somebody else that is stopped does not take it along.
    let late = stage
        .call_within("shell", json!({ "command": "sleep 48105" }), SOON)
        .await;
    assert_eq!(late.outcome, Outcome::TimedOut);
    assert_eq!(processes("sleep 48104").len(), 1);
    stage.test.host.close_session(&session).await.unwrap();
    until("its end", || processes("sleep 48104").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_blocks_delays_only_itself() {
    let stage = Stage::new(Core::StandIn, &["tool-rough", "tool-desk"]).await;
    let blocked = stage.session("a").await;
    let other = stage.session("b").await;
    let mounted = stage.call_in(&other, "nap", json!({ "seconds": 0 })).await;
    assert_eq!(mounted.outcome, Outcome::Succeeded);
    let blocking = stage.call_in(&blocked, "block", json!({ "until": "wake" }));
    let meanwhile = async {
        until("a blocked loop", || {
            stage.folder.path().join("asleep").exists()
        })
        .await;
        for tool in ["count_mounts", "nothing"] {
            let called = stage.call_in(&other, tool, json!({})).await;
            assert_eq!(called.outcome, Outcome::Succeeded, "{tool}");
        }
        std::fs::write(stage.folder.path().join("wake"), "").unwrap();
    };
    let (result, ()) = tokio::join!(blocking, meanwhile);
    assert_eq!(result.model_text(), "awake");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_module_is_answered_within_a_second_of_its_limit() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough"]).await;
        for tool in ["block", "spin", "deaf"] {
            // Mounted before, so that the limit is the call's alone.
            assert_eq!(
                stage.call("nothing", json!({})).await.outcome,
                Outcome::Succeeded
            );
            let limit = Duration::from_secs(1);
            let begun = std::time::Instant::now();
            let late = stage.call_within(tool, json!({}), limit).await;
            let took = begun.elapsed();
            assert_eq!(late.outcome, Outcome::TimedOut, "{tool}: {late:?}");
            assert!(
                took >= limit && took < limit + Duration::from_secs(1),
                "{tool}: {took:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_will_not_stop_ends_with_its_process_and_others_are_told_why() {
    for tool in ["block", "spin", "deaf"] {
        let stage = Stage::new(Core::StandIn, &["tool-rough", "tool-desk"]).await;
        let other = stage.session("b").await;
        let bystander = stage.call_in(&other, "nap", json!({ "seconds": 60 }));
        let late = stage.call_within(tool, json!({}), SOON);
        let (late, bystander) = tokio::join!(late, bystander);
        assert_eq!(late.outcome, Outcome::TimedOut, "{tool}: {late:?}");
        let error = bystander.error.unwrap();
        assert!(
            error.message.contains("did not stop when it was canceled"),
            "{tool}: {error:?}"
        );
        assert_eq!(
            (error.class, error.code.as_ref()),
            (ErrorClass::ExecutionFailed, "module_process_ended")
        );
        // Both sessions are mounted again, in a new process.
        let counted = stage
            .call("count_mounts", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(
            (&counted["mounts"], &counted["calls"]),
            (&json!(1), &json!(1)),
            "{tool}"
        );
        let counted = stage
            .call_in(&other, "count_mounts", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(counted["mounts"], 2, "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_is_told_to_the_call_that_met_it_and_the_next_one_works() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough"]).await;
        stage
            .call("remember", json!({ "value": { "kept": true } }))
            .await;
        let error = stage.call("crash", json!({})).await.error.unwrap();
        assert_eq!(error.code, "module_process_ended");
        assert!(
            error.message.contains("exit code 7") && error.message.contains("last words"),
            "{error:?}"
        );
        assert!(!error.retry.safe);
        // What a module registered as data is there again.
        let kept = stage
            .call("remember", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(kept, json!({ "kept": true }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cleanups_run_when_the_session_ends() {
    let stage = Wanted::new(Core::StandIn, &[]);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap().join("bye");
    let farewell = place.display().to_string();
    let stage = stage
        .set(|wanted| {
            let mut rough = module("tool-rough");
            rough
                .planned
                .config
                .insert("farewell".to_owned(), json!(farewell));
            wanted.modules.push(rough);
            wanted
                .settings
                .writable
                .push(folder.path().canonicalize().unwrap());
        })
        .start()
        .await;
    let session = stage.session("a").await;
    assert_eq!(
        stage.call_in(&session, "nothing", json!({})).await.outcome,
        Outcome::Succeeded
    );
    assert!(!place.exists());
    stage.test.host.close_session(&session).await.unwrap();
    until("the cleanup", || place.exists()).await;
}
