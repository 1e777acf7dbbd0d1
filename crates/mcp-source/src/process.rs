//! The program of an MCP server. The launcher starts it, its standard error goes to the operator, and its end takes
//! all processes that it started with it.

use std::{ffi::OsString, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::{Receiver, Sender},
    sync::{mpsc, watch},
    time::timeout,
};
use toolpost_model::{AppliedSandbox, ErrorClass, ResourceAccess, ToolFailure};
use toolpost_processes::{ChildProcessSpec, Children, PathGuards, ProgramSight};
use toolpost_sandbox::{
    CommandExit, PRIVATE_TMP, SandboxRoot, SandboxedProcess, StderrTarget, Stdin,
};

use super::{McpProgram, clean, desk::McpMessageRouter};

/// How long a program may take to end once its input is closed.
const LAST_MOMENT: Duration = Duration::from_secs(2);
/// How long its remaining output is awaited after its end.
const DRAIN: Duration = Duration::from_millis(200);
/// How much of its standard error the report of its end repeats.
const LAST_WORDS: usize = 2000;
/// The longest line of standard error that is logged.
const LINE: usize = 2000;

pub(super) struct Program {
    applied: AppliedSandbox,
    end: mpsc::UnboundedSender<Duration>,
    gone: watch::Receiver<Option<Arc<str>>>,
}

impl Program {
    /// Starts it with the paths of `guards` hidden. Its end also ends the connection.
    pub(super) async fn start(
        program: &McpProgram,
        children: &Children,
        guards: &PathGuards,
        desk: &Arc<McpMessageRouter>,
    ) -> Result<(Self, Receiver, Sender), ToolFailure> {
        if let Some(hidden) = program.named_files().find(|path| guards.hides(path)) {
            return Err(hidden_program(hidden));
        }
        let sight = sight(program, children)?;
        let mut process = children
            .start(child(program, children, &sight, guards))
            .await?;
        let (Some(reading), Some(writing)) = (process.take_stdout(), process.take_stdin()) else {
            return Err(ToolFailure::of(
                ErrorClass::DependencyUnavailable,
                "the program has no pipes",
            )
            .untouched());
        };
        let applied = process.applied().clone();
        let (end, ending) = mpsc::unbounded_channel();
        let (ended, gone) = watch::channel(None);
        tokio::spawn(keep(process, Arc::clone(desk), ending, ended));
        Ok((Self { applied, end, gone }, reading, writing))
    }

    /// The sandbox that confines it.
    pub(super) fn applied(&self) -> &AppliedSandbox {
        &self.applied
    }

    /// Ends it and all processes that it started, with this much time to clean up. Returns the report of the end when
    /// that is done.
    pub(super) async fn end(&self, patience: Duration) -> Option<Arc<str>> {
        let _ = self.end.send(patience);
        self.ended().await
    }

    /// Waits for its end, and returns the report of it.
    pub(super) async fn ended(&self) -> Option<Arc<str>> {
        let mut gone = self.gone.clone();
        gone.wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|gone| gone.clone())
    }
}

/// The paths that the program sees beside the system's own directories.
pub(super) fn sight(
    program: &McpProgram,
    children: &Children,
) -> Result<ProgramSight, ToolFailure> {
    let mut sight = match &program.reads {
        None => children.whole_sight(),
        Some(only) => children.narrow_sight(only).map_err(|outside| {
            let message = format!("`{}` in `reads` is outside the roots", outside.display());
            ToolFailure::of(ErrorClass::SetupRequired, message).untouched()
        })?,
    };
    sight.readable.extend(program.readable.iter().cloned());
    let writable = program.writable.iter().map(|path| SandboxRoot {
        path: path.clone(),
        access: ResourceAccess::Write,
    });
    sight.roots.extend(writable);
    // The program and the scripts of its command line must be readable, wherever they are. A file inside a root is
    // readable already; listed here too, it would no longer be writable.
    for path in program.named_files() {
        let outside = |path: &Path| !sight.roots.iter().any(|root| path.starts_with(&root.path));
        let found = [Some(path.to_owned()), path.canonicalize().ok()];
        let found: Vec<_> = found
            .into_iter()
            .flatten()
            .filter(|path| outside(path))
            .collect();
        sight.readable.extend(found);
    }
    Ok(sight)
}

