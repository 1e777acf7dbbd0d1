//! The session: every call of it in order, with the caller's own id for each. What became of them is read from the
//! export afterwards; here a call is only checked where the script could not go on without it.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use super::stage::{Stage, TENANT_TOKEN};
use crate::{http::Http, served::Served};

/// The span that traced callers come with.
pub(super) const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
pub(super) const STATE: &str = "rojo=00f067aa0ba902b7";

/// Two lives of a host: the first one is killed while calls run and wait.
pub(super) fn play(stage: &Stage) {
    let served = stage.serve();
    let mut agent = served.connect(&stage.home);
    let mut operator = served.socket(&stage.home);
    plain_calls(&mut agent);
    sources(&mut agent);
    faces(
        &mut agent,
        &mut Http::connect(served.address, TENANT_TOKEN).unwrap(),
    );
    discovery(&mut agent);
    people(&mut agent, &mut operator);
    let mut tenant = Http::connect(served.address, TENANT_TOKEN).unwrap();
    let opaque = json!({ "command": "$(printf ls)" });
    asked(
        &mut tenant,
        &mut operator,
        "opaque",
        "shell",
        &opaque,
        &json!({ "decision": "deny" }),
    );
    stops(&mut agent, &mut operator);
    let waits = left_open(&served, stage);
    served.kill();

    let served = stage.serve();
    let mut agent = served.connect(&stage.home);
    let mut operator = served.socket(&stage.home);
    answer(&mut operator, &waits, &json!({ "decision": "allow" }));
    ended(&mut agent, &waits);
    agent
        .send(
            "POST",
            "/tools/read_file/call",
            &named("restarted"),
            r#"{"path":"notes.txt"}"#,
        )
        .unwrap();
    served.stop();
}

/// The header with the caller's own id of a call.
fn named(id: &str) -> String {
    format!("Toolpost-Call-Id: {id}\r\n")
}

/// Calls a tool, named with its query, and gives the answer.
fn call(agent: &mut Http, id: &str, tool: &str, arguments: &Value) -> Value {
    let (name, query) = tool.split_once('?').unwrap_or((tool, ""));
    let path = format!("/tools/{name}/call?{query}");
    agent
        .send("POST", &path, &named(id), &arguments.to_string())
        .unwrap()
        .json()
}

fn plain_calls(agent: &mut Http) {
    let traced = format!(
        "{}traceparent: {PARENT}\r\ntracestate: {STATE}\r\n",
        named("inline")
    );
    agent
        .send(
            "POST",
            "/tools/read_file/call",
            &traced,
            r#"{"path":"notes.txt"}"#,
        )
        .unwrap();
    let slow = json!({ "pattern": "[a-z] [a-z]+[0-9]|needle", "path": "many" });
    for (id, tool, arguments) in [
        ("empty", "list_directory", json!({ "path": "hollow" })),
        ("partial", "grep?timeout=3", slow),
        ("failed", "count_words", json!({ "path": "missing.txt" })),
        ("classified", "shell", json!({ "command": "cat notes.txt" })),
        ("invalid", "read_file", json!({ "path": 7 })),
        ("nowhere", "no_such_tool", json!({ "path": "notes.txt" })),
        ("denied", "read_file", json!({ "path": "secret.txt" })),
        (
            "delegated",
            "write_file",
            json!({ "path": "delegated/a.txt", "content": "x" }),
        ),
        (
            "closed",
            "write_file",
            json!({ "path": "delegated/b.txt", "content": "x" }),
        ),
        (
            "desk",
            "write_file",
            json!({ "path": "desk/a.txt", "content": "x" }),
        ),
        ("voted", "echo", json!({ "message": "vote no" })),
        ("withheld", "echo", json!({ "message": "keep this" })),
        ("leaks", "echo", json!({ "message": super::stage::SECRET })),
        (
            "nested",
            "run_code",
            json!({ "code": "print(read_file(\"notes.txt\"))" }),
        ),
    ] {
        call(agent, id, tool, &arguments);
    }
}

/// Tools of an MCP server, a module and a command.
fn sources(agent: &mut Http) {
    let large = json!({ "path": "large.txt" });
    for (id, tool) in [
        ("preview", "demo__read_preview"),
        ("ref", "demo__read_ref"),
        ("redact", "demo__read_redact"),
        ("drop", "demo__read_drop"),
    ] {
        call(agent, id, tool, &large);
    }
    call(agent, "server", "demo__add", &json!({ "a": 1 }));
    call(
        agent,
        "module",
        "read_note",
        &json!({ "file_path": "notes.txt" }),
    );
    call(
        agent,
        "command",
        "count_words",
        &json!({ "path": "notes.txt" }),
    );
}

/// The same tool over MCP and A2A.
fn faces(agent: &mut Http, tenant: &mut Http) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": PARENT,
    });
    let params =
        json!({ "name": "read_file", "arguments": { "path": "notes.txt" }, "_meta": meta });
    let body =
        json!({ "jsonrpc": "2.0", "id": "over-mcp", "method": "tools/call", "params": params });
    let headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                   Mcp-Method: tools/call\r\nMcp-Name: read_file\r\n";
    let answer = agent
        .send("POST", "/mcp", headers, &body.to_string())
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");

    let part = |id: &str| json!({ "data": { "type": "tool-call", "toolCallId": id, "toolName": "read_file", "input": { "path": "notes.txt" } } });
    let parts = [part("over-a2a-1"), part("over-a2a-2")];
    let message =
        json!({ "messageId": "m1", "contextId": "chat", "role": "ROLE_USER", "parts": parts });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let headers = format!("A2A-Version: 1.0\r\ntraceparent: {PARENT}\r\n");
    let answer = agent
        .send("POST", "/a2a", &headers, &body.to_string())
        .unwrap()
        .json();
    assert_eq!(
        answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{answer}"
    );

    call(
        tenant,
        "of-a-tenant",
        "read_file",
        &json!({ "path": "notes.txt" }),
    );
}

