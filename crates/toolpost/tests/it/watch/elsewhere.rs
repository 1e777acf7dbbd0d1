//! Streams of others than Toolpost, in every shape that they come in.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

use super::super::home::{Home, Ran};

/// A server that gives these answers, one a connection, and remembers what it was asked.
pub(super) fn serve(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/tasks/7:subscribe",
        listener.local_addr().unwrap()
    );
    let asked = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut peer, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                peer.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            asked.push(String::from_utf8(request).unwrap());
            peer.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    (url, asked)
}

pub(super) fn answer(kind: &str, length: usize, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// An event in the stream item of a dialect.
fn item(data: &Value) -> Value {
    let message = json!({ "role": "ROLE_AGENT", "messageId": "m", "parts": [{ "data": data }] });
    let status = json!({ "state": "TASK_STATE_WORKING", "message": message });
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "statusUpdate": { "taskId": "7", "contextId": "c", "status": status } } })
}

fn call() -> Value {
    item(
        &json!({ "type": "tool-call", "toolCallId": "a", "toolName": "add", "input": { "b": 3.0 } }),
    )
}

fn result() -> Value {
    item(&json!({ "type": "tool-result", "toolCallId": "a", "output": 5.0, "durationMs": 1.0 }))
}

const TOLD: &str = "running  a  add  b = 3.0\ndone     a  add  in 1 ms  b = 3.0  → 5.0\n";

#[test]
fn streams_end_with_their_task() {
    let home = Home::new();
    let task = json!({ "kind": "task", "id": "7", "history": [
        { "role": "agent", "parts": [call()["result"]["statusUpdate"]["status"]["message"]["parts"][0]] },
        { "role": "agent", "parts": [result()["result"]["statusUpdate"]["status"]["message"]["parts"][0]] },
    ] });
    let ended = TOLD.lines().last().unwrap().to_owned() + "\n";
    for (kind, body, expected) in [
        (
            "text/event-stream",
            format!("data: {}\n\n: alive\n\ndata: {}\n\n", call(), result()),
            TOLD,
        ),
        (
            "application/x-ndjson",
            format!("{}\n{}", call(), result()),
            TOLD,
        ),
        (
            "application/json; charset=utf-8",
            serde_json::to_string_pretty(&task).unwrap(),
            &ended,
        ),
    ] {
        let (url, asked) = serve(vec![answer(kind, body.len(), &body)]);
        let ran = home.run(&["watch", &url]).expect(0);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            (expected, ""),
            "{kind}"
        );
        let asked = asked.join().unwrap().concat();
        assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
    }
}

#[test]
fn a_stream_that_breaks_is_opened_again_where_it_was() {
    let home = Home::new();
    let first = format!("id: 41\ndata: {}\n\nid: 42\ndata: half", call());
    let second = format!("data: {}\n\n", result());
    let kind = "text/event-stream";
    // The first answer promises more than it gives.
    let answers = vec![
        answer(kind, 1_000_000, &first),
        answer(kind, second.len(), &second),
    ];
    let (url, asked) = serve(answers);
    let mut command = home.command(&["watch", &url]);
    let ran = Ran::from(
        command
            .env("TOOLPOST_TOKEN", "0123456789abcdef0123456789abcdef")
            .output()
            .unwrap(),
    )
    .expect(0);
    assert_eq!(ran.stdout, TOLD);
    assert!(
        ran.stderr.contains("the connection is lost") && ran.stderr.contains("connected again"),
        "{}",
        ran.stderr
    );
    let asked = asked.join().unwrap();
    assert!(
        !asked[0].contains("last-event-id") && asked[1].contains("last-event-id: 41\r\n"),
        "{asked:?}"
    );
    let bearer = "authorization: Bearer 0123456789abcdef0123456789abcdef";
    assert!(
        asked.iter().all(|request| request.contains(bearer)),
        "{asked:?}"
    );

    let (url, _) = serve(vec![answer(kind, 1_000_000, &first)]);
    let once = home.run(&["watch", &url, "--once"]).expect(1);
    assert!(once.stderr.contains("broke:"), "{}", once.stderr);
}

