//! What a call leaves to tasks and threads stops with it, and ends with its session.

use std::time::Duration;

use serde_json::json;
use toolpost_model::Outcome;

use super::stage::{BOTH, Core, Stage, processes, until};

/// Calls, waits until the work has begun, and cancels.
async fn canceled(stage: &Stage, tool: &str, mark: &str) {
    let host = stage.test.host.clone();
    let principal = stage.test.session.principal().clone();
    let handle = host
        .start(stage.test.request(tool, json!({ "mark": mark })))
        .await;
    let id = handle.invocation_id();
    let begun = stage.folder.path().join(format!("begun-{mark}"));
    until("its work", || begun.exists()).await;
    assert!(host.cancel(id, &principal));
    let answer = handle.answer().await;
    assert_eq!(
        answer.result().outcome,
        Outcome::Canceled,
        "{tool}: {answer:?}"
    );
    assert_eq!(
        processes(&format!("sleep {mark}")),
        Vec::<String>::new(),
        "{tool}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_threads_of_a_canceled_call_start_nothing_more() {
    let ways = [
        "task",
        "shield",
        "task_of_task",
        "thread",
        "raw_thread",
        "executor",
        "own_pool",
    ];
    for (core, first) in BOTH.into_iter().zip([48_200, 48_220]) {
        let stage = Stage::new(core, &["tool-restless"]).await;
        for (tool, mark) in ways.into_iter().zip(first..) {
            canceled(&stage, tool, &mark.to_string()).await;
        }
        let mark = (first + 10).to_string();
        canceled(&stage, "later", &mark).await;
        // The loop of the process that answered still turns, or the process is gone and nothing comes.
        let late = stage.folder.path().join(format!("late-{mark}"));
        let given_up = tokio::time::Instant::now() + Duration::from_secs(3);
        while !late.exists() && tokio::time::Instant::now() < given_up {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for mark in first..=first + 10 {
            assert_eq!(
                processes(&format!("sleep {mark}")),
                Vec::<String>::new(),
                "{core:?} {mark}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_does_not_end_costs_its_process_and_one_of_a_pool_that_waits_does_not() {
    let stage = Stage::new(Core::StandIn, &["tool-restless", "tool-rough"]).await;
    let process = || async { stage.call("process", json!({})).await.model_text() };
    let before = process().await;
    canceled(&stage, "idle", "48240").await;
    assert_eq!(process().await, before);
    canceled(&stage, "thread_for_ever", "48241").await;
    assert_ne!(process().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_threads_and_tasks_have_started_ends_with_the_session() {
    for (core, first) in BOTH.into_iter().zip([48_250, 48_260]) {
        let stage = Stage::new(core, &["tool-restless"]).await;
        let session = stage.session("a").await;
        for (tool, mark) in ["thread_left", "task_left"].into_iter().zip(first..) {
            let left = stage
                .call_in(&session, tool, json!({ "mark": mark.to_string() }))
                .await;
            assert_eq!(left.outcome, Outcome::Succeeded, "{tool}: {left:?}");
            let words = format!("sleep {mark}");
            until("its process", || processes(&words).len() == 1).await;
        }
        stage.test.host.close_session(&session).await.unwrap();
        for mark in first..first + 2 {
            let words = format!("sleep {mark}");
            until("its end", || processes(&words).is_empty()).await;
        }
    }
}
