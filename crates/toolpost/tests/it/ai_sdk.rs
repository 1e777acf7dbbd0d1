//! The AI SDK as it comes from npm reads a session's stream: the way of a page with `useChat`, in every version that has
//! this protocol.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{home::Home, served::Served};

#[track_caller]
fn check(package: &str) {
    let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers-node");
    assert!(
        peers.join("node_modules").join(package).exists(),
        "there is no `target/peers-node` with the AI SDK\nhint: cargo xtask peers"
    );
    let home = Home::new();
    home.write("plan.txt", "step one");
    // The operator fills in an argument, so that every call ends with another input than it began with.
    home.write_user("tools: { read_file: { defaults: { line_numbers: false } } }\n");
    let served = Served::start(&home, &[]);
    let mut http = served.connect(&home);
    let opened = http.post("/sessions", "").unwrap().json();
    let session = opened["session_id"].as_str().unwrap();
    let url = format!(
        "http://{}/sessions/{session}/events?vocabulary=ai-sdk",
        served.address
    );
    // On standard input a module finds packages in the working directory.
    let script = include_str!("../ai_sdk/follow.mjs");
    let mut follower = Command::new(peers.join("bin/node"))
        .args(["--input-type=module", "--eval", script])
        .current_dir(&peers)
        .env_clear()
        .envs([
            ("AI", package),
            ("URL", &url),
            ("TOKEN", &Served::token(&home)),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(follower.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "following\n", "{package}");
    for path in ["plan.txt", "missing.txt"] {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        let mut own = served.connect(&home);
        own.post_in(session, "/tools/read_file/call", &arguments)
            .unwrap();
    }
    assert_eq!(
        http.delete(&format!("/sessions/{session}")).unwrap().status,
        204
    );
    let told = follower.wait_with_output().unwrap();
    let rest: Vec<String> = said.lines().map(Result::unwrap).collect();
    assert!(told.status.success(), "{package}: {rest:?}");
    let parts: Value = serde_json::from_slice(&told.stdout).expect("the parts of the message");
    let facts = |part: &Value| {
        let kind = &part["type"];
        let tool = &part["toolName"];
        let state = &part["state"];
        json!([kind, tool, state, part["input"]["path"]])
    };
    let seen: Vec<Value> = parts.as_array().unwrap().iter().map(facts).collect();
    let expected = [
        json!(["dynamic-tool", "read_file", "output-available", "plan.txt"]),
        json!(["dynamic-tool", "read_file", "output-error", "missing.txt"]),
    ];
    assert_eq!(seen, expected, "{package}: {parts}");
    for part in parts.as_array().unwrap() {
        assert_eq!(
            part["input"]["line_numbers"], false,
            "the input of the end replaces the first: {part}"
        );
    }
    assert!(
        parts[0]["output"].to_string().contains("plan.txt"),
        "{package}: {parts}"
    );
    assert!(
        parts[1]["errorText"]
            .as_str()
            .unwrap()
            .contains("missing.txt"),
        "{package}: {parts}"
    );
    served.stop();
}

#[test]
fn version_5_reads_the_stream() {
    check("ai5");
}

#[test]
fn version_6_reads_the_stream() {
    check("ai6");
}

#[test]
fn version_7_reads_the_stream() {
    check("ai7");
}
