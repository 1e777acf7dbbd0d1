//! `toolpost serve --stdio` as a process, with an agent of either protocol at its pipes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::home::Home;

/// How long a test waits for a line before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    A2e,
    Mcp,
}

/// An agent and the process that serves it. Killed when dropped, so that no test leaves one behind.
pub(crate) struct PipedAgent {
    child: Child,
    pub(crate) spoken: Spoken,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    numbers: u32,
    /// The answer to the handshake, where one was made.
    pub(crate) welcome: Value,
}

/// How an agent's process is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Kill,
    Terminate,
    CloseInput,
}

impl PipedAgent {
    /// Starts a process and shakes hands.
    pub(crate) fn start(home: &Home, spoken: Spoken, arguments: &[&str]) -> Self {
        let mut agent = Self::spawn(home, spoken, arguments);
        agent.welcome = match spoken {
            Spoken::Mcp => {
                let welcome = agent.ask("initialize", &json!({
                    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
                }));
                agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
                welcome
            }
            Spoken::A2e => agent.ask(
                "handshake/req",
                &json!({ "agent_id": "t", "agent_caps": ["tools"] }),
            ),
        };
        agent
    }

    pub(crate) fn spawn(home: &Home, spoken: Spoken, arguments: &[&str]) -> Self {
        let face = match spoken {
            Spoken::A2e => "a2e",
            Spoken::Mcp => "mcp",
        };
        let mut all = vec!["serve", "--stdio", face];
        all.extend(arguments);
        let mut child = home.command(&all).stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({ "unreadable": line }));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        // Read, so that the process never waits for a full pipe.
        std::thread::spawn(move || std::io::copy(&mut stderr.by_ref(), &mut std::io::sink()));
        let input = child.stdin.take();
        Self {
            child,
            spoken,
            input,
            lines,
            numbers: 0,
            welcome: Value::Null,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(&format!("{message}\n"));
    }

    /// The next line. `None`: the process has closed its end.
    pub(crate) fn next(&self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("process {} says nothing", self.pid()),
        }
    }

    /// Sends a request and gives its id.
    pub(crate) fn begin(&mut self, kind: &str, fields: &Value) -> Value {
        self.numbers += 1;
        let id = match self.spoken {
            Spoken::Mcp => json!(self.numbers),
            Spoken::A2e => json!(format!("r{}", self.numbers)),
        };
        let message = match self.spoken {
            Spoken::Mcp => json!({ "jsonrpc": "2.0", "id": id, "method": kind, "params": fields }),
            Spoken::A2e => {
                let mut message = json!({ "type": kind, "id": id, "version": "1.0" });
                for (name, value) in fields.as_object().unwrap() {
                    message[name] = value.clone();
                }
                message
            }
        };
        self.send(&message);
        id
    }

    /// The answer to a request. Everything before it is left aside.
    pub(crate) fn answer(&self, id: &Value) -> Value {
        loop {
            let message = self.next().expect("an answer, and not the end");
            let answered = match self.spoken {
                Spoken::Mcp => message
                    .get("id")
                    .filter(|_| message.get("method").is_none()),
                Spoken::A2e => message
                    .get("req_id")
                    .filter(|_| message["type"] != "tool/event"),
            };
            if answered == Some(id) {
                return message;
            }
        }
    }

    pub(crate) fn ask(&mut self, kind: &str, fields: &Value) -> Value {
        let id = self.begin(kind, fields);
        self.answer(&id)
    }

    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> Value {
        match self.spoken {
            Spoken::Mcp => self.begin(
                "tools/call",
                &json!({ "name": tool, "arguments": arguments }),
            ),
            Spoken::A2e => {
                let session = self.welcome["session_id"].clone();
                let fields =
                    json!({ "tool_name": tool, "arguments": arguments, "session_id": session });
                self.begin("tool/call/req", &fields)
            }
        }
    }

    /// Calls `echo` and compares. Gives how long that took.
    #[track_caller]
    pub(crate) fn check_echo(&mut self, text: &str) -> Duration {
        let since = Instant::now();
        let id = self.begin_call("echo", &json!({ "message": text }));
        let answer = self.answer(&id);
        let said = match self.spoken {
            Spoken::Mcp => &answer["result"]["content"][0]["text"],
            Spoken::A2e => &answer["data"]["data"]["text"],
        };
        assert_eq!(*said, text, "{answer}");
        since.elapsed()
    }

    pub(crate) fn end(mut self, ending: Ending) -> ExitStatus {
        match ending {
            Ending::Kill => self.child.kill().unwrap(),
            Ending::Terminate => kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap(),
            Ending::CloseInput => drop(self.input.take()),
        }
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for PipedAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
