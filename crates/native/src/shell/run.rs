//! A process from its start to its end, for callers that wait: its output into the log and out as events, its input
//! fed, and the whole tree ended at the deadline, at a cancel, or when the command itself is done.

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

/// How long a process that was told to stop may tidy up. The host drops a tool two seconds after its deadline, and the
/// output is still to be told then.
const GRACE: Duration = Duration::from_millis(700);
/// How long output is awaited after the command itself is done: a child of it may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(250);
/// Read at once.
const CHUNK: usize = 64 * 1024;
/// Output that nobody keeps is read at this pace, so that a flood does not take a core of the host.
const PACE: (usize, Duration) = (512 * 1024, Duration::from_millis(4));

/// Why a process was ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessStopReason {
    /// The time its caller gave it was over.
    OutOfTime,
    /// The host said so: the call's deadline passed, or it was canceled.
    ByHost,
}

/// How a run ended.
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
    /// Starts what `child` makes of the call's environment and of the confines of its profile.
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

    /// The run that came to this end.
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

/// Runs to the end. Nothing of the process is left afterwards; if this future is dropped, nothing is left either.
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
    // Nobody holds the pipes any more, so what is left in them is there now.
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

/// What comes first: the command's own end, or somebody's wish that it end.
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

/// Output and input on their way, while something else is awaited.
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

/// Carries everything until the pipes are closed.
async fn carry(streams: Vec<ProcessOutputPipe<'_>>, input: Option<(Sender, Vec<u8>)>) {
    let feeding = async {
        if let Some((mut pipe, bytes)) = input {
            // A command need not read what it is given.
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

/// Reads until nobody can write any more. What comes faster than it can be kept is dropped by the log, never waited
/// for.
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
