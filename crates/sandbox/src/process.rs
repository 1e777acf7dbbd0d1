//! A command that runs: its streams, its end, and ways to end it.

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

/// A launcher kills what it keeps within milliseconds. One that does not is killed itself.
const PATIENCE: Duration = Duration::from_secs(2);

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

const SIGKILL: i32 = 9;

/// A running command. When it is dropped, everything the command has started is killed.
#[derive(Debug)]
pub struct SandboxedProcess {
    // Dropped first, which tells the launcher to end; the charge is cleared up after that.
    control: LauncherChannel,
    streams: ProcessStreams,
    applied: AppliedSandbox,
    ended: Option<CommandExit>,
    charge: JobRemainsGuard,
}

/// The command's standard streams, the host's ends.
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

    /// What a launcher said that ended without a report: a panic, or the loader's complaint.
    pub(crate) async fn last_words(mut self) -> String {
        let Some(stream) = self.stderr.as_mut().or(self.stdout.as_mut()) else {
            return String::new();
        };
        let mut words = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.take(2000).read_to_end(&mut words)).await;
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

/// The host's end of the launcher's standard input.
#[derive(Debug)]
pub(crate) struct LauncherChannel {
    stream: UnixStream,
    /// Kept here, so that a wait that is given up loses nothing.
    inbox: Vec<u8>,
}

impl LauncherChannel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
        }
    }

    /// None when the launcher, and with it everything, has ended.
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

    /// What confines it, as the launcher reported right before the command began.
    pub fn applied(&self) -> &AppliedSandbox {
        &self.applied
    }

    /// Adds to what is told of the confines which protected paths came into being meanwhile, for whoever looked.
    pub fn note_protected_created(&mut self, paths: Vec<String>) {
        self.applied.protected_created = paths;
    }

    /// The launcher's process id; the command's own means nothing outside of its namespace.
    pub fn id(&self) -> u32 {
        self.charge.id()
    }

    /// Writes to the command's standard input, once, if the job asked for [`Stdin::Piped`](crate::Stdin::Piped).
    /// Dropped, it is the end of that input.
    pub fn take_stdin(&mut self) -> Option<Sender> {
        self.streams.stdin.take()
    }

    /// Reads the command's standard output, once.
    pub fn take_stdout(&mut self) -> Option<Receiver> {
        self.streams.stdout.take()
    }

    /// Reads the command's standard error, once, unless it goes with standard output.
    pub fn take_stderr(&mut self) -> Option<Receiver> {
        self.streams.stderr.take()
    }

    /// How the command itself ended, when it has. What it left running is killed then, and does not keep this
    /// waiting. May be given up and called again.
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
                // Only a launcher that was itself killed says nothing.
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

    /// Asks all that the command has started to end. They may take their time, or not listen.
    pub fn terminate(&self) {
        let _ = self.control.stream.try_write(&[TERMINATE]);
    }

    /// Kills all that the command has started; returns when it is gone.
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

    /// For a tree that grows faster than the launcher can fell it, and for a launcher that cannot.
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

    /// The launcher ends last, and its end of the control socket with it.
    async fn until_gone(&mut self) {
        while let Some(message) = self.control.next_message().await {
            if let LauncherMessage::Ended { code, signal } = message {
                self.has_ended(code, signal);
            }
        }
    }
}
