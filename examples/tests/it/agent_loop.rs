//! The agent loop in Python, against a real server and a model that plays a script.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use toolpost_config::{HostConfig, HttpConfig};
use toolpost_model::{ApprovalScope, Principal, Rule, RuleOrigin, Verdict};
use toolpost_serve::Server;

use crate::{
    post::post,
    program::{Program, python},
};

const LAST_LINE: &str = "the saddle slides along the bed";

fn config(workspace: &Path, data: &Path) -> HostConfig {
    HostConfig {
        workspace: Some(workspace.to_owned()),
        data_dir: Some(data.join("record")),
        http: HttpConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            ..HttpConfig::default()
        },
        ..HostConfig::default()
    }
}

async fn server(workspace: &Path, data: &Path) -> Server {
    Server::start(config(workspace, data)).await.unwrap()
}

/// Runs the loop. Returns its output and, for each call, the tool and the invocation id.
async fn run_loop(server: &Server, provider: &str, model: &str) -> (String, Vec<(String, String)>) {
    let mut command = python("agent_loop.py");
    command.args([provider, "How does the first file end?"]);
    command
        .env(
            "TOOLPOST_URL",
            format!("http://{}", server.address().unwrap()),
        )
        .env("MODEL_URL", model);
    command.env("TOOLPOST_TOKEN", server.token().unwrap());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let call = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].to_owned(), words[words.len() - 1].to_owned())
    };
    (
        String::from_utf8(output.stdout).unwrap(),
        errors.lines().map(call).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loop_reads_a_file_with_either_provider_and_every_call_is_on_record() {
    let workspace = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(workspace.path().join("drawings")).unwrap();
    fs::write(
        workspace.path().join("notes.md"),
        format!("# Lathe\n\n{LAST_LINE}\n"),
    )
    .unwrap();
    let server = server(workspace.path(), data.path()).await;
    let mut program = Program::start(&mut python("scripted_model.py"));
    let model = program.says("url");
    for provider in ["openai", "anthropic"] {
        let (said, calls) = run_loop(&server, provider, &model).await;
        assert_eq!(
            said,
            format!("The file ends with: {LAST_LINE}\n"),
            "{provider}"
        );
        let tools: Vec<&str> = calls.iter().map(|(tool, _)| tool.as_str()).collect();
        assert_eq!(tools, ["list_directory", "read_file"], "{provider}");
        for (tool, id) in &calls {
            let seen = server
                .host()
                .invocation(id.parse().unwrap(), &Principal::agent("agent"))
                .await
                .unwrap();
            let seen = serde_json::to_value(seen).unwrap();
            assert_eq!(
                (&seen["tool"], &seen["status"]),
                (&json!(tool), &json!("ended")),
                "{seen}"
            );
            assert_eq!(seen["result"]["outcome"], "succeeded", "{seen}");
        }
    }
    let health = server.host().health();
    assert_eq!((health.running, health.journal_failing), (0, false));
    server.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loop_waits_for_a_call_that_a_person_is_asked_about() {
    let workspace = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    fs::write(
        workspace.path().join("notes.md"),
        format!("# Lathe\n\n{LAST_LINE}\n"),
    )
    .unwrap();
    let mut config = config(workspace.path(), data.path());
    config.http.patience = Duration::from_millis(1);
    config.rules = vec![Rule::parse("ask read_file", RuleOrigin::Cli, "test").unwrap()];
    let server = Server::start(config).await.unwrap();
    let mut program = Program::start(&mut python("scripted_model.py"));
    let model = program.says("url");
    let host = server.host().clone();
    let operator = tokio::spawn(async move {
        let mut changes = host.approval_changes();
        loop {
            if let Some(question) = host.approvals().first() {
                // The loop has its 202 already or gets it soon, because the call waits longer than its caller.
                let yes = Verdict::Allow {
                    scope: ApprovalScope::Once,
                    rule: None,
                    valid_for_seconds: None,
                    arguments: None,
                };
                return host
                    .decide(question.ask_id, yes, &Principal::operator("olga"))
                    .await
                    .unwrap();
            }
            changes.changed().await.unwrap();
        }
    });
    let (said, calls) = run_loop(&server, "openai", &model).await;
    assert_eq!(said, format!("The file ends with: {LAST_LINE}\n"));
    assert_eq!(
        calls
            .iter()
            .map(|(tool, _)| tool.as_str())
            .collect::<Vec<_>>(),
        ["list_directory", "read_file"]
    );
    assert!(operator.await.unwrap().allowed);
    server.shutdown(Duration::from_secs(5)).await;
}

/// Without this refusal, the script would accept a loop that loses or mixes up results.
#[test]
fn the_scripted_model_refuses_what_a_real_endpoint_refuses() {
    let mut program = Program::start(&mut python("scripted_model.py"));
    let model = program.says("url");
    let check = |path: &str, answer: Value, status: u16| {
        let asked = match path {
            "chat/completions" => {
                let function = json!({ "name": "list_directory", "arguments": "{}" });
                json!({ "role": "assistant", "tool_calls": [{ "id": "a", "type": "function", "function": function }] })
            }
            _ => {
                json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "x", "input": {} }] })
            }
        };
        let tools = json!([{ "name": "read_file", "function": { "name": "read_file" } }]);
        let mut messages = vec![json!({ "role": "user", "content": "go" }), asked];
        messages.extend(answer.as_array().unwrap().iter().cloned());
        let body = json!({ "model": "m", "max_tokens": 9, "tools": tools, "messages": messages });
        let (found, reply) = post(&format!("{model}/{path}"), "", &body);
        assert_eq!(found, status, "{answer}: {reply}");
    };
    let tool = |id: &str| json!([{ "role": "tool", "tool_call_id": id, "content": "notes.md" }]);
    check("chat/completions", tool("a"), 200);
    check("chat/completions", tool("b"), 400);
    check("chat/completions", json!([]), 400);
    let block =
        |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "notes.md" });
    check(
        "messages",
        json!([{ "role": "user", "content": [block("a")] }]),
        200,
    );
    check(
        "messages",
        json!([{ "role": "user", "content": [block("b")] }]),
        400,
    );
    check("messages", json!([{ "role": "user", "content": [] }]), 400);
    check("messages", json!([]), 400);
}
