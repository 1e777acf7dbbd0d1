//! Runs a process to its end for a call that waits: its output goes to the log and to events, its input is written, and
//! the whole process tree ends at the deadline, at a cancellation, or when the command itself is done.

use std::{
    ffi::OsString,
    future::Future,
    path::Path,
    pin::{Pin, pin},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe::{Receiver, Sender},
    time::{sleep, sleep_until, timeout, timeout_at},
};
use toolpost_model::{CallContext, SandboxProfile, ToolFailure};
use toolpost_processes::{ChildProcessSpec, Children, NameWatch, OutputEvents, created_paths};
use toolpost_sandbox::{CommandExit, Confines, SandboxedProcess};

use super::{log::OutputLog, report::FinishedProcessRun};

/// How long a process may take to end after a request to stop. The host drops a tool two seconds after its deadline,
/// and the output must be reported before that.
const GRACE: Duration = Duration::from_millis(700);
/// How long to read output after the command itself has ended. A child of it may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(250);
/// The size of one read.
const CHUNK: usize = 64 * 1024;
/// Output that is not stored is read at this rate, so that a flood does not take a core of the host.
const PACE: (usize, Duration) = (512 * 1024, Duration::from_millis(4));

/// Why a process was ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessStopReason {
    /// The caller's time limit was over.
    OutOfTime,
    /// The host stopped the call: its deadline passed, or it was canceled.
    ByHost,
}

/// The end of a run.
pub(crate) struct RunEnd {
    pub(crate) ended: CommandExit,
    pub(crate) stopped: Option<ProcessStopReason>,
    pub(crate) duration: Duration,
}

/// One stream of a process.
pub(crate) struct ProcessOutputPipe<'l> {
    pub(crate) pipe: Option<Receiver>,
    pub(crate) log: &'l OutputLog,
    pub(crate) events: Option<OutputEvents>,
}

/// A process that was started for a call.
pub(crate) struct StartedProcess {
    pub(crate) process: SandboxedProcess,
    pub(crate) confines: Confines,
    pub(crate) watch: Option<NameWatch>,
}

impl StartedProcess {
    /// Starts the process that `child` builds from the call's environment and the confines of its profile.
    pub(crate) async fn start<'a>(
        children: &Children,
        profile: SandboxProfile,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
        context: &CallContext,
        child: impl FnOnce(Vec<(OsString, OsString)>, Confines) -> ChildProcessSpec,
    ) -> Result<Self, ToolFailure> {
        let environment = &children.settings().environment;
        let environment = environment
            .for_call(context, variables)
            .map_err(|refusal| ToolFailure::invalid(refusal.to_string()))?;
        let confines = children.confines(profile, context).await?;
        let watch = children.watch_names(confines.profile);
        let process = children.start(child(environment, confines.clone())).await?;
        Ok(Self {
            process,
            confines,
            watch,
        })
    }

    /// The run with this end.
    pub(crate) fn finish<'r>(
        &'r mut self,
        directory: &'r Path,
        end: RunEnd,
        log: Arc<OutputLog>,
    ) -> FinishedProcessRun<'r> {
        let created = self.watch.as_ref().map(NameWatch::end).unwrap_or_default();
        self.process.note_protected_created(created_paths(created));
        FinishedProcessRun {
            process: &self.process,
            confines: &self.confines,
            directory,
            end,
            log,
            created,
        }
    }
}

