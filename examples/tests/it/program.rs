//! A program that prints its address and token.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// A running program. Killed when dropped.
pub(crate) struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The value of the next line, `name value`.
    pub(crate) fn says(&mut self, name: &str) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        match line.trim_end().split_once(' ') {
            Some((found, value)) if found == name => value.to_owned(),
            _ => panic!("expected `{name} …`, got {line:?}"),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Python program of this folder. `no_proxy` keeps a proxy of the machine off loopback.
pub(crate) fn python(name: &str) -> Command {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut command = Command::new("python3");
    command
        .arg(script)
        .env("no_proxy", "127.0.0.1")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
