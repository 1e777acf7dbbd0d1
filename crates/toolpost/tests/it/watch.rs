//! `toolpost watch` on streams of others and on a host that runs, ends and comes back.

mod elsewhere;

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use self::elsewhere::{answer, serve};
use super::{home::Home, served::Served};

/// Far beyond anything that works: turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

const RECORDED: &str = r#"{"type":"tool-call","toolCallId":"toolu_01","toolName":"read_file","input":{"path":"notes.txt"}}
{"type":"tool-call","toolCallId":"toolu_02","toolName":"shell","input":{"command":"git push"}}

{"type":"tool-result","toolCallId":"toolu_01","output":"first\nsecond\n","durationMs":12}
{"kind":"data","data":{"type":"tool-error","toolCallId":"toolu_02","error":{"message":"denied \u001b[2Jby a rule"}}}
not json
{"type":"tool-call","toolCallId":"toolu_03","toolName":"wait","input":{}}
"#;

/// The content type of [`RECORDED`].
const LINES: &str = "application/x-ndjson";

/// The URL of a stream that is served to one reader.
fn serve_once(kind: &str, body: &str) -> String {
    serve(vec![answer(kind, body.len(), body)]).0
}

/// A `watch` that goes on.
struct Watching {
    child: Child,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Watching {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (to, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| to.send(line))
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut said = String::new();
            stderr.read_to_string(&mut said).unwrap();
            said
        });
        Self {
            child,
            lines,
            stderr: Some(stderr),
        }
    }

    /// The next part.
    #[track_caller]
    fn part(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("another line");
        serde_json::from_str(&line).unwrap()
    }

    /// The next part of a tool that has ended, whatever else is told before.
    #[track_caller]
    fn end_of(&self, tool: &str) -> Value {
        loop {
            let part = self.part();
            if part["name"] == tool && (part.get("result").is_some() || part.get("error").is_some())
            {
                return part;
            }
        }
    }

    /// Says that it is enough; gives the exit code and what was said on stderr.
    fn stop(self) -> (i32, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.wait()
    }

    /// The same when it ends by itself.
    fn wait(mut self) -> (i32, String) {
        let code = self
            .child
            .wait()
            .unwrap()
            .code()
            .expect("no signal ended it");
        (code, self.stderr.take().unwrap().join().unwrap())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_stream_is_told_line_by_line() {
    let home = Home::new();
    let url = serve_once(LINES, RECORDED);
    home.check("watch_stream", &["watch", &url]).expect(0);
}

#[test]
fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_told() {
    let home = Home::new();
    let line = |text: &str| {
        format!("{{\"type\":\"tool-call\",\"toolCallId\":\"{text}\",\"toolName\":\"t\"}}\n")
    };
    let lines = format!("{}{}", line(&"x".repeat(17 << 20)), line("short"));
    let url = serve_once(LINES, &lines);
    let ran = home.run(&["watch", &url, "--json"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("\"short\""), "{}", ran.stdout);
    assert!(ran.stderr.contains("too long"), "{}", ran.stderr);
}

#[test]
fn parts_are_printed_whenever_they_change() {
    let home = Home::new();
    let stream = "\
event: tool-event
id: 1
data: {\"type\":\"tool-input-start\",\"toolCallId\":\"a\",\"toolName\":\"t\"}

: still here

data: {\"type\":\"tool-input-delta\",\"toolCallId\":\"a\",\"inputTextDelta\":\"{\\\"x\\\":1}\"}

data: {\"type\":\"tool-output-available\",\"toolCallId\":\"a\",\"output\":7}

data: {\"type\":\"tool-output-available\",\"toolCallId\":\"a\",\"output\":7}

data: [DONE]

";
    let url = serve_once("text/event-stream", stream);
    let ran = home.run(&["watch", &url, "--json"]).expect(0);
    let parts: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        parts,
        [
            json!({ "kind": "tool_call", "id": "a", "name": "t", "args": {} }),
            json!({ "kind": "tool_call", "id": "a", "name": "t", "args": { "x": 1 } }),
            json!({ "kind": "tool_call", "id": "a", "name": "t", "args": { "x": 1 }, "result": 7 }),
        ]
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_call_that_one_text_tells_to_its_end_is_printed_once() {
    let home = Home::new();
    let part = |data: Value| json!({ "kind": "data", "data": data });
    let message = json!({ "kind": "message", "role": "agent", "messageId": "m", "parts": [
        part(json!({ "type": "tool-call", "toolCallId": "a", "toolName": "t", "input": { "x": 1 } })),
        part(json!({ "type": "tool-result", "toolCallId": "a", "output": 7 })),
    ] });
    let message = message.to_string();
    let url = serve_once("application/json", &message);
    let ran = home.run(&["watch", &url, "--json"]).expect(0);
    let expected =
        json!({ "kind": "tool_call", "id": "a", "name": "t", "args": { "x": 1 }, "result": 7 });
    assert_eq!(ran.json(), expected);
    let url = serve_once("application/json", &message);
    let lines = home.run(&["watch", &url]).expect(0).stdout;
    assert_eq!(lines, "done     a  t  x = 1  → 7\n");
}

#[test]
fn lines_of_the_older_protocol_are_read() {
    let home = Home::new();
    let lines = "f:{\"messageId\":\"m\"}\n9:{\"toolCallId\":\"a\",\"toolName\":\"t\",\"args\":{\"x\":1}}\n\
                 a:{\"toolCallId\":\"a\",\"result\":7}\n0:\"text\"\n";
    let url = serve_once("text/plain", lines);
    let ran = home.run(&["watch", &url]).expect(0);
    assert_eq!(
        ran.stdout,
        "running  a  t  x = 1\ndone     a  t  x = 1  → 7\n"
    );
    assert_eq!(ran.stderr, "");
}

/// The command that watches a host by its address.
fn watch_url(home: &Home, address: &str, more: &[&str]) -> Command {
    let token = home.data_dir().join("token");
    let mut command = home.command(&["watch", address, "--json"]);
    command.arg("--token-file").arg(token).args(more);
    command
}

#[test]
fn a_host_is_watched_by_its_address_also_over_a_restart() {
    let home = Home::new();
    home.write("notes.txt", "remember\n");
    let served = Served::start(&home, &[]);
    let address = served.address.to_string();
    let url = format!("http://{}", served.address);
    let watching = Watching::start(&mut watch_url(&home, &url, &["--from", "start"]));
    served
        .connect(&home)
        .post("/tools/read_file/call", r#"{"path":"notes.txt"}"#)
        .unwrap();
    let begun = watching.part();
    assert_eq!(
        (&begun["name"], &begun["args"]["path"]),
        (&json!("read_file"), &json!("notes.txt"))
    );
    assert!(
        begun.get("result").is_none() && begun.get("error").is_none(),
        "{begun}"
    );
    let ended = watching.part();
    assert_eq!(ended["id"], begun["id"]);
    assert_eq!(ended["result"]["structured"]["size"], 9, "{ended}");
    assert!(ended["duration_ms"].is_u64(), "{ended}");

    served.kill();
    let served = Served::spawn(&mut home.command(&["serve", "--http", &address]));
    served
        .connect(&home)
        .post("/tools/list_directory/call", r#"{"path":"."}"#)
        .unwrap();
    let next = watching.end_of("list_directory");
    assert!(next.get("error").is_none(), "{next}");
    let (code, said) = watching.stop();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("the connection is lost") && said.contains("connected again"),
        "{said}"
    );
}

#[test]
fn the_running_host_is_watched_through_its_socket() {
    let home = Home::new();
    home.write("notes.txt", "remember\n");
    let served = Served::start(&home, &[]);
    let watching = Watching::start(&mut home.command(&["watch", "--json", "--from", "start"]));
    // From two sessions: the agent's, and the one of the command line.
    served
        .connect(&home)
        .post("/tools/read_file/call", r#"{"path":"notes.txt"}"#)
        .unwrap();
    assert_eq!(watching.end_of("read_file")["args"]["path"], "notes.txt");
    home.run(&["call", "read_file", "path=nothing.txt"])
        .expect(1);
    let failed = watching.end_of("read_file");
    assert_eq!(failed["args"]["path"], "nothing.txt");
    assert!(
        failed["error"]["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{failed}"
    );
    served.stop();
    // One session alone, which a new host has not seen yet, and only until the host goes.
    let served = Served::start(&home, &[]);
    let mut alone = home.command(&["watch", "--json", "--from", "start", "--once"]);
    let alone = Watching::start(alone.args(["--session", "default:agent:agent"]));
    assert_eq!(alone.end_of("read_file")["args"]["path"], "notes.txt");
    served.stop();
    let rest: Vec<String> = alone.lines.iter().collect();
    assert!(
        rest.iter().all(|line| !line.contains("nothing.txt")),
        "{rest:?}"
    );
    assert_eq!(watching.stop().0, 0);
}

#[test]
fn a_closed_session_is_no_fault() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let mut agent = served.connect(&home);
    let opened = agent.post("/sessions", "{}").unwrap().json();
    let session = opened["session_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{opened}"));
    let mut command = home.command(&["watch", "--session", session]);
    let watching = Watching::start(&mut command);
    // It listens as soon as it shows a call.
    while watching.lines.try_recv().is_err() {
        let call = agent
            .post_in(session, "/tools/echo/call", r#"{"message":"hi"}"#)
            .unwrap();
        assert_eq!(call.status, 200, "{}", call.body);
    }
    agent.delete(&format!("/sessions/{session}")).unwrap();
    let (code, said) = watching.wait();
    assert_eq!((code, said.as_str()), (0, "this session was closed\n"));
    served.stop();
}

#[test]
fn the_session_of_the_caller_has_a_short_name() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    home.run(&["call", "echo", "message=hi"]).expect(0);
    let mut own = home.command(&["watch", "--json", "--session", "default", "--from", "start"]);
    let own = Watching::start(&mut own);
    assert_eq!(own.end_of("echo")["args"]["message"], "hi");
    assert_eq!(own.stop().0, 0);
    // The host's words, and not its JSON.
    home.check(
        "call_unknown_session",
        &["call", "echo", "message=hi", "--session", "nobody"],
    )
    .expect(1);
    served.stop();
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let home = Home::new();
    let url = serve_once(LINES, RECORDED);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ran = home
        .command(&["watch", &url])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("the output cannot be written"), "{said}");
}

#[test]
fn refusals_say_what_to_do() {
    let home = Home::new();
    home.check("watch_no_host", &["watch"]).expect(1);
    home.check("watch_file", &["watch", "events.jsonl"])
        .expect(2);
    home.check("watch_pipe", &["watch", "-"]).expect(2);
    home.check("watch_dropped_flag", &["watch", "--follow"])
        .expect(2);
    let served = Served::start(&home, &[]);
    let url = format!("http://{}", served.address);
    home.check("watch_no_token", &["watch", &url]).expect(1);
    home.check("watch_unknown_session", &["watch", "--session", "nobody"])
        .expect(1);
    let wrong = home.workspace().join("wrong");
    std::fs::write(&wrong, "0123456789abcdef0123456789abcdef\n").unwrap();
    home.check(
        "watch_wrong_token",
        &["watch", &url, "--token-file", "wrong"],
    )
    .expect(1);
    // Everybody's calls are not for everybody.
    let token = home.data_dir().join("token");
    let everything = format!("{url}/events");
    let words = [
        "watch",
        &everything,
        "--token-file",
        token.to_str().unwrap(),
    ];
    home.check("watch_operators_only", &words).expect(1);
    let nowhere = format!("{url}/nowhere");
    home.check(
        "watch_no_such_path",
        &["watch", &nowhere, "--token-file", token.to_str().unwrap()],
    )
    .expect(1);
    served.stop();
    home.check("watch_refused", &["watch", &url]).expect(1);
}

#[test]
fn who_stops_reading_ends_it() {
    let home = Home::new();
    let long = RECORDED.replace("not json\n", "").repeat(2_000);
    let url = serve_once(LINES, &long);
    let mut command = home.command(&["watch", &url]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("running  toolu_01  read_file"), "{line}");
    assert!(child.wait().unwrap().success());
}
