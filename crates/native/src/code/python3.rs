//! `language: "python3"`: CPython in the sandbox of commands, with one process per run.
//!
//! The [prelude](PRELUDE) exchanges the worker's frames over a socket, which is the process's standard input, so that
//! code can call tools there, too. Printed output uses another pipe and cannot be taken for a frame. The code can find
//! the socket and write frames itself; that gives it nothing beyond the requests that it may send anyway.

use std::{os::unix::net::UnixStream as StdStream, time::Duration};

use tokio::{
    io::AsyncReadExt as _,
    net::{UnixStream, unix::pipe::Receiver},
    time::timeout,
};
use toolpost_model::{CallContext, EffectClass, Effects, InputRefusal, ToolFailure, ToolOutput};
use toolpost_processes::{ChildProcessSpec, Children, NameWatch, created_paths};
use toolpost_sandbox::{SandboxedProcess, StderrTarget, Stdin};

use super::{
    conversation::{CodeConversationError, CodeRunConversation, CodeWorkerConnection},
    frame::{CodeRunEnd, RunOrder},
    report::{self, CodeStopReason},
    run_code::CodeRunContext,
};

/// Tried first: a shim that chooses between versions takes longer than the whole run.
const USUAL_PLACE: &str = "/usr/bin/python3";
const PRELUDE: &str = include_str!("python3/prelude.py");

/// The effects of a run. The profile limits them, so they claim any effect.
pub(super) fn effects(children: &Children) -> Effects {
    children.effects(
        Effects::of(EffectClass::Execute),
        children.settings().profile,
    )
}

/// Refuses a run that could not start, before it is decided.
pub(super) fn check(children: &Children) -> Result<(), InputRefusal> {
    children.check(children.settings().profile)
}

/// Runs code in a process of its own.
pub(super) async fn run(
    children: &Children,
    mut order: RunOrder,
    mut talk: CodeRunConversation,
    run: CodeRunContext,
) -> Result<ToolOutput, ToolFailure> {
    order.functions = talk.calls.grants().names().map(str::to_owned).collect();
    let (mut process, mut wire, watch) = tokio::select! {
        started = start(children, &run.context) => started?,
        stop = run.over() => return Err(report::failed(&stop, &talk)),
    };
    let mut output = PythonOutputBuffer::new(process.take_stdout(), order.limits.printed_bytes);
    let ended = tokio::select! {
        ended = talk.run(&mut wire, order) => ended.map_err(PythonRunInterruption::Broken),
        () = output.collect_for_ever() => Err(PythonRunInterruption::Stopped(CodeStopReason::Canceled)),
        stop = run.over() => Err(PythonRunInterruption::Stopped(stop)),
    };
    let ended = match ended {
        Ok(ending) => {
            process.kill().await;
            Ok(ending)
        }
        Err(unfinished) => Err(stop_of(unfinished, &mut process).await),
    };
    // All writers have ended, so this terminates.
    output.collect().await;
    output.into_talk(&mut talk);
    let mut applied = process.applied().clone();
    applied.protected_created =
        created_paths(watch.as_ref().map(NameWatch::end).unwrap_or_default());
    finish(ended, talk, run.seconds())
        .map(|done| ToolOutput {
            sandbox: Some(Box::new(applied.clone())),
            ..done
        })
        .map_err(|failure| failure.confined(applied))
}

/// How long a process that closed its socket has to exit.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Why a run did not complete.
enum PythonRunInterruption {
    Broken(CodeConversationError),
    Stopped(CodeStopReason),
}

async fn stop_of(
    unfinished: PythonRunInterruption,
    process: &mut SandboxedProcess,
) -> CodeStopReason {
    match unfinished {
        // The process closed the socket: either it has ended, or it would go on without the host, which is not allowed.
        PythonRunInterruption::Broken(CodeConversationError::Gone) => {
            match timeout(LAST_MOMENT, process.wait()).await {
                Ok(ended) => CodeStopReason::Exited(ended),
                Err(_) => CodeStopReason::Exited(process.kill().await),
            }
        }
        PythonRunInterruption::Broken(broken) => {
            process.kill().await;
            CodeStopReason::Broken(broken)
        }
        PythonRunInterruption::Stopped(stop) => {
            process.kill().await;
            stop
        }
    }
}

fn finish(
    ended: Result<CodeRunEnd, CodeStopReason>,
    talk: CodeRunConversation,
    seconds: f64,
) -> Result<ToolOutput, ToolFailure> {
    match ended {
        Ok(ending) => report::ended(ending, talk, seconds),
        Err(stop) => Err(report::failed(&stop, &talk)),
    }
}

async fn start(
    children: &Children,
    context: &CallContext,
) -> Result<(SandboxedProcess, CodeWorkerConnection, Option<NameWatch>), ToolFailure> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let settings = children.settings();
    let confines = children.confines(settings.profile, context).await?;
    let python = if std::path::Path::new(USUAL_PLACE).exists() {
        USUAL_PLACE
    } else {
        "python3"
    };
    let watch = children.watch_names(confines.profile);
    let process = children
        .start(ChildProcessSpec {
            // Isolated mode: neither the environment nor the current directory decides which code runs.
            argv: [python, "-I", "-S", "-c", PRELUDE].map(Into::into).to_vec(),
            environment: settings.environment.for_call(context, [])?,
            directory: children.workspace().path().to_owned(),
            stdin: Stdin::Socket(theirs.into()),
            stderr: StderrTarget::WithStdout,
            confines,
        })
        .await?;
    Ok((
        process,
        CodeWorkerConnection::new(UnixStream::from_std(ours)?),
        watch,
    ))
}

/// The output of the process.
struct PythonOutputBuffer {
    stream: Option<Receiver>,
    kept: Vec<u8>,
    most: usize,
    dropped: u64,
}

impl PythonOutputBuffer {
    fn new(stream: Option<Receiver>, most: usize) -> Self {
        Self {
            stream,
            kept: Vec::new(),
            most,
            dropped: 0,
        }
    }

    /// Reads until all writers have ended. The future can be dropped and the method called again without a loss.
    async fn collect(&mut self) {
        let mut chunk = [0; 16 << 10];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => self.stream = None,
                Ok(count) => {
                    let fits = count.min(self.most - self.kept.len());
                    self.kept.extend_from_slice(&chunk[..fits]);
                    self.dropped += (count - fits) as u64;
                }
            }
        }
    }

    async fn collect_for_ever(&mut self) {
        self.collect().await;
        std::future::pending::<()>().await;
    }

    fn into_talk(self, talk: &mut CodeRunConversation) {
        talk.printed = String::from_utf8_lossy(&self.kept).into_owned();
        talk.unprinted = self.dropped;
    }
}
