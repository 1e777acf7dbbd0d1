//! Deadlines, cancels and what is left running: nothing.

use std::time::Duration;

use serde_json::json;
use toolpost_model::{ErrorClass, Outcome, Principal};

use crate::workshop::{Tripwire, Workshop, facts, heard, text};

/// A tree that does its best to stay: ignores signals, leaves its session, goes to the background twice.
const STUBBORN: &str = "exec 9>wire; trap '' TERM INT HUP; \
    setsid bash -c 'trap \"\" TERM; (sleep 1000 & sleep 1000) & sleep 1000' & \
    echo started; while :; do sleep 1; done";

#[tokio::test]
async fn at_its_own_time_limit_a_command_is_stopped_with_all_it_started() {
    let shop = Workshop::new().await;
    let wire = Tripwire::lay(&shop, "wire");
    let result = shop
        .call(
            "shell",
            json!({ "command": STUBBORN, "timeout_seconds": 1 }),
        )
        .await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::TimedOut, Some(ErrorClass::Timeout))
    );
    assert_eq!(text(&result), "started\n[stopped]");
    assert_eq!(facts(&result)["state"], "stopped");
    let hint = result.error.unwrap().hint.unwrap();
    assert!(
        hint.contains("`timeout_seconds`") && hint.contains("background"),
        "{hint}"
    );
    assert!(result.sandbox.is_some());
    wire.sprung().await;
}

#[tokio::test]
async fn at_the_host_s_deadline_the_output_so_far_is_told() {
    let shop = Workshop::new().await;
    let wire = Tripwire::lay(&shop, "wire");
    let mut request = shop.host.request("shell", json!({ "command": STUBBORN }));
    request.times.timeout = Some(Duration::from_millis(1500));
    let answer = shop.host.host.call(request).await;
    let result = answer.result();
    assert_eq!(
        (result.outcome, text(result)),
        (Outcome::TimedOut, "started\n[stopped]")
    );
    wire.sprung().await;
}

#[tokio::test]
async fn a_canceled_command_tidies_up_and_is_gone() {
    let shop = Workshop::new().await;
    let wire = Tripwire::lay(&shop, "wire");
    let command =
        "exec 9>wire; trap 'echo tidied; exit 0' TERM; echo started; while :; do sleep 0.05; done";
    let (request, mut recorder) = shop.watched("shell", json!({ "command": command }));
    let handle = shop.host.host.start(request).await;
    heard(&mut recorder, "started").await;
    assert!(
        shop.host
            .host
            .cancel(handle.invocation_id(), &Principal::agent("test"))
    );
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Canceled);
    // In between, bash says that the `sleep` it waited for was told to end as well.
    let said = text(answer.result());
    assert!(
        said.starts_with("started\n") && said.ends_with("tidied\n[stopped]"),
        "{said}"
    );
    wire.sprung().await;
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_its_command_along() {
    let shop = Workshop::new().await;
    let wire = Tripwire::lay(&shop, "wire");
    let (request, mut recorder) = shop.watched("shell", json!({ "command": STUBBORN }));
    let handle = shop.host.host.start(request).await;
    heard(&mut recorder, "started").await;
    drop(handle);
    wire.sprung().await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_neither_delays_nor_outlives_it() {
    let shop = Workshop::new().await;
    let wire = Tripwire::lay(&shop, "wire");
    let result = shop
        .shell("exec 9>wire; setsid sleep 1000 & (sleep 1000 &) ; echo done")
        .await;
    assert_eq!(text(&result), "done\n[exit code 0]");
    wire.sprung().await;
}

#[tokio::test]
async fn long_output_of_a_stopped_command_can_still_be_read() {
    let shop = Workshop::new().await;
    let result = shop
        .call(
            "shell",
            json!({ "command": "seq 1 50000; sleep 1000", "timeout_seconds": 2 }),
        )
        .await;
    assert_eq!(result.outcome, Outcome::TimedOut);
    let tail = shop
        .call(
            "read_result",
            json!({ "ref": result.artifacts[0].id, "offset": -1 }),
        )
        .await;
    assert_eq!(text(&tail), "50000\n");
}
