//! A host as a child process: one message a line on its stdin and stdout.
//!
//! A child that exits is not restarted: a new child would have a new session without the calls of this one.
#![expect(
    clippy::disallowed_methods,
    reason = "the one module of this crate that starts processes"
)]

mod child;
mod lines;

use std::{ffi::OsString, fmt, path::PathBuf, process::Stdio, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, Command},
    sync::mpsc,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{error::ConnectError, router::AnswerRouter};
use lines::{LineSplitter, SplitLine};

/// The most lines that wait to be written.
const QUEUE: usize = 64;
const READ: usize = 64 << 10;
/// Longer lines of stderr are cut.
const STDERR_LINE: usize = 16 << 10;

/// The command of a host that reads stdin and writes stdout.
#[derive(Clone, Debug)]
pub struct StdioCommand {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    stderr: StderrSink,
}

/// The destination of a child's stderr. It is always read, because a child that writes into a full pipe blocks.
#[derive(Clone)]
pub enum StderrSink {
    /// The stderr of this process.
    Inherit,
    /// Discarded.
    Null,
    /// A function that gets each line and must not block.
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl fmt::Debug for StderrSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Null => "Null",
            Self::Lines(_) => "Lines",
        })
    }
}

impl StdioCommand {
    /// A program, searched for as the system searches for programs. It gets this process's environment; its stderr is
    /// discarded unless [`stderr`](Self::stderr) is set.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stderr: StderrSink::Null,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Sets the destination of stderr.
    #[must_use]
    pub fn stderr(mut self, stderr: StderrSink) -> Self {
        self.stderr = stderr;
        self
    }
}

pub(super) struct StdioWire {
    /// The queue of the writing task.
    pub(super) lines: mpsc::Sender<Bytes>,
    /// Ends the child step by step, see `child`.
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl StdioWire {
    pub(super) fn start(
        command: StdioCommand,
        line_limit: usize,
        router: Arc<AnswerRouter>,
    ) -> Result<Self, ConnectError> {
        let StdioCommand {
            program,
            args,
            env,
            cwd,
            stderr,
        } = command;
        let mut prepared = Command::new(&program);
        prepared
            .args(args)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        prepared.stderr(match &stderr {
            StderrSink::Inherit => Stdio::inherit(),
            StderrSink::Null => Stdio::null(),
            StderrSink::Lines(_) => Stdio::piped(),
        });
        if let Some(folder) = cwd {
            prepared.current_dir(folder);
        }
        let failed = |source| ConnectError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source,
        };
        let mut child = prepared.spawn().map_err(failed)?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let (lines, queue) = mpsc::channel(QUEUE);
        if let Some(stdin) = child.stdin.take() {
            tasks.spawn(write(stdin, queue, stop.clone()));
        }
        let mut readers = child::ChildReaderTasks::default();
        if let Some(stdout) = child.stdout.take() {
            let router = router.clone();
            let each = move |line: SplitLine<'_>| match line {
                SplitLine::Line(line) => router.receive(line),
                SplitLine::TooLong(head) => {
                    router.receive_damaged(head, format!("it is longer than {line_limit} bytes"));
                }
            };
            readers.stdout = Some(tasks.spawn(read(stdout, line_limit, each)));
        }
        if let (Some(pipe), StderrSink::Lines(hear)) = (child.stderr.take(), stderr) {
            let each = move |line: SplitLine<'_>| match line {
                SplitLine::Line(line) | SplitLine::TooLong(line) => {
                    hear(&String::from_utf8_lossy(line));
                }
            };
            readers.stderr = Some(tasks.spawn(read(pipe, STDERR_LINE, each)));
        }
        tasks.spawn(child::mind(child, readers, stop.clone(), router));
        Ok(Self { lines, stop, tasks })
    }
}

/// Writes lines until the queue ends, the child stops reading, or `stop` is cancelled; then stdin is closed.
async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Bytes>, stop: CancellationToken) {
    let mut lines = Vec::new();
    let mut text = Vec::new();
    loop {
        let received = tokio::select! {
            biased;
            count = queue.recv_many(&mut lines, QUEUE) => count,
            () = stop.cancelled() => 0,
        };
        if received == 0 {
            return;
        }
        text.clear();
        for line in lines.drain(..) {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        let written = tokio::select! {
            written = stdin.write_all(&text) => written.is_ok(),
            // A child that stopped reading must not block this task for ever.
            () = stopped_for(&stop, child::TERM_AFTER) => false,
        };
        if !written {
            return;
        }
    }
}

async fn stopped_for(stop: &CancellationToken, time: std::time::Duration) {
    stop.cancelled().await;
    tokio::time::sleep(time).await;
}

/// Reads lines until the pipe ends.
async fn read(mut pipe: impl AsyncRead + Unpin, limit: usize, mut each: impl FnMut(SplitLine<'_>)) {
    let mut splitter = LineSplitter::new(limit);
    let mut buffer = bytes::BytesMut::with_capacity(READ);
    loop {
        buffer.clear();
        buffer.reserve(READ);
        match pipe.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => splitter.feed(&buffer, &mut each),
        }
    }
    splitter.finish(&mut each);
}

/// Waits for a future with a time limit.
async fn within<F: Future>(time: std::time::Duration, future: F) -> Option<F::Output> {
    timeout(time, future).await.ok()
}
