//! Processes that outlive their call, and their tools.

use serde_json::{Value, json};
use toolpost_model::{ErrorClass, Principal, SurfaceRequest, ToolResult};

use crate::workshop::{Tripwire, Workshop, facts, text};

async fn start(shop: &Workshop, command: &str) -> String {
    let result = shop
        .call("shell", json!({ "command": command, "background": true }))
        .await;
    assert_eq!(facts(&result)["state"], "running", "{result:#?}");
    assert!(result.sandbox.is_some());
    facts(&result)["process_id"].as_str().unwrap().to_owned()
}

async fn read(shop: &Workshop, id: &str, offset: u64) -> ToolResult {
    shop.call(
        "process_read",
        json!({ "process_id": id, "offset": offset, "wait_seconds": 30 }),
    )
    .await
}

fn next(result: &ToolResult) -> u64 {
    facts(result)["next_offset"].as_u64().unwrap()
}

#[tokio::test]
async fn a_process_is_talked_with_until_its_input_ends() {
    let shop = Workshop::new().await;
    let id = start(
        &shop,
        "echo ready; while read line; do echo \"got $line\"; done; echo bye; exit 4",
    )
    .await;
    let first = read(&shop, &id, 0).await;
    assert!(
        text(&first).starts_with("ready\n[running; 6 of 6 bytes; read on at offset 6]"),
        "{}",
        text(&first)
    );
    let wrote = shop
        .call(
            "process_write",
            json!({ "process_id": id, "text": "one\n" }),
        )
        .await;
    assert_eq!(facts(&wrote)["written"], 4);
    let second = read(&shop, &id, next(&first)).await;
    assert!(
        text(&second).starts_with("got one\n[running; "),
        "{}",
        text(&second)
    );
    shop.call(
        "process_write",
        json!({ "process_id": id, "text": "two\n", "close": true }),
    )
    .await;
    let mut at = next(&second);
    let mut rest = String::new();
    loop {
        let part = read(&shop, &id, at).await;
        at = next(&part);
        rest.push_str(text(&part).rsplit_once('[').unwrap().0);
        if facts(&part)["at_end"] == true {
            assert_eq!(
                (&facts(&part)["state"], &facts(&part)["exit_code"]),
                (&json!("exited"), &json!(4))
            );
            break;
        }
    }
    assert_eq!(rest, "got two\nbye\n");
    let late = shop
        .call(
            "process_write",
            json!({ "process_id": id, "text": "three\n" }),
        )
        .await;
    assert_eq!(late.error.unwrap().code, "input_closed");
}

#[tokio::test]
async fn a_process_is_ended_on_request_gently_or_not() {
    let shop = Workshop::new().await;
    let wire = Tripwire::lay(&shop, "wire");
    let gentle =
        "exec 9>wire; trap 'echo tidied; exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let id = start(&shop, gentle).await;
    read(&shop, &id, 0).await;
    let ended = shop.call("process_kill", json!({ "process_id": id })).await;
    assert_eq!(facts(&ended)["exit_code"], 7, "{ended:#?}");
    wire.sprung().await;
    // In between, bash says that the `sleep` it waited for was told to end as well.
    let said = read(&shop, &id, 0).await;
    assert!(
        text(&said).starts_with("up\n") && text(&said).contains("tidied\n[exit code 7; "),
        "{said:#?}"
    );
    let again = shop.call("process_kill", json!({ "process_id": id })).await;
    assert!(text(&again).contains("had already ended"));

    let wire = Tripwire::lay(&shop, "wire2");
    let id = start(
        &shop,
        "exec 9>wire2; trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done",
    )
    .await;
    let ended = shop
        .call("process_kill", json!({ "process_id": id, "force": true }))
        .await;
    assert_eq!(facts(&ended)["signal"], 9, "{ended:#?}");
    wire.sprung().await;
}

#[tokio::test]
async fn a_process_that_fails_at_once_says_so_at_once() {
    let shop = Workshop::new().await;
    let result = shop
        .call(
            "shell",
            json!({ "command": "echo wrong; exit 9", "background": true }),
        )
        .await;
    assert_eq!(
        (&facts(&result)["state"], &facts(&result)["exit_code"]),
        (&json!("exited"), &json!(9))
    );
    assert!(
        text(&result).starts_with("wrong\n[it has already ended: exit code 9"),
        "{}",
        text(&result)
    );
}

#[tokio::test]
async fn processes_are_listed_and_belong_to_their_session() {
    let shop = Workshop::new().await;
    assert_eq!(
        text(&shop.call("process_status", json!({})).await),
        "no processes in this session"
    );
    let arguments =
        json!({ "command": "sleep 1000", "background": true, "description": "wait a bit" });
    let started = shop.call("shell", arguments).await;
    let id = facts(&started)["process_id"].as_str().unwrap().to_owned();
    let status = shop.call("process_status", json!({})).await;
    let all = facts(&status)["processes"].as_array().unwrap();
    assert_eq!(
        (all.len(), &all[0]["process_id"], &all[0]["state"]),
        (1, &json!(id), &json!("running"))
    );
    assert!(text(&status).contains("wait a bit"));
    let stranger = shop.session().await;
    for tool in [
        "process_status",
        "process_read",
        "process_write",
        "process_kill",
    ] {
        let result = shop
            .call_in(&stranger, tool, json!({ "process_id": id }))
            .await;
        let error = result.error.unwrap();
        assert_eq!(
            (error.class, error.code.as_ref()),
            (ErrorClass::InvalidArguments, "not_found"),
            "{tool}"
        );
    }
    assert_eq!(
        facts(
            &shop
                .call("process_status", json!({ "process_id": id }))
                .await
        )["processes"][0]["state"],
        "running"
    );
}

