//! The callers: each takes one step at a time, over a connection of its own.

use std::{io, net::SocketAddr, thread, time::Duration};

use serde_json::{Value, json};

use super::{super::http::Answer, Dice, Home, Http, Ledger, Served, malformed};

/// A host, as callers see it.
pub(super) struct Target<'h> {
    pub(super) address: SocketAddr,
    pub(super) token: String,
    /// Where the command line runs.
    pub(super) home: Option<&'h Home>,
}

/// One step of a caller.
pub(super) type Actor = fn(&Target<'_>, &mut Dice, &Ledger, &'static str);

/// Who calls a host at the same time.
pub(super) const ACTORS: &[(&str, Actor)] = &[
    ("http", plain_calls),
    ("http", keyed_calls),
    ("sessions", sessions),
    ("mcp 2025", mcp_session),
    ("mcp 2026", mcp_stateless),
    ("a2a", a2a),
    ("a2e", a2e),
    ("command line", command_line),
    ("slow readers", slow_reader),
    ("gone", broken_connection),
    ("malformed", malformed::send),
];

impl<'h> Target<'h> {
    pub(super) fn new(home: &'h Home, served: &Served) -> Self {
        Self {
            address: served.address,
            token: Served::token(home),
            home: Some(home),
        }
    }

    pub(super) fn connect(&self) -> io::Result<Http> {
        Http::connect(self.address, &self.token)
    }
}

/// Notes an answer. A host that is there answers whatever is asked, and never with an error of its own.
fn check(
    ledger: &Ledger,
    face: &'static str,
    asked: &str,
    answer: io::Result<Answer>,
) -> Option<Answer> {
    match answer {
        Ok(answer) => {
            ledger.count(face, answer.status);
            if answer.status >= 500 && answer.status != 503 {
                ledger.complain(format!(
                    "{face}: {asked} was answered {}: {}",
                    answer.status, answer.body
                ));
            }
            Some(answer)
        }
        Err(error) => {
            ledger.count(face, 0);
            ledger.complain(format!("{face}: {asked} had no answer: {error}"));
            None
        }
    }
}

/// A call that does something, with its arguments.
fn random_call(dice: &mut Dice) -> (&'static str, Value) {
    let file = format!("file{}.txt", dice.roll(24));
    match dice.roll(9) {
        0 | 1 => (
            "read_file",
            json!({ "path": file, "limit": 1 + dice.roll(40) }),
        ),
        2 => ("glob", json!({ "pattern": "*.txt" })),
        3 => (
            "grep",
            json!({ "pattern": format!("line {}", dice.roll(20)) }),
        ),
        4 => (
            "write_file",
            json!({ "path": file, "content": "line\n".repeat(dice.roll(2_000) as usize) }),
        ),
        5 => (
            "edit_file",
            json!({ "path": file, "old_string": "line", "new_string": "row" }),
        ),
        6 => ("list_directory", json!({ "path": "." })),
        7 => (
            "shell",
            json!({ "command": format!("echo {}; seq {}", dice.roll(9), dice.roll(3_000)) }),
        ),
        _ => (
            "run_code",
            json!({ "code": format!("sum(range({}))", dice.roll(1_000)) }),
        ),
    }
}

fn plain_calls(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let (tool, arguments) = random_call(dice);
    let query = *dice.pick(&[
        "",
        "?background=true",
        "?timeout=0.05",
        "?patience=0.01",
        "?correlation_id=c",
    ]);
    let path = format!("/tools/{tool}/call{query}");
    let called = target.connect().and_then(|mut http| {
        let answer = http.post(&path, &arguments.to_string())?;
        for path in [
            "/tools?limit=5",
            "/tools?query=file",
            "/health",
            "/openapi.json",
        ] {
            check(ledger, face, path, http.get(path));
        }
        Ok(answer)
    });
    check(ledger, face, &path, called);
}

/// The same key again has the same answer, whatever happened to the host since.
pub(super) fn keyed_calls(
    target: &Target<'_>,
    dice: &mut Dice,
    ledger: &Ledger,
    face: &'static str,
) {
    let key = format!("k{}", dice.roll(1 << 40));
    let body =
        json!({ "path": format!("{key}.txt"), "content": "x".repeat(dice.roll(20_000) as usize) })
            .to_string();
    let call = |http: &mut Http| http.post_with_key("/tools/write_file/call", &key, &body);
    let Ok(mut http) = target.connect() else {
        return thread::sleep(Duration::from_millis(20));
    };
    let (Ok(first), Ok(again)) = (call(&mut http), call(&mut http)) else {
        return ledger.count(face, 0);
    };
    for answer in [&first, &again] {
        check(ledger, face, "a call with a key", Ok(answer.clone()));
    }
    if first.status == 200 && again != first {
        ledger.complain(format!("{face}: a repeat differs: {first:?} and {again:?}"));
    }
}

fn sessions(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Ok(mut http) = target.connect() else {
        return;
    };
    let opened = check(ledger, face, "POST /sessions", http.post("/sessions", "{}"));
    let Some(id) =
        opened.and_then(|answer| answer.json()["session_id"].as_str().map(str::to_owned))
    else {
        return;
    };
    for _ in 0..=dice.roll(3) {
        let (tool, arguments) = random_call(dice);
        let path = format!("/tools/{tool}/call");
        check(
            ledger,
            face,
            &path,
            http.post_in(&id, &path, &arguments.to_string()),
        );
    }
    check(
        ledger,
        face,
        "GET /sessions/{id}",
        http.get(&format!("/sessions/{id}")),
    );
    check(
        ledger,
        face,
        "DELETE /sessions/{id}",
        http.delete(&format!("/sessions/{id}")),
    );
}