fn hidden_program(path: &Path) -> ToolFailure {
    let message = format!(
        "rules keep `{}` from its callers, and the server's command line names that file",
        path.display()
    );
    ToolFailure::of(ErrorClass::SetupRequired, message)
        .code("kept_by_rule")
        .hint("move the file to a folder that no rule keeps, or narrow the rule")
        .untouched()
}

fn child(
    program: &McpProgram,
    children: &Children,
    sight: &ProgramSight,
    guards: &PathGuards,
) -> ChildProcessSpec {
    let mut argv: Vec<OsString> = vec![program.command.clone().into()];
    argv.extend(program.args.iter().map(OsString::from));
    // The operator set these values for this very program, so no name is refused.
    let mut environment = children.settings().environment.with([]).unwrap_or_default();
    environment.retain(|(name, _)| !program.environment.contains_key(&*name.to_string_lossy()));
    let own = program.environment.iter();
    environment.extend(own.map(|(name, value)| (name.into(), value.reveal().into())));
    let confines = children.program_confines(program.profile, sight, guards);
    let workspace = children.workspace().path();
    // If the program sees no part of the workspace, the workspace folder does not exist in its sandbox and cannot be
    // the working directory.
    let is_there = program.reads.is_none()
        || sight
            .roots
            .iter()
            .any(|root| root.path.starts_with(workspace));
    let usual = || {
        if is_there {
            workspace.to_owned()
        } else {
            PRIVATE_TMP.into()
        }
    };
    let directory = program.directory.clone().unwrap_or_else(usual);
    ChildProcessSpec {
        argv,
        environment,
        directory,
        stdin: Stdin::Piped,
        stderr: StderrTarget::Piped,
        confines,
    }
}

/// Keeps a process until its end.
async fn keep(
    mut process: SandboxedProcess,
    desk: Arc<McpMessageRouter>,
    mut ending: mpsc::UnboundedReceiver<Duration>,
    gone: watch::Sender<Option<Arc<str>>>,
) {
    let words = Mutex::new(Vec::new());
    let stderr = process.take_stderr();
    let mut heard = std::pin::pin!(hear(stderr, &desk, &words));
    let mut silent = false;
    let ended = loop {
        tokio::select! {
            () = &mut heard, if !silent => silent = true,
            ended = process.wait() => break Some(ended),
            // The connection is over: the host closed it, the program closed its output, or the server broke a limit.
            () = desk.fell_silent() => {
                let patience = if desk.is_closing() { LAST_MOMENT } else { DRAIN };
                break timeout(patience, process.wait()).await.ok();
            }
            patience = ending.recv() => {
                let patience = patience.unwrap_or_default();
                break timeout(patience, process.wait()).await.ok();
            }
        }
    };
    // This also ends the processes that the program left running.
    let killed = process.kill().await;
    if !silent {
        let _ = timeout(DRAIN, heard).await;
    }
    let told = how(ended, killed, &String::from_utf8_lossy(&words.lock()));
    desk.end(&told);
    let _ = gone.send(Some(told.into()));
}

/// Logs standard error for the operator, and keeps its end for the report.
async fn hear(stderr: Option<Receiver>, desk: &McpMessageRouter, words: &Mutex<Vec<u8>>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = vec![0; 8 << 10];
    let mut line = Vec::new();
    while let Some(length) = stderr
        .read(&mut buffer)
        .await
        .ok()
        .filter(|length| *length > 0)
    {
        let bytes = &buffer[..length];
        let mut kept = words.lock();
        kept.extend_from_slice(bytes);
        let over = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..over);
        drop(kept);
        for byte in bytes {
            match byte {
                b'\n' => tell(desk, &mut line),
                _ if line.len() < LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    tell(desk, &mut line);
}

fn tell(desk: &McpMessageRouter, line: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(&std::mem::take(line)).into_owned();
    if !text.trim().is_empty() {
        desk.line(clean::line(&text, LINE));
    }
}

fn how(ended: Option<CommandExit>, killed: CommandExit, words: &str) -> String {
    let told = match ended {
        None => "the host ended the program".to_owned(),
        Some(_) if killed.out_of_memory => "the program ran out of memory".to_owned(),
        Some(CommandExit {
            code: Some(code), ..
        }) => format!("the program ended with exit code {code}"),
        Some(CommandExit {
            signal: Some(signal),
            ..
        }) => format!("the program was ended by signal {signal}"),
        Some(_) => "the program ended".to_owned(),
    };
    let words = clean::stripped(words.trim());
    match words.is_empty() {
        true => told,
        false => format!("{told}; its last output:\n{words}"),
    }
}