fn discovery(agent: &mut Http) {
    let info = json!({ "path": "notes.txt" });
    call(agent, "unseen", "file_info", &info);
    let found = agent
        .get("/tools?query=file_info&include_deferred=true&limit=1")
        .unwrap()
        .json();
    assert_eq!(found["tools"][0]["name"], "file_info", "{found}");
    call(agent, "seen", "file_info", &info);
}

/// Calls that a person is asked about.
fn people(agent: &mut Http, operator: &mut Http) {
    let write = |path: &str| json!({ "path": path, "content": "model" });
    let edited = json!({ "path": "model.txt", "content": "person", "create_directories": true });
    for (id, tool, arguments, verdict) in [
        (
            "edit",
            "write_file",
            write("model.txt"),
            json!({ "decision": "allow", "arguments": edited }),
        ),
        (
            "yes",
            "write_file",
            write("yes.txt"),
            json!({ "decision": "allow" }),
        ),
        (
            "no",
            "write_file",
            write("no.txt"),
            json!({ "decision": "deny", "feedback": "not today" }),
        ),
        (
            "rule-asks",
            "write_file",
            write(".ask/a.txt"),
            json!({ "decision": "allow" }),
        ),
        (
            "caution",
            "write_file",
            write(".git/config"),
            json!({ "decision": "deny" }),
        ),
    ] {
        asked(agent, operator, id, tool, &arguments, &verdict);
    }
    let pending = call(
        agent,
        "impatient",
        "write_file?patience=0.5",
        &write("never.txt"),
    );
    assert_eq!(pending["error"]["class"], "approval_pending", "{pending}");
}

/// A call that an operator answers.
fn asked(
    agent: &mut Http,
    operator: &mut Http,
    id: &str,
    tool: &str,
    arguments: &Value,
    verdict: &Value,
) {
    let begun = call(agent, id, &format!("{tool}?background=true"), arguments);
    let question = begun["invocation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{id}: {begun}"));
    answer(operator, question, verdict);
    ended(agent, question);
}

/// Calls that end before their work does.
fn stops(agent: &mut Http, operator: &mut Http) {
    call(
        agent,
        "late",
        "shell?timeout=1",
        &json!({ "command": "sleep 600" }),
    );
    for (id, by_operator) in [("canceled", false), ("canceled-by-operator", true)] {
        let begun = call(
            agent,
            id,
            "shell?background=true",
            &json!({ "command": "sleep 601" }),
        );
        let invocation = begun["invocation_id"].as_str().unwrap();
        running(agent, invocation);
        let stopper = if by_operator {
            &mut *operator
        } else {
            &mut *agent
        };
        stopper
            .post(&format!("/invocations/{invocation}/cancel"), "")
            .unwrap();
        ended(agent, invocation);
    }
    let place = |index: u32, depends_on: &str| {
        let place = format!(
            r#"{{"id":"turn-1","index":{index},"depends_on":[{depends_on}],"on_failure":"cancel_dependent"}}"#
        );
        place
            .replace('"', "%22")
            .replace('{', "%7B")
            .replace('}', "%7D")
    };
    let missing = json!({ "path": "missing.txt" });
    call(
        agent,
        "first",
        &format!("read_file?batch={}", place(0, "")),
        &missing,
    );
    call(
        agent,
        "sibling",
        &format!("read_file?batch={}", place(1, "0")),
        &json!({ "path": "notes.txt" }),
    );
}

/// Leaves one call running and one waiting for a person, whose question is given.
fn left_open(served: &Served, stage: &Stage) -> String {
    let mut agent = served.connect(&stage.home);
    let begun = call(
        &mut agent,
        "killed",
        "shell?background=true",
        &json!({ "command": "sleep 602; touch never.txt" }),
    );
    running(&mut agent, begun["invocation_id"].as_str().unwrap());
    let waits = json!({ "path": "survivor.txt", "content": "x" });
    let begun = call(&mut agent, "survivor", "write_file?background=true", &waits);
    let question = begun["invocation_id"].as_str().unwrap();
    until(&mut agent, question, |told| {
        told["stage"] == "await_approval"
    });
    question.to_owned()
}

/// Looks until the call is as `is` wants it.
fn until(agent: &mut Http, id: &str, is: impl Fn(&Value) -> bool) {
    let mut told = Value::Null;
    for _ in 0..6_000 {
        told = agent.get(&format!("/invocations/{id}")).unwrap().json();
        if is(&told) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{id}: {told}");
}

fn running(agent: &mut Http, id: &str) {
    until(agent, id, |told| told["stage"] == "execute");
}

fn ended(agent: &mut Http, id: &str) {
    until(agent, id, |told| told["status"] == "ended");
}

/// Answers a question as soon as it is asked.
fn answer(operator: &mut Http, question: &str, verdict: &Value) {
    for _ in 0..6_000 {
        let told = operator
            .post(&format!("/approvals/{question}"), &verdict.to_string())
            .unwrap();
        if told.status == 200 {
            return;
        }
        assert_eq!(told.status, 404, "{told:?}");
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{question} is never asked");
}
