//! Runs a command that must not outlive a limit, nor this program, with everything it starts.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;

#[derive(Debug)]
pub(crate) enum WatchdogOutcome {
    Exited(ExitStatus),
    LimitHit,
}

/// The command gets a process group of its own, because killing only cargo would leave the hung test
/// binary behind, and killing only git its helper for the network.
pub(crate) fn run_within(
    limit: Duration,
    command: &mut Command,
) -> anyhow::Result<WatchdogOutcome> {
    let program = command.get_program().display().to_string();
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    let leash = match Leash::on_group(child.id()) {
        Ok(leash) => leash,
        Err(error) => {
            child
                .kill()
                .context("cannot stop a command that has no watchdog")?;
            return Err(error);
        }
    };
    let (report, ended) = mpsc::channel();
    thread::spawn(move || report.send(child.wait()));
    match ended.recv_timeout(limit) {
        Ok(status) => {
            leash.release();
            Ok(WatchdogOutcome::Exited(
                status.with_context(|| format!("cannot wait for `{program}`"))?,
            ))
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            leash.pull();
            Ok(WatchdogOutcome::LimitHit)
        }
    }
}

/// A shell that kills the group as soon as its stdin ends. The pipe also ends when this program dies,
/// which matters because Ctrl-C no longer reaches a group of its own. The shell's own `kill` is used:
/// `/bin/kill` is missing on a slim Debian.
pub(crate) struct Leash {
    shell: Child,
    held: ChildStdin,
}

impl Leash {
    pub(crate) fn on_group(group: u32) -> anyhow::Result<Leash> {
        let mut shell = Command::new("/bin/sh")
            .args([
                "-c",
                "read -r released || kill -s KILL -- \"-$0\"",
                &group.to_string(),
            ])
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start `/bin/sh` to watch a command")?;
        let held = shell
            .stdin
            .take()
            .context("the watching shell has no stdin")?;
        Ok(Leash { shell, held })
    }

    /// The group has ended, and its number may soon belong to another process.
    pub(crate) fn release(mut self) {
        // If the shell is gone already, there is nothing left to kill the group.
        let _ = self.held.write_all(b"released\n");
        let _ = self.shell.wait();
    }

    fn pull(mut self) {
        drop(self.held);
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read as _};
    use std::time::Instant;

    #[test]
    fn a_command_within_its_limit_keeps_its_status() {
        let ending = run_within(
            Duration::from_secs(60),
            Command::new("/bin/sh").args(["-c", "exit 3"]),
        )
        .unwrap();
        assert!(
            matches!(ending, WatchdogOutcome::Exited(status) if status.code() == Some(3)),
            "{ending:?}"
        );
    }

    #[test]
    fn the_limit_ends_grandchildren_too() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 100 & wait"]).stdout(writer);
        let start = Instant::now();

        let ending = run_within(Duration::from_millis(100), &mut command).unwrap();
        assert!(matches!(ending, WatchdogOutcome::LimitHit), "{ending:?}");

        // The pipe ends when its last writer is gone: the `sleep`, once our own copy is closed.
        drop(command);
        reader.read_to_end(&mut Vec::new()).unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(50),
            "the grandchild lived on"
        );
    }
}
