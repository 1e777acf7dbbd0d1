//! The acceptance scenarios of the Agent Tool draft, one test each, through the real binary.

mod deciding;
mod evidence;
mod finding;
mod results;
mod running;
mod validating;

use std::{process::Command, thread, time::Duration};

use serde_json::Value;

use super::{
    exported::Exported,
    home::{Home, Ran},
    http::{Answer, Http},
    modules::place::python,
    served::Served,
};

/// A running host with an agent and an operator, and a trusted configuration beside its workspace.
struct Scene {
    home: Home,
    served: Served,
    agent: Http,
    operator: Http,
}

impl Scene {
    /// Starts a host. `PYTHON` in the configuration is the Python of the tests.
    fn new(config: &str) -> Self {
        Self::prepared(config, |_| {})
    }

    /// The same after files were written: those of the workspace, and those beside the configuration.
    fn prepared(config: &str, prepare: impl FnOnce(&Home)) -> Self {
        let home = Home::new();
        std::fs::write(
            beside(&home, "trusted.yaml"),
            config.replace("PYTHON", python()),
        )
        .unwrap();
        prepare(&home);
        let served = Served::spawn(&mut command(&home, &["serve", "--http", "127.0.0.1:0"]));
        let agent = served.connect(&home);
        let operator = served.socket(&home);
        Self {
            home,
            served,
            agent,
            operator,
        }
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::from(command(&self.home, words).output().unwrap())
    }

    /// Calls a tool, named with its query, under the caller's own id.
    fn call(&mut self, id: &str, tool: &str, arguments: &Value) -> Value {
        self.send(id, "", tool, arguments).json()
    }

    /// The same with further headers, and the whole answer.
    fn send(&mut self, id: &str, headers: &str, tool: &str, arguments: &Value) -> Answer {
        let (name, query) = tool.split_once('?').unwrap_or((tool, ""));
        let headers = format!("Toolpost-Call-Id: {id}\r\n{headers}");
        self.agent
            .send(
                "POST",
                &format!("/tools/{name}/call?{query}"),
                &headers,
                &arguments.to_string(),
            )
            .unwrap()
    }

    /// Begins a call in the background and gives its id.
    fn begin(&mut self, id: &str, tool: &str, arguments: &Value) -> String {
        let begun = self.call(id, &format!("{tool}?background=true"), arguments);
        begun["invocation_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{begun}"))
            .to_owned()
    }

    /// The view of a call once it is as wanted.
    fn wait(&mut self, invocation: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
        let mut told = Value::Null;
        for _ in 0..6_000 {
            told = self
                .agent
                .get(&format!("/invocations/{invocation}"))
                .unwrap()
                .json();
            if is_reached(&told) {
                return told;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{invocation}: {told}");
    }

    fn ended(&mut self, invocation: &str) -> Value {
        self.wait(invocation, |told| told["status"] == "ended")["result"].clone()
    }

    /// Answers a question as soon as it is asked.
    fn answer(&mut self, question: &str, verdict: &Value) {
        self.wait(question, |told| told["stage"] == "await_approval");
        // The stage is told a moment before the question is open.
        let is_open = (0..6_000).any(|_| {
            let open = self.operator.get("/approvals").unwrap();
            let is_open = open.body.contains(question);
            if !is_open {
                thread::sleep(Duration::from_millis(10));
            }
            is_open
        });
        assert!(is_open, "{question} is not open");
        let told = self
            .operator
            .post(&format!("/approvals/{question}"), &verdict.to_string())
            .unwrap();
        assert_eq!(told.status, 200, "{told:?}");
    }

    fn exported(&self) -> Exported {
        Exported::read(
            &self
                .run(&["journal", "export", "--format", "agent-tool"])
                .expect(0)
                .stdout,
        )
    }
}

/// A path beside the configuration.
fn beside(home: &Home, name: &str) -> std::path::PathBuf {
    home.workspace().with_file_name(name)
}

fn command(home: &Home, words: &[&str]) -> Command {
    let mut command = home.command(words);
    command
        .arg("--config")
        .arg(beside(home, "trusted.yaml"))
        .env("PATH", std::env::var_os("PATH").unwrap());
    command
}