const BOTH_KINDS: &str = "Accept: application/json, text/event-stream\r\n";

fn mcp_session(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Ok(mut http) = target.connect() else {
        return;
    };
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "soak", "version": "1" } } });
    let begun = http.send("POST", "/mcp", BOTH_KINDS, &begin.to_string());
    let Some(begun) = check(ledger, face, "initialize", begun) else {
        return;
    };
    let Some(session) = http.header("mcp-session-id") else {
        return ledger.complain(format!("{face}: `initialize` gave no session: {begun:?}"));
    };
    let headers = format!("{BOTH_KINDS}Mcp-Session-Id: {session}\r\n");
    let (tool, arguments) = random_call(dice);
    let call = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 1 } });
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", call),
        ("ping", json!({})),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        check(
            ledger,
            face,
            method,
            http.send("POST", "/mcp", &headers, &message.to_string()),
        );
    }
    check(
        ledger,
        face,
        "DELETE /mcp",
        http.send("DELETE", "/mcp", &headers, ""),
    );
}

fn mcp_stateless(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Ok(mut http) = target.connect() else {
        return;
    };
    let (tool, arguments) = random_call(dice);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = format!(
        "{BOTH_KINDS}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    check(
        ledger,
        face,
        tool,
        http.send("POST", "/mcp", &headers, &message.to_string()),
    );
}

fn a2a(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Ok(mut http) = target.connect() else {
        return;
    };
    let (tool, arguments) = random_call(dice);
    let call =
        json!({ "type": "tool-call", "toolCallId": "c1", "toolName": tool, "input": arguments });
    let message = json!({ "kind": "message", "messageId": format!("m{}", dice.roll(1 << 40)), "role": "user",
        "parts": [{ "kind": "data", "data": call }] });
    let method = *dice.pick(&["message/send", "message/stream"]);
    let asked =
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
    check(ledger, face, method, http.post("/a2a", &asked.to_string()));
    check(
        ledger,
        face,
        "the card",
        http.get("/.well-known/agent-card.json"),
    );
}

fn a2e(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Ok(mut http) = target.connect() else {
        return;
    };
    let opened = check(ledger, face, "POST /session", http.post("/session", ""));
    let Some(session) =
        opened.and_then(|answer| answer.json()["session_id"].as_str().map(str::to_owned))
    else {
        return;
    };
    let header = format!("X-Session-Id: {session}\r\n");
    let (tool, arguments) = random_call(dice);
    let handshake = json!({ "type": "handshake/req", "id": "h", "agent_id": "soak", "agent_caps": ["tools"],
        "auth_token": target.token });
    let call =
        json!({ "type": "tool/call/req", "id": "c", "tool_name": tool, "arguments": arguments });
    let farewell = json!({ "type": "shutdown", "id": "e", "timeout": 5 });
    for message in [handshake, call] {
        check(
            ledger,
            face,
            "POST /send",
            http.send("POST", "/send", &header, &message.to_string()),
        );
    }
    let Ok(mut stream) = target.connect() else {
        return;
    };
    let asked = format!("GET /stream HTTP/1.1\r\nHost: localhost\r\n{header}\r\n");
    let read = stream
        .send_raw(asked.as_bytes())
        .and_then(|()| stream.read_some(64 << 10));
    ledger.count(
        face,
        if read.is_ok_and(|read| read > 0) {
            200
        } else {
            0
        },
    );
    check(
        ledger,
        face,
        "the end",
        http.send("POST", "/send", &header, &farewell.to_string()),
    );
}

fn command_line(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Some(home) = target.home else { return };
    let address = format!("http://{}", target.address);
    let token = home.data_dir().join("token");
    let over_a2e = [
        "call",
        "--connect",
        &address,
        "--token-file",
        token.to_str().unwrap(),
    ];
    let words: Vec<&str> = match dice.roll(5) {
        0 => vec!["call", "read_file", "path=file3.txt"],
        1 => vec!["tools", "--json"],
        2 => vec!["journal", "tail", "--json"],
        3 => vec!["explain", "write_file", "path=a", "content=b"],
        _ => over_a2e
            .into_iter()
            .chain(["read_file", "path=file3.txt"])
            .collect(),
    };
    let ran = home.run(&words);
    ledger.count(face, u16::try_from(ran.code).unwrap_or(u16::MAX));
    if ran.code != 0 {
        ledger.complain(format!(
            "{face}: {words:?} ended {}: {}",
            ran.code, ran.stderr
        ));
    }
}

/// Opens a stream, reads a little of it, and leaves.
fn slow_reader(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let mut streams: Vec<Http> = (0..4).filter_map(|_| target.connect().ok()).collect();
    for stream in &mut streams {
        let path = *dice.pick(&[
            "/sessions/default/events",
            "/sessions/default/events?from=start",
            "/tools?format=openai",
        ]);
        let _ = stream.begin_get(path);
    }
    for _ in 0..dice.roll(20) {
        for stream in &mut streams {
            let read = stream.read_some(1);
            ledger.count(
                face,
                if read.is_ok_and(|read| read > 0) {
                    200
                } else {
                    0
                },
            );
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Asks for something and is gone before the answer.
fn broken_connection(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let Ok(mut http) = target.connect() else {
        return;
    };
    let (tool, arguments) = match dice.roll(3) {
        0 => ("shell", json!({ "command": "sleep 0.3" })),
        _ => random_call(dice),
    };
    let _ = http.begin(&format!("/tools/{tool}/call"), &arguments.to_string());
    thread::sleep(Duration::from_millis(dice.roll(60)));
    ledger.count(face, 0);
}
