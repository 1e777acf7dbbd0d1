//! The agent with its cassette: no workspace, no tool that runs, the same answers.

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::json;
use toolpost_config::{HostConfig, HttpConfig};
use toolpost_core::{Cassette, ReplayOptions};
use toolpost_serve::Server;
use toolpost_testkit::TestHost;

use crate::program::python;

const CASSETTE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/replay/session.json");

/// Runs the agent against a server and returns its output.
async fn run_agent(server: &Server) -> String {
    let mut command: Command = python("replay/longest_word.py");
    command.env(
        "TOOLPOST_URL",
        format!("http://{}", server.address().unwrap()),
    );
    command.env("TOOLPOST_TOKEN", server.token().unwrap());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_gets_the_recorded_answers() {
    let cassette = Cassette::read(&fs::read_to_string(Path::new(CASSETTE)).unwrap()).unwrap();
    let http = HttpConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..HttpConfig::default()
    };
    let builder = Server::builder(HostConfig {
        http,
        ..HostConfig::default()
    });
    let server = builder
        .replay(cassette, ReplayOptions::default())
        .start()
        .await
        .unwrap();
    assert_eq!(run_agent(&server).await, "counterclockwise (written)\n");
    let report = server.host().replay_report().unwrap();
    assert_eq!(
        (report.answered, report.refused, report.left),
        (4, 0, Vec::new())
    );
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_test_in_rust_asks_the_same_cassette() {
    let host = TestHost::replay(CASSETTE).await;
    let found = host.call("glob", json!({ "pattern": "*.txt" })).await;
    assert_eq!(
        found.structured_content.unwrap()["files"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let other = host
        .call("read_file", json!({ "path": "elsewhere.txt" }))
        .await
        .error
        .unwrap();
    assert_eq!(other.code, "not_recorded");
    assert!(
        other.message.contains("+ /path: \"elsewhere.txt\""),
        "{}",
        other.message
    );
}
