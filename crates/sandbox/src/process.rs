//! A running command: its streams, its exit, and how to end it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use toolpost_model::AppliedSandbox;

use crate::job::CommandExit;
use crate::launcher::JobRemainsGuard;
use crate::message::{LauncherMessage, TERMINATE, take_frame};
use crate::undertaker::HEAD_START;

/// A launcher kills its processes within milliseconds. After this time the host kills the launcher itself.
const PATIENCE: Duration = Duration::from_secs(2);

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

const SIGKILL: i32 = 9;

/// A running command. Dropping it kills every process that the command started.
#[derive(Debug)]
pub struct SandboxedProcess {
    // The order of the fields matters. `control` is dropped first, which is the launcher's signal to kill everything;
    // `charge` then gives the remains to the undertaker, which expects a launcher that is about to end.
    control: LauncherChannel,
    streams: ProcessStreams,
    applied: AppliedSandbox,
    ended: Option<CommandExit>,
    charge: JobRemainsGuard,
}

/// The host's ends of the command's standard streams.
#[derive(Debug)]
pub(crate) struct ProcessStreams {
    stdin: Option<Sender>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
}

impl ProcessStreams {
    pub(crate) fn new(
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: Option<OwnedFd>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            stdin: stdin.map(Sender::from_owned_fd).transpose()?,
            stdout: Some(Receiver::from_owned_fd(stdout)?),
            stderr: stderr.map(Receiver::from_owned_fd).transpose()?,
        })
    }

    /// The output of a launcher that ended without a report: a panic, or an error of the loader.
    pub(crate) async fn last_words(mut self) -> String {
        let Some(stream) = self.stderr.as_mut().or(self.stdout.as_mut()) else {
            return String::new();
        };
        let mut words = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.take(2000).read_to_end(&mut words)).await;
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

/// The host's end of the control socket.
#[derive(Debug)]
pub(crate) struct LauncherChannel {
    stream: UnixStream,
    /// Part of a message that was received. It is kept here and not in the future of `next_message`, because a caller
    /// may drop that future between two reads: `wait` is used in `select!`, and a lost half of a frame would make every
    /// later message unreadable.
    inbox: Vec<u8>,
}

impl LauncherChannel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
        }
    }

    /// `None` after the launcher, and with it everything, has ended.
    pub(crate) async fn next_message(&mut self) -> Option<LauncherMessage> {
        loop {
            match take_frame(&mut self.inbox) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(_) => return None,
            }
            match self.stream.read_buf(&mut self.inbox).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

impl SandboxedProcess {
    pub(crate) fn new(
        charge: JobRemainsGuard,
        control: LauncherChannel,
        streams: ProcessStreams,
        applied: AppliedSandbox,
    ) -> Self {
        Self {
            control,
            streams,
            applied,
            ended: None,
            charge,
        }
    }

    /// The confines in force, as the launcher reported them right before the command began.
    pub fn applied(&self) -> &AppliedSandbox {
        &self.applied
    }

    /// Adds to the report the protected paths that were created during the run.
    pub fn note_protected_created(&mut self, paths: Vec<String>) {
        self.applied.protected_created = paths;
    }

    /// The launcher's process id. The command's own id is valid only in its namespace.
    pub fn id(&self) -> u32 {
        self.charge.id()
    }

    /// The writer for the command's standard input, once, if the job has [`Stdin::Piped`](crate::Stdin::Piped).
    /// Dropping it ends the input.
    pub fn take_stdin(&mut self) -> Option<Sender> {
        self.streams.stdin.take()
    }

    /// The reader of the command's standard output, once.
    pub fn take_stdout(&mut self) -> Option<Receiver> {
        self.streams.stdout.take()
    }

    /// The reader of the command's standard error, once, unless it is joined with standard output.
    pub fn take_stderr(&mut self) -> Option<Receiver> {
        self.streams.stderr.take()
    }

    /// Waits for the exit of the command itself. Its remaining processes are killed then, and this does not wait for
    /// them. The future may be dropped and `wait` called again.
    pub async fn wait(&mut self) -> CommandExit {
        if let Some(ended) = self.ended {
            return ended;
        }
        loop {
            match self.control.next_message().await {
                Some(LauncherMessage::Ended { code, signal }) => {
                    return self.has_ended(code, signal);
                }
                Some(LauncherMessage::Running(_) | LauncherMessage::Failed(_)) => {}
                // Only a launcher that was itself killed ends without a message.
                None => return self.has_ended(None, Some(SIGKILL)),
            }
        }
    }

    fn has_ended(&mut self, code: Option<i32>, signal: Option<i32>) -> CommandExit {
        let ended = CommandExit {
            code,
            signal,
            out_of_memory: self.charge.ran_out_of_memory(),
        };
        *self.ended.insert(ended)
    }

    /// Asks all processes of the command to end. They may take their time, or ignore it.
    pub fn terminate(&self) {
        let _ = self.control.stream.try_write(&[TERMINATE]);
    }

    /// Kills all processes of the command, and returns when they are gone.
    pub async fn kill(&mut self) -> CommandExit {
        let _ = rustix::net::shutdown(&self.control.stream, rustix::net::Shutdown::Write);
        if tokio::time::timeout(HEAD_START, self.until_gone())
            .await
            .is_err()
        {
            self.kill_by_force().await;
        }
        match self.ended {
            Some(ended) => ended,
            None => self.has_ended(None, Some(SIGKILL)),
        }
    }

    /// For a tree that grows faster than the launcher can kill it, and for a launcher that hangs. The host first kills
    /// the control group, then the launcher, and at last single processes that are still in the group.
    async fn kill_by_force(&mut self) {
        if let Some(remains) = self.charge.remains() {
            remains.leaf.kill();
        }
        if tokio::time::timeout(PATIENCE, self.until_gone())
            .await
            .is_err()
            && let Some(remains) = self.charge.remains()
        {
            let _ = remains.launcher.kill();
            self.until_gone().await;
        }
        let given_up = tokio::time::Instant::now() + PATIENCE;
        while let Some(remains) = self.charge.remains()
            && !remains.leaf.is_empty()
            && tokio::time::Instant::now() < given_up
        {
            remains.leaf.kill_each();
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Waits for the launcher, which ends last and thereby closes its end of the control socket.
    async fn until_gone(&mut self) {
        while let Some(message) = self.control.next_message().await {
            if let LauncherMessage::Ended { code, signal } = message {
                self.has_ended(code, signal);
            }
        }
    }
}
