//! Decisions that rules delegate, end to end: a policy endpoint on loopback, a program, and who may define either.

mod configured;
mod endpoint;
mod program;
mod secure;
pub(crate) mod stub;

use std::process::Command;

use serde_json::Value;

use super::home::{Home, Ran};

/// A home with a trusted configuration beside its workspace, where nothing but reading runs unless it is delegated.
struct Office {
    home: Home,
    config: String,
}

impl Office {
    fn new(config: &str) -> Self {
        let home = Home::new();
        let path = home.workspace().parent().unwrap().join("trusted.yaml");
        std::fs::write(&path, config).unwrap();
        let config = path.to_str().unwrap().to_owned();
        Self { home, config }
    }

    /// One that delegates `echo` and `write_file` to an endpoint.
    fn asking(url: &str, more: &str) -> Self {
        Self::new(&format!(
            "rules: [delegate opa echo, delegate opa write_file]\n\
             authorities:\n  opa: {{ url: '{url}', {more} }}\n"
        ))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self
            .home
            .command(&[words, &["--config", &self.config]].concat());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).output().unwrap())
    }

    /// Calls `echo` and gives what was said, and the decision on record.
    fn echo(&self) -> (Ran, Value) {
        let ran = self.run(&["call", "echo", "message=hello", "--no-prompt"]);
        (ran, self.decision())
    }

    /// The decision of the last call on record.
    fn decision(&self) -> Value {
        let recorded = self
            .run(&["journal", "export", "--format", "jsonl"])
            .expect(0)
            .stdout;
        let mut lines = recorded
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ended = lines.rfind(|line| line["record"] == "ended").unwrap();
        ended["body"]["decision"].clone()
    }
}
