//! Starts and ends a worker process.
#![expect(
    clippy::disallowed_methods,
    reason = "the one module that starts children that need no launcher"
)]

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdStream},
    path::Path,
    process::Stdio,
};

use tokio::{
    io::AsyncReadExt as _,
    net::UnixStream,
    process::{Child, ChildStderr, Command},
};

use super::{conversation::CodeWorkerConnection, worker};

/// The most bytes of a dead worker's standard error that are read.
const LAST_WORDS: u64 = 4096;

/// A worker process. Dropping it kills the process.
pub(super) struct WorkerProcess {
    child: Child,
    stderr: Option<ChildStderr>,
    pub(super) wire: CodeWorkerConnection,
}

/// How a worker died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerDeath {
    OutOfMemory,
    StackOverflow,
    Other,
}

impl WorkerProcess {
    /// Starts `program` as a worker that may use `memory` bytes. It inherits nothing of this process: no environment,
    /// no directory of importance, and no descriptor except the socket.
    pub(super) fn start(program: &Path, memory: u64) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut child = Command::new(program)
            .arg(worker::ARGUMENT)
            .arg(memory.to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stderr = child.stderr.take();
        Ok(Self {
            child,
            stderr,
            wire: CodeWorkerConnection::new(UnixStream::from_std(ours)?),
        })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the process, and returns how it died if it was dead already. Its own output is only used for a message.
    pub(super) async fn autopsy(mut self) -> WorkerDeath {
        let _ = self.child.kill().await;
        let mut words = Vec::new();
        if let Some(stderr) = self.stderr.take() {
            let _ = stderr.take(LAST_WORDS).read_to_end(&mut words).await;
        }
        let words = String::from_utf8_lossy(&words);
        if words.contains("memory allocation of") {
            WorkerDeath::OutOfMemory
        } else if words.contains("overflowed its stack") {
            WorkerDeath::StackOverflow
        } else {
            WorkerDeath::Other
        }
    }
}
