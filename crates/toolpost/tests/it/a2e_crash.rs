//! Agents on the A2E face while the host is killed again and again: their clients come back by themselves, and every
//! call gets its one answer.
//!
//! `TOOLPOST_SOAK_CALLS` changes the size.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use toolpost_a2e::{CallOptions, Client, ConnectOptions, HostTransport, ToolApi, ToolResult};
use toolpost_model::Outcome;

use super::{home::Home, served::Served};

const CALLS: usize = 2_000;
const AGENTS: usize = 8;
const KILLS: usize = 10;
/// Far beyond a start of the host: turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an agent was told of its calls.
#[derive(Default)]
struct Told {
    succeeded: usize,
    /// Under way at a kill, and stopped or lost by it.
    interrupted: usize,
}

/// Calls one after the other, half of them writes of a file of its own; each must be answered.
async fn agent(
    name: usize,
    url: String,
    token: String,
    calls: usize,
    tell: mpsc::Sender<()>,
) -> Told {
    let options = ConnectOptions::new(format!("agent-{name}")).token(token);
    let client = Client::connect(HostTransport::http(url), options)
        .await
        .expect("a session");
    let api = ToolApi::new(&client);
    let mut told = Told::default();
    for number in 0..calls {
        let (tool, arguments) = if number % 2 == 0 {
            ("echo", json!({ "message": format!("{name} {number}") }))
        } else {
            (
                "write_file",
                json!({ "path": format!("{name}-{number}.txt"), "content": format!("{number}") }),
            )
        };
        let call = api
            .start(CallOptions::new(tool, arguments).timeout(PATIENCE))
            .await
            .expect("it is taken");
        let result = call.result().await.expect("it is answered");
        check(&result, &format!("{name} {number}"), &mut told);
        tell.send(()).await.expect("the test listens");
    }
    client.close().await;
    told
}

fn check(result: &ToolResult, expected: &str, told: &mut Told) {
    match result.outcome {
        Some(Outcome::Succeeded) => {
            if result.tool_name == "echo" {
                assert_eq!(
                    result.data,
                    Some(json!({ "text": expected })),
                    "the answer is the call's own"
                );
            }
            told.succeeded += 1;
        }
        Some(Outcome::Unknown | Outcome::Canceled) => told.interrupted += 1,
        other => panic!("{other:?}: {result:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_is_answered_when_the_host_crashes() {
    let calls = std::env::var("TOOLPOST_SOAK_CALLS")
        .ok()
        .map_or(CALLS, |text| text.parse().expect("a number"));
    let home = Home::new();
    let mut served = Served::start(&home, &["--mode", "edits"]);
    let address = served.address.to_string();
    let token = Served::token(&home);
    let (tell, mut answered) = mpsc::channel(64);
    let agents: Vec<_> = (0..AGENTS)
        .map(|name| {
            let url = format!("http://{address}");
            tokio::spawn(agent(
                name,
                url,
                token.clone(),
                calls / AGENTS,
                tell.clone(),
            ))
        })
        .collect();
    drop(tell);
    let mut done = 0;
    let mut kills = 0;
    while answered.recv().await.is_some() {
        done += 1;
        if kills < KILLS && done > (kills + 1) * calls / (KILLS + 2) {
            kills += 1;
            served.kill();
            served =
                Served::spawn(&mut home.command(&["serve", "--http", &address, "--mode", "edits"]));
        }
    }
    let mut told = Told::default();
    for agent in agents {
        let one = agent.await.expect("the agent got every answer");
        told.succeeded += one.succeeded;
        told.interrupted += one.interrupted;
    }
    assert_eq!((done, kills), (calls / AGENTS * AGENTS, KILLS));
    assert!(
        told.interrupted <= KILLS * AGENTS,
        "only calls under way at a kill are lost: {}",
        told.interrupted
    );
    assert_eq!(served.stop().0.code(), Some(0));
    let report = home.run(&["journal", "verify", "--json"]).expect(0).json();
    assert_eq!(
        (&report["clean"], &report["open_invocations"]),
        (&json!(true), &json!([]))
    );
    eprintln!(
        "{done} calls, {kills} kills: {} succeeded, {} interrupted",
        told.succeeded, told.interrupted
    );
}