/// Runs the process to its end, and kills all its remaining processes. Dropping this future kills them, too.
///
/// Output is read all the time, also while the process is being stopped. A process that handles its stop signal may
/// print more than a pipe holds; if the host did not read, the process would block in that write, and the kill would
/// cut off its last lines.
pub(crate) async fn run_to_end(
    process: &mut SandboxedProcess,
    streams: Vec<ProcessOutputPipe<'_>>,
    input: Option<(Sender, Vec<u8>)>,
    until: Instant,
    context: &CallContext,
) -> RunEnd {
    let began = Instant::now();
    let mut flow = OutputFlow {
        work: pin!(carry(streams, input)),
        is_over: false,
    };
    let (ended, stopped) = match flow.beside(first(process, until, context)).await {
        FirstRunEvent::Ended(ended) => {
            let _ = timeout(DRAIN, flow.finish()).await;
            flow.beside(process.kill()).await;
            (ended, None)
        }
        FirstRunEvent::Stop(stopped) => {
            process.terminate();
            let _ = flow.beside(timeout(GRACE, process.wait())).await;
            (flow.beside(process.kill()).await, Some(stopped))
        }
    };
    // No process holds the pipes any more, so the rest of the output is there now.
    let _ = timeout(DRAIN, flow.finish()).await;
    RunEnd {
        ended,
        stopped,
        duration: began.elapsed(),
    }
}

enum FirstRunEvent {
    Ended(CommandExit),
    Stop(ProcessStopReason),
}

/// Waits for the first of these: the end of the command, a cancellation, or the end of the time limit.
async fn first(
    process: &mut SandboxedProcess,
    until: Instant,
    context: &CallContext,
) -> FirstRunEvent {
    tokio::select! {
        biased;
        () = context.canceled() => FirstRunEvent::Stop(ProcessStopReason::ByHost),
        ended = process.wait() => FirstRunEvent::Ended(ended),
        () = sleep_until(until.into()) => FirstRunEvent::Stop(ProcessStopReason::OutOfTime),
    }
}

/// Output and input in progress while another future is awaited.
struct OutputFlow<'w, W> {
    work: Pin<&'w mut W>,
    is_over: bool,
}

impl<W: Future<Output = ()>> OutputFlow<'_, W> {
    async fn beside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                biased;
                done = &mut other => return done,
                () = self.work.as_mut(), if !self.is_over => self.is_over = true,
            }
        }
    }

    async fn finish(&mut self) {
        if !self.is_over {
            self.work.as_mut().await;
            self.is_over = true;
        }
    }
}

/// Reads and writes until the pipes are closed.
async fn carry(streams: Vec<ProcessOutputPipe<'_>>, input: Option<(Sender, Vec<u8>)>) {
    let feeding = async {
        if let Some((mut pipe, bytes)) = input {
            // A command need not read its input.
            let _ = pipe.write_all(&bytes).await;
        }
    };
    let mut streams = streams.into_iter();
    let first = streams.next();
    let second = streams.next();
    tokio::join!(feeding, carry_stream(first), carry_stream(second));
}

async fn carry_stream(stream: Option<ProcessOutputPipe<'_>>) {
    if let Some(ProcessOutputPipe {
        pipe: Some(pipe),
        log,
        events,
    }) = stream
    {
        pump(pipe, log, events).await;
    }
}

/// Reads until all writers have closed the pipe. The log drops output that arrives faster than it can be stored, so the
/// process never waits for it.
pub(crate) async fn pump(mut pipe: Receiver, log: &OutputLog, mut events: Option<OutputEvents>) {
    let mut buffer = vec![0; CHUNK];
    let mut unkept = 0;
    loop {
        let read = match events.as_ref().and_then(OutputEvents::due) {
            None => pipe.read(&mut buffer).await,
            Some(due) => match timeout_at(due.into(), pipe.read(&mut buffer)).await {
                Ok(read) => read,
                Err(_) => {
                    events.iter_mut().for_each(OutputEvents::send);
                    continue;
                }
            },
        };
        let Some(length) = read.ok().filter(|length| *length > 0) else {
            break;
        };
        log.append(&buffer[..length]).await;
        if let Some(events) = &mut events {
            events.add(&buffer[..length]);
        }
        unkept += if log.is_full() { length } else { 0 };
        if unkept >= PACE.0 {
            unkept = 0;
            sleep(PACE.1).await;
        }
    }
    events.iter_mut().for_each(OutputEvents::finish);
}