#[tokio::test]
async fn everything_ends_with_its_session() {
    let shop = Workshop::new().await;
    let first = Tripwire::lay(&shop, "first");
    let second = Tripwire::lay(&shop, "second");
    let session = shop.session().await;
    for wire in ["first", "second"] {
        let command =
            format!("exec 9>{wire}; trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done");
        let result = shop
            .call_in(
                &session,
                "shell",
                json!({ "command": command, "background": true }),
            )
            .await;
        assert_eq!(facts(&result)["state"], "running");
    }
    shop.host.host.close_session(&session).await.unwrap();
    first.sprung().await;
    second.sprung().await;
}

#[tokio::test]
async fn a_session_may_have_so_many_and_no_more() {
    let shop = Workshop::new().await;
    let mut ids: Vec<Value> = Vec::new();
    for _ in 0..16 {
        ids.push(json!(start(&shop, "sleep 1000").await));
    }
    let refused = shop
        .call(
            "shell",
            json!({ "command": "sleep 1000", "background": true }),
        )
        .await;
    let error = refused.error.unwrap();
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::RateLimited, "too_many_processes")
    );
    assert!(error.message.contains("16"), "{}", error.message);
    shop.call(
        "process_kill",
        json!({ "process_id": ids[0], "force": true }),
    )
    .await;
    start(&shop, "sleep 1000").await;
}

#[tokio::test]
async fn one_caller_leaves_places_to_others() {
    let shop = Workshop::new().await;
    let background = json!({ "command": "sleep 1000", "background": true });
    let mut refused = None;
    // Of 64 places 6 are reserved for operators and 8 stay free for the next agent; one session has 16.
    for place in 0..=50 {
        let session = shop.session().await;
        let result = shop.call_in(&session, "shell", background.clone()).await;
        if place < 50 {
            assert_eq!(facts(&result)["state"], "running", "{place}: {result:#?}");
        } else {
            refused = result.error;
        }
    }
    let error = refused.expect("the rest is for others");
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::RateLimited, "too_many_processes")
    );
    for setting in ["`limits.processes`", "`limits.share`"] {
        assert!(error.message.contains(setting), "{}", error.message);
    }
    assert!(error.retry.after_ms.is_some());
    for other in [
        Principal::agent("somebody else"),
        Principal::operator("operator"),
    ] {
        let other = shop
            .host
            .host
            .open_session(other, SurfaceRequest::default())
            .await
            .unwrap();
        let result = shop.call_in(&other, "shell", background.clone()).await;
        assert_eq!(facts(&result)["state"], "running", "{result:#?}");
    }
}

#[tokio::test]
async fn a_process_that_nobody_ends_ends_with_its_lifetime() {
    let shop =
        Workshop::planned(|plan| plan.children.lifetime = std::time::Duration::from_secs(1)).await;
    let wire = Tripwire::lay(&shop, "wire");
    let stubborn =
        "exec 9>wire; trap 'echo asked >&9' TERM; setsid sleep 1000 & while :; do sleep 0.1; done";
    let id = start(&shop, stubborn).await;
    assert_eq!(wire.sprung().await, "asked\n");
    let mut at = 0;
    loop {
        let part = read(&shop, &id, at).await;
        at = next(&part);
        if facts(&part)["at_end"] == true {
            assert_eq!(facts(&part)["signal"], 9, "{part:#?}");
            break;
        }
    }
}

#[tokio::test]
async fn a_flood_in_the_background_is_bounded_and_holds_nobody_up() {
    let shop = Workshop::new().await;
    let id = start(&shop, "yes").await;
    let deadline = tokio::time::Instant::now() + crate::workshop::PATIENCE;
    let mut dropped = 0;
    while dropped == 0 && tokio::time::Instant::now() < deadline {
        // Waits for more than the last look saw.
        let status = shop
            .call("process_status", json!({ "process_id": id }))
            .await;
        let seen = facts(&status)["processes"][0].clone();
        dropped = seen["dropped_bytes"].as_u64().unwrap();
        read(&shop, &id, seen["output_bytes"].as_u64().unwrap()).await;
    }
    assert!(dropped > 0, "64 MiB were written long ago");
    assert_eq!(
        text(&shop.shell("echo meanwhile").await),
        "meanwhile\n[exit code 0]"
    );
    shop.call("process_kill", json!({ "process_id": id, "force": true }))
        .await;
    let kept = shop
        .call(
            "process_read",
            json!({ "process_id": id, "offset": 1000, "limit": 4 }),
        )
        .await;
    assert!(
        text(&kept).starts_with("y\ny\n[killed by signal 9"),
        "{}",
        text(&kept)
    );
}
