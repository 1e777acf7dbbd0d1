//! Streams of others than Toolpost, in every shape that they come in.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

use super::super::home::{Home, Ran};

/// A server that gives these answers, one a connection, and remembers what it was asked.
fn serve(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tasks/7:subscribe", listener.local_addr().unwrap());
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

fn answer(kind: &str, length: usize, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// An event in the stream item of a dialect.
fn item(data: &Value) -> Value {
    let message = json!({ "role": "ROLE_AGENT", "messageId": "m", "parts": [{ "data": data }] });
    let status = json!({ "state": "TASK_STATE_WORKING", "message": message });
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "statusUpdate": { "taskId": "7", "contextId": "c", "status": status } } })
}

fn call() -> Value {
    item(&json!({ "type": "tool-call", "toolCallId": "a", "toolName": "add", "input": { "b": 3.0 } }))
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
        ("text/event-stream", format!("data: {}\n\n: alive\n\ndata: {}\n\n", call(), result()), TOLD),
        ("application/x-ndjson", format!("{}\n{}", call(), result()), TOLD),
        ("application/json; charset=utf-8", serde_json::to_string_pretty(&task).unwrap(), &ended),
    ] {
        let (url, asked) = serve(vec![answer(kind, body.len(), &body)]);
        let ran = home.run(&["watch", &url]).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (expected, ""), "{kind}");
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
    let answers = vec![answer(kind, 1_000_000, &first), answer(kind, second.len(), &second)];
    let (url, asked) = serve(answers);
    let mut command = home.command(&["watch", &url]);
    let ran = Ran::from(command.env("TOOLPOST_TOKEN", "0123456789abcdef0123456789abcdef").output().unwrap())
        .expect(0);
    assert_eq!(ran.stdout, TOLD);
    assert!(
        ran.stderr.contains("the connection is lost") && ran.stderr.contains("connected again"),
        "{}",
        ran.stderr
    );
    let asked = asked.join().unwrap();
    assert!(!asked[0].contains("last-event-id") && asked[1].contains("last-event-id: 41\r\n"), "{asked:?}");
    let bearer = "authorization: Bearer 0123456789abcdef0123456789abcdef";
    assert!(asked.iter().all(|request| request.contains(bearer)), "{asked:?}");

    let (url, _) = serve(vec![answer(kind, 1_000_000, &first)]);
    let once = home.run(&["watch", &url, "--once"]).expect(1);
    assert!(once.stderr.contains("broke off"), "{}", once.stderr);
}
