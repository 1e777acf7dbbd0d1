//! Calls over pipes, in both revisions.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;

use super::wire::{ECHOED, Era, INITIALIZE, INITIALIZED};
use crate::{children, rounds::Field};

const ROUND: Duration = Duration::from_millis(1_500);
const ROUNDS: usize = 5;

pub(super) async fn run() -> anyhow::Result<()> {
    for era in Era::BOTH {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data").display().to_string();
        let names = ["Toolpost", "a floor that answers lines", "plain rmcp"];
        let mut contenders = [
            Pipes::start(&["--serve-mcp-stdio", &data], era)?,
            Pipes::start(&["--serve-mcp-lines"], era)?,
            Pipes::start(&["--serve-rmcp-stdio"], era)?,
        ];
        for (depth, name) in [(1, "one call after another"), (16, "16 calls under way")] {
            let field = Field::take(ROUNDS, names, |place| {
                std::future::ready(contenders[place].load(depth))
            })
            .await?;
            field.tell(
                &format!("MCP over pipes, {}, {name}, each on record", era.name()),
                "calls/s",
            );
        }
    }
    Ok(())
}

/// A child at the other end of two pipes.
pub(super) struct Pipes {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    era: Era,
    sent: u64,
}

impl Pipes {
    pub(super) fn start(words: &[&str], era: Era) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let mut child = children::command(&program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("the child's input")?;
        let output = BufReader::new(child.stdout.take().context("the child's output")?);
        let mut pipes = Self {
            child,
            input,
            output,
            era,
            sent: 0,
        };
        if matches!(era, Era::Sessions) {
            pipes
                .input
                .write_all(format!("{INITIALIZE}\n").as_bytes())?;
            pipes.read(r#""protocolVersion""#)?;
            pipes
                .input
                .write_all(format!("{INITIALIZED}\n").as_bytes())?;
        }
        Ok(pipes)
    }

    /// Keeps `depth` calls in flight; each answer makes room for another.
    pub(super) fn load(&mut self, depth: usize) -> anyhow::Result<f64> {
        let began = Instant::now();
        for _ in 0..depth {
            self.send()?;
        }
        let mut answered = 0_u64;
        while began.elapsed() < ROUND {
            self.read(ECHOED)?;
            answered += 1;
            self.send()?;
        }
        let figure = answered as f64 / began.elapsed().as_secs_f64();
        for _ in 0..depth {
            self.read(ECHOED)?;
        }
        Ok(figure)
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.sent += 1;
        let line = format!("{}\n", self.era.echo(self.sent));
        Ok(self.input.write_all(line.as_bytes())?)
    }

    fn read(&mut self, good: &str) -> anyhow::Result<()> {
        let mut line = String::with_capacity(512);
        anyhow::ensure!(self.output.read_line(&mut line)? > 0, "the child left");
        anyhow::ensure!(line.contains(good), "not what was expected: {line}");
        Ok(())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
