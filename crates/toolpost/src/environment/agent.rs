//! The command of `capture`: an agent with the host's address and token in its environment.

use std::{ffi::OsString, os::unix::process::ExitStatusExt, process::ExitStatus};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::exit::UsageError;

/// A running agent with the standard streams of this process. Dropping it kills the process.
pub(crate) struct RunningAgent(Child);

impl RunningAgent {
    /// Starts it with further variables in its environment.
    pub(crate) fn start<const N: usize>(
        words: &[OsString],
        variables: [(&str, &str); N],
    ) -> anyhow::Result<Self> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(UsageError("no command was given".into()).into());
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(variables).kill_on_drop(true);
        let child = command.spawn();
        child.map(Self).with_context(|| {
            format!(
                "the command `{}` cannot be started",
                program.to_string_lossy()
            )
        })
    }

    /// Waits for its end and returns its exit code, as a shell would.
    pub(crate) async fn end(&mut self) -> anyhow::Result<u8> {
        let status = self
            .0
            .wait()
            .await
            .context("waiting for the command failed")?;
        Ok(code(status))
    }

    /// Sends it SIGTERM.
    pub(crate) fn send_stop_signal(&self) {
        let pid = self.0.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}
