//! A process that outlives its call, or the rest of one that ended.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::unix::pipe::{Receiver, Sender},
    sync::{Mutex, Notify, watch},
    task::AbortHandle,
    time::timeout,
};
use toolpost_model::{AppliedSandbox, CallContext, Principal};
use toolpost_processes::{NameWatch, ProtectedPath};
use toolpost_sandbox::{CommandExit, SandboxedProcess};

use super::ProcessPlace;
use crate::shell::{log::OutputLog, run::pump};

/// How long a process may take to end after a request to stop.
const GRACE: Duration = Duration::from_secs(3);
/// How long to read output after the last process is gone.
const DRAIN: Duration = Duration::from_millis(500);

/// A process that later calls can use.
pub(crate) struct ProcessEntry {
    pub(crate) id: String,
    pub(crate) origin: ProcessOrigin,
    /// The caller who started it.
    pub(crate) principal: Principal,
    pub(crate) log: Arc<OutputLog>,
    pub(crate) sandbox: AppliedSandbox,
    watch: Option<Arc<NameWatch>>,
    began: Instant,
    state: watch::Receiver<ProcessState>,
    stdin: Mutex<Option<Sender>>,
    stop: Arc<ProcessStopSignals>,
    /// Ends the task that holds the process, and with it the whole process tree.
    task: Option<AbortHandle>,
}

/// The request that started it.
#[derive(Clone, Debug)]
pub(crate) struct ProcessOrigin {
    pub(crate) command: String,
    pub(crate) description: Option<String>,
}

/// The state of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProcessState {
    Running,
    /// No process of it is left: everything that a command started ends with it.
    Ended(CommandExit, Duration),
}

#[derive(Default)]
struct ProcessStopSignals {
    gently: Notify,
    at_once: Notify,
}

impl ProcessEntry {
    /// Takes over a process: a task watches it until it ends, its `lifetime` is over, or this entry is dropped.
    pub(crate) fn tend(
        context: &CallContext,
        origin: ProcessOrigin,
        (mut process, watch): (SandboxedProcess, Option<NameWatch>),
        log: Arc<OutputLog>,
        lifetime: Duration,
        place: ProcessPlace,
    ) -> Arc<Self> {
        let (state, watched) = watch::channel(ProcessState::Running);
        let stop = Arc::<ProcessStopSignals>::default();
        let began = Instant::now();
        let sandbox = process.applied().clone();
        let stdin = Mutex::new(process.take_stdin());
        let output = process.take_stdout();
        let watch = watch.map(Arc::new);
        let told = (state, watch.clone());
        let tending = tend(
            process,
            output,
            Arc::clone(&log),
            Arc::clone(&stop),
            told,
            (began, lifetime),
        );
        // The slot is given back when no process is left, in whichever way it ended.
        let tending = async move {
            tending.await;
            drop(place);
        };
        let task = Some(tokio::spawn(tending).abort_handle());
        Arc::new(Self {
            id: new_id(context),
            origin,
            principal: context.principal().clone(),
            log,
            sandbox,
            watch,
            began,
            state: watched,
            stdin,
            stop,
            task,
        })
    }

    /// The rest of a finished run.
    pub(crate) fn ended(
        context: &CallContext,
        origin: ProcessOrigin,
        log: Arc<OutputLog>,
        sandbox: AppliedSandbox,
        (ended, duration): (CommandExit, Duration),
    ) -> Arc<Self> {
        let (_, state) = watch::channel(ProcessState::Ended(ended, duration));
        let stdin = Mutex::new(None);
        let stop = Arc::default();
        Arc::new(Self {
            id: new_id(context),
            origin,
            principal: context.principal().clone(),
            log,
            sandbox,
            watch: None,
            began: Instant::now(),
            state,
            stdin,
            stop,
            task: None,
        })
    }

    pub(crate) fn state(&self) -> ProcessState {
        *self.state.borrow()
    }

    /// Protected names that were created between its start and its end.
    pub(crate) fn created(&self) -> Vec<ProtectedPath> {
        self.watch
            .as_ref()
            .map(|watch| watch.created())
            .unwrap_or_default()
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Whether a part of it may still run.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state(), ProcessState::Running)
    }

    /// How long it has run, or ran.
    pub(crate) fn duration(&self) -> Duration {
        match self.state() {
            ProcessState::Running => self.began.elapsed(),
            ProcessState::Ended(_, duration) => duration,
        }
    }

    /// Waits until no process of it is left.
    pub(crate) async fn gone(&self) {
        // The sender is dropped after the last state was sent, or with the host.
        let _ = self
            .state
            .clone()
            .wait_for(|state| matches!(state, ProcessState::Ended(..)))
            .await;
    }

    /// Asks it to end, and kills it if it does not.
    pub(crate) fn terminate(&self) {
        self.stop.gently.notify_one();
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        self.stop.at_once.notify_one();
    }

    /// Drops the process, even if other references to this entry exist: the process tree ends with the task that holds
    /// it.
    pub(crate) fn abandon(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }

    /// Its standard input, until that is closed.
    pub(crate) fn stdin(&self) -> &Mutex<Option<Sender>> {
        &self.stdin
    }
}

impl Drop for ProcessEntry {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// From the random half of the call's id: unique, and short enough for a model to copy.
fn new_id(context: &CallContext) -> String {
    format!("p{}", &context.invocation_id().to_hex()[20..])
}

/// Holds the process until no process of it is left.
async fn tend(
    mut process: SandboxedProcess,
    output: Option<Receiver>,
    log: Arc<OutputLog>,
    stop: Arc<ProcessStopSignals>,
    (state, names): (watch::Sender<ProcessState>, Option<Arc<NameWatch>>),
    (began, lifetime): (Instant, Duration),
) {
    let flow = async {
        if let Some(output) = output {
            pump(output, &log, None).await;
        }
    };
    let mut flow = pin!(flow);
    let mut flowing = true;
    let mut told_gently = false;
    let mut patience = pin!(tokio::time::sleep(GRACE));
    let mut age = pin!(tokio::time::sleep(lifetime));
    let mut young = true;
    loop {
        tokio::select! {
            _ = process.wait() => break,
            () = &mut flow, if flowing => flowing = false,
            () = stop.gently.notified() => {
                process.terminate();
                told_gently = true;
                patience.set(tokio::time::sleep(GRACE));
            }
            // The lifetime ends processes that their caller forgot, because not every session is closed.
            () = &mut age, if young => {
                young = false;
                stop.gently.notify_one();
            }
            () = stop.at_once.notified() => break,
            () = &mut patience, if told_gently => break,
        }
    }
    let ended = process.kill().await;
    if flowing {
        let _ = timeout(DRAIN, flow).await;
    }
    if let Some(names) = names {
        names.end();
    }
    state.send_replace(ProcessState::Ended(ended, began.elapsed()));
}
