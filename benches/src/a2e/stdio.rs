//! Calls over pipes, beside a child that echoes every line.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{ANSWERED_AT_ONCE, ECHOED, at_once, echo, wire};
use crate::{children, rounds::Pairs};

const ROUND: Duration = Duration::from_millis(1_500);
const ROUNDS: usize = 5;

pub(super) async fn run() -> anyhow::Result<()> {
    // Ids must not repeat in a session, and the children live for all rounds.
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let mut ours = Pipes::start(&["--serve-a2e-stdio", &data])?;
    let mut floor = Pipes::start(&["--serve-lines"])?;
    for (depth, name) in [(1, "one call after another"), (16, "16 calls under way")] {
        let pairs = pairs(&mut ours, &mut floor, depth, (echo, ECHOED)).await?;
        pairs.tell(
            &format!("A2E over pipes, {name}, each on record"),
            "calls/s",
        );
    }
    let pairs = pairs(&mut ours, &mut floor, 16, (at_once, ANSWERED_AT_ONCE)).await?;
    pairs.tell(
        "A2E over pipes, 16 under way, a capability that answers at once",
        "calls/s",
    );
    Ok(())
}

async fn pairs(
    ours: &mut Pipes,
    floor: &mut Pipes,
    depth: usize,
    (message, good): (fn(&str) -> String, &str),
) -> anyhow::Result<Pairs> {
    Pairs::take(
        ROUNDS,
        || std::future::ready(ours.load(depth, message, good)),
        || std::future::ready(floor.load(depth, message, r#""type":""#)),
    )
    .await
}

/// A child at the other end of two pipes.
struct Pipes {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: u64,
}

impl Pipes {
    fn start(words: &[&str]) -> anyhow::Result<Self> {
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
            sent: 0,
        };
        pipes
            .input
            .write_all(format!("{}\n", wire::HANDSHAKE).as_bytes())?;
        pipes.read(r#""type":"handshake/"#)?;
        Ok(pipes)
    }

    /// Keeps `depth` calls in flight; each answer makes room for another.
    fn load(
        &mut self,
        depth: usize,
        message: fn(&str) -> String,
        good: &str,
    ) -> anyhow::Result<f64> {
        let began = Instant::now();
        for _ in 0..depth {
            self.send(message)?;
        }
        let mut answered = 0_u64;
        while began.elapsed() < ROUND {
            self.read(good)?;
            answered += 1;
            self.send(message)?;
        }
        let figure = answered as f64 / began.elapsed().as_secs_f64();
        for _ in 0..depth {
            self.read(good)?;
        }
        Ok(figure)
    }

    fn send(&mut self, message: fn(&str) -> String) -> anyhow::Result<()> {
        self.sent += 1;
        let mut line = message(&format!("{:016x}", self.sent));
        line.push('\n');
        Ok(self.input.write_all(line.as_bytes())?)
    }

    fn read(&mut self, good: &str) -> anyhow::Result<()> {
        let mut line = Vec::with_capacity(512);
        anyhow::ensure!(
            self.output.read_until(b'\n', &mut line)? > 0,
            "the child left"
        );
        wire::expect(&line, good)
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
