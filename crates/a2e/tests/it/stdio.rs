//! Hosts that are child processes: real ones, in a few lines of Python.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::json;
use toolpost_a2e::{
    CallError, CallEvent, CallOptions, Client, ConnectError, ConnectOptions, HostDeparture,
    HostTransport, StderrSink, StdioCommand, ToolApi,
};

/// A host whose tools misbehave, each in its own way.
const HOST: &str = r#"
import json, os, signal, sys, time
def say(text):
    sys.stdout.write(text + "\n"); sys.stdout.flush()
def result(id, data):
    say(json.dumps({"type": "tool/call/resp", "req_id": id,
        "data": {"success": True, "tool_name": "t", "duration_ms": 0, "data": data}}))
print("a banner")
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "handshake/req":
        say(json.dumps({"type": "handshake/resp", "req_id": m["id"], "session_id": "s",
            "ok": os.environ.get("REFUSE") is None, "reason": os.environ.get("REFUSE", "")}))
    elif m["type"] == "tool/call/req":
        tool, id = m["tool_name"], m["id"]
        if tool == "echo": result(id, m["arguments"])
        elif tool == "where": result(id, [os.getcwd(), os.environ.get("COLOUR")])
        elif tool == "events":
            for n in range(1, 4): say(json.dumps({"type": "tool/event", "req_id": id, "seq": n}))
            result(id, 1)
        elif tool == "garbage":
            sys.stdout.buffer.write(b"\xff\xfe\n\n[1]\nTraceback\n"); result(id, 1)
        elif tool == "huge": result(id, "x" * 1000000)
        elif tool == "talk":
            for n in range(3000): print("line", n, "x" * 100, file=sys.stderr)
            result(id, 1)
        elif tool == "die": os._exit(3)
        elif tool == "deaf": sys.stdout.close(); os.close(1)
        elif tool == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN); result(id, os.getpid())
            while True: time.sleep(60)
    elif m["type"] == "shutdown":
        print("shutdown", file=sys.stderr)
"#;

fn host() -> StdioCommand {
    StdioCommand::new("python3").args(["-u", "-c", HOST])
}

async fn connect(command: StdioCommand) -> ToolApi {
    let options = ConnectOptions::new("tester").message_limit(100_000);
    ToolApi::new(
        &Client::connect(HostTransport::Stdio(command), options)
            .await
            .unwrap(),
    )
}

fn collected() -> (StderrSink, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let list = lines.clone();
    (
        StderrSink::Lines(Arc::new(move |line| {
            list.lock().unwrap().push(line.to_owned());
        })),
        lines,
    )
}

#[tokio::test]
async fn calls_events_and_a_polite_end() {
    let (stderr, lines) = collected();
    let folder = tempfile::tempdir().unwrap();
    let api = connect(
        host()
            .env("COLOUR", "blue")
            .cwd(folder.path())
            .stderr(stderr),
    )
    .await;
    let result = api
        .call("echo", json!({ "text": "hé\u{2028}" }))
        .await
        .unwrap();
    assert_eq!(result.data, Some(json!({ "text": "hé\u{2028}" })));
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(
        api.call("where", json!({})).await.unwrap().data,
        Some(json!([place, "blue"]))
    );

    let mut call = api
        .start(CallOptions::new("events", json!({})).streaming())
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(CallEvent::Event(event)) = call.next_event().await {
        seen.push(event.seq);
    }
    assert_eq!(seen, [1, 2, 3]);
    assert!(call.result().await.unwrap().success);

    let began = Instant::now();
    api.client().close().await;
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "the child had to be killed"
    );
    assert_eq!(*lines.lock().unwrap(), ["shutdown"]);
}

#[tokio::test]
async fn many_calls_at_once() {
    let api = connect(host()).await;
    let calls = (0..200).map(|number| {
        let api = api.clone();
        tokio::spawn(async move {
            (
                number,
                api.call("echo", json!({ "n": number })).await.unwrap().data,
            )
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let (number, data) = call.await.unwrap();
        assert_eq!(data, Some(json!({ "n": number })));
    }
    api.client().close().await;
}

#[tokio::test]
async fn garbage_and_huge_lines() {
    let api = connect(host()).await;
    assert!(api.call("garbage", json!({})).await.unwrap().success);
    // The banner, the line that is not UTF-8, the list, the traceback.
    assert_eq!(api.client().counters().unreadable, 4);
    let error = api.call("huge", json!({})).await.unwrap_err();
    assert!(matches!(error, CallError::Malformed { .. }), "{error:?}");
    assert!(api.call("echo", json!({})).await.unwrap().success);
    api.client().close().await;
}

#[tokio::test]
async fn a_child_that_talks_is_heard_and_not_held_up() {
    let (stderr, lines) = collected();
    let api = connect(host().stderr(stderr)).await;
    assert!(api.call("talk", json!({})).await.unwrap().success);
    api.client().close().await;
    let lines = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!(lines.len(), 3_001);
    assert!(lines[2_999].starts_with("line 2999 x"));

    let api = connect(host().stderr(StderrSink::Null)).await;
    assert!(api.call("talk", json!({})).await.unwrap().success);
    api.client().close().await;
}

#[tokio::test]
async fn a_child_that_dies() {
    let api = connect(host()).await;
    match api.call("die", json!({})).await.unwrap_err() {
        CallError::HostGone(HostDeparture::Exited(status)) => assert_eq!(status.code(), Some(3)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        api.call("echo", json!({})).await.unwrap_err(),
        CallError::HostGone(_)
    ));
    api.client().close().await;
}

#[tokio::test]
async fn a_child_that_closes_its_stdout() {
    let api = connect(host()).await;
    let error = api.call("deaf", json!({})).await.unwrap_err();
    assert!(matches!(error, CallError::HostGone(_)), "{error:?}");
    api.client().close().await;
}

#[tokio::test]
async fn a_child_that_will_not_end_is_killed() {
    let api = connect(host()).await;
    let pid = api.call("stubborn", json!({})).await.unwrap().data.unwrap();
    let began = Instant::now();
    api.client().close().await;
    assert!(
        began.elapsed() >= Duration::from_secs(5),
        "it was not given its time"
    );
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[tokio::test]
async fn a_child_of_a_dropped_client_ends() {
    let api = connect(host()).await;
    let tasks = tokio::runtime::Handle::current().metrics();
    assert!(tasks.num_alive_tasks() > 0);
    drop(api);
    let ended = async {
        while tasks.num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_handshake_over_stdio_can_fail() {
    let fails = async |command: StdioCommand| {
        Client::connect(HostTransport::Stdio(command), ConnectOptions::new("tester"))
            .await
            .unwrap_err()
    };
    let error = fails(StdioCommand::new("/no/such/program")).await;
    assert!(
        matches!(&error, ConnectError::Spawn { program, .. } if program == "/no/such/program"),
        "{error:?}"
    );
    let error = fails(host().env("REFUSE", "auth_failed")).await;
    assert!(
        matches!(&error, ConnectError::Refused { reason } if reason == "auth_failed"),
        "{error:?}"
    );
    let error = fails(StdioCommand::new("sh").args(["-c", "read line; exit 4"])).await;
    match error {
        ConnectError::HostGone(HostDeparture::Exited(status)) => assert_eq!(status.code(), Some(4)),
        other => panic!("{other:?}"),
    }
}