#[test]
fn calls_of_a_host_that_is_gone_are_given_up_unless_their_end_comes() {
    let home = Home::new();
    let event = |data: Value| format!("event: tool-event\ndata: {data}\n\n");
    let begun = |id: &str| {
        event(
            json!({ "type": "tool-call", "toolCallId": id, "toolName": "add", "input": { "b": 3 } }),
        )
    };
    let ended = |id: &str| event(json!({ "type": "tool-result", "toolCallId": id, "output": 5 }));
    let opening = |open: Value| {
        format!(
            "event: opening\nid: 1\ndata: {}\n\n",
            json!({ "open": open })
        )
    };
    let approval = |state: &str| {
        let data = json!({ "toolCallId": "a", "approvalId": "q", "state": state });
        format!("event: approval\ndata: {data}\n\n")
    };
    let closing = |reason: &str| format!("event: closing\ndata: {{\"reason\":\"{reason}\"}}\n\n");
    let kind = "text/event-stream";
    let first = [
        opening(json!([])),
        begun("a"),
        approval("asked"),
        approval("decided"),
        begun("b"),
        begun("c"),
        closing("shutdown"),
    ]
    .concat();
    // The second host has `c`, and the end of `b` on record; of `a` nobody knows. It breaks off in between.
    let second = [opening(json!(["c"])), begun("c"), ended("b")].concat();
    let third = [ended("a"), ended("c"), closing("session_closed")].concat();
    let (to_third, when) = std::sync::mpsc::channel::<()>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/sessions/s/events",
        listener.local_addr().unwrap()
    );
    let host = std::thread::spawn(move || {
        let peer = || {
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 4096]).unwrap();
            peer
        };
        peer()
            .write_all(answer(kind, first.len(), &first).as_bytes())
            .unwrap();
        let mut peer = peer();
        peer.write_all(answer(kind, second.len() + third.len(), &second).as_bytes())
            .unwrap();
        when.recv().unwrap();
        peer.write_all(third.as_bytes()).unwrap();
    });
    let watching = super::Watching::start(&mut home.command(&["watch", &url]));
    let mut lines = Vec::new();
    for _ in 0..6 {
        lines.push(
            watching
                .lines
                .recv_timeout(super::PATIENCE)
                .expect("another line"),
        );
    }
    assert_eq!(
        lines,
        [
            "running  a  add  b = 3",
            "waiting  a  add  (waiting for approval)  b = 3",
            "running  b  add  b = 3",
            "running  c  add  b = 3",
            "done     b  add  b = 3  → 5",
            "lost     a  add  (no result: the host that ran it is gone)  b = 3",
        ]
    );
    to_third.send(()).unwrap();
    let rest: Vec<String> = watching.lines.iter().collect();
    assert_eq!(
        rest,
        ["done     a  add  b = 3  → 5", "done     c  add  b = 3  → 5"]
    );
    let (code, said) = watching.wait();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the host stopped"), "{said}");
    assert!(
        said.ends_with("this session was closed\n") && !said.contains("warning"),
        "{said}"
    );
    host.join().unwrap();
}

#[test]
fn what_is_no_stream_of_tool_events_is_named() {
    let home = Home::new();
    for (kind, body) in [
        (
            "text/html; charset=utf-8",
            "<!doctype html>\n<p>hello</p>\n",
        ),
        ("application/json", r#"{"status":"ok"}"#),
        ("text/plain", "hello\nyou\n"),
        ("text/css", "a {}"),
        ("application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n"),
    ] {
        let (url, _) = serve(vec![answer(kind, body.len(), body)]);
        let ran = home.run(&["watch", &url]).expect(1);
        assert_eq!(ran.stdout, "", "{kind}");
        assert!(
            ran.stderr.contains("is not a stream of tool events"),
            "{kind}: {}",
            ran.stderr
        );
        assert_eq!(ran.stderr.lines().count(), 1, "{kind}: {}", ran.stderr);
    }
    // A task that made no call is one all the same, and so is a chat of AI SDK 4 without any.
    let task = r#"{"kind":"task","id":"7","contextId":"c"}"#;
    let (url, _) = serve(vec![answer("application/json", task.len(), task)]);
    home.run(&["watch", &url]).expect(0);
    let (url, _) = serve(vec![answer("text/plain", 9, "0:\"text\"\n")]);
    home.run(&["watch", &url]).expect(0);

    let nothing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (url, _) = serve(vec![nothing]);
    let ran = home.run(&["watch", &url]).expect(1);
    assert!(
        ran.stderr.contains("404") && !ran.stderr.contains("session"),
        "{}",
        ran.stderr
    );
    let ran = home.run(&["watch", "ftp://example.org/x"]).expect(2);
    assert!(ran.stderr.contains("http:// or https://"), "{}", ran.stderr);
}
