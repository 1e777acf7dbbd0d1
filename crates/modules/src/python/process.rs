//! One bridge process: its start by the launcher, its orders over the socket, its output on the pipes, and its end.

mod ears;
mod start;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot, watch};
use toolpost_model::{AppliedSandbox, CallContext, ErrorClass, ToolFailure};
use toolpost_sandbox::CommandExit;

use super::{
    CoreInUse,
    protocol::{BridgeFailureReply, BridgeLineTag, BridgeOrder, NumberedBridgeOrder},
};

pub(super) use ears::BridgeNotice;
pub(super) use start::{BridgeProcessTemplate, NotStarted};

/// A bridge process. Dropping it asks the process to clean up, and then ends it with all its children.
pub(super) struct BridgeProcess {
    pub(super) core: CoreInUse,
    pub(super) applied: AppliedSandbox,
    desk: Arc<BridgeRequestRegistry>,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    end: mpsc::UnboundedSender<String>,
    gone: watch::Receiver<Option<Arc<BridgeExit>>>,
    /// A call has succeeded since the start, so a restart needs no pause.
    proven: Arc<AtomicBool>,
}

/// The end of a process, for the code that starts the next one.
pub(super) struct BridgeExitWatch {
    gone: watch::Receiver<Option<Arc<BridgeExit>>>,
    proven: Arc<AtomicBool>,
}

/// The kind of an end, which decides about the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BridgeExitKind {
    /// It ended before any work.
    InVain,
    /// It had done some work.
    Proven,
    /// The host ended it.
    Unwanted,
}

impl BridgeExitWatch {
    /// The kind of its end, if it has ended.
    pub(super) fn ending(&self) -> Option<BridgeExitKind> {
        let gone = self.gone.borrow().clone()?;
        Some(match (gone.unwanted, self.proven.load(Ordering::Relaxed)) {
            (true, _) => BridgeExitKind::Unwanted,
            (false, true) => BridgeExitKind::Proven,
            (false, false) => BridgeExitKind::InVain,
        })
    }
}

/// The requests that wait for an answer.
#[derive(Default)]
pub(super) struct BridgeRequestRegistry {
    numbers: AtomicU64,
    waiting: Mutex<HashMap<u64, BridgeAnswerWaiter>>,
    /// The plan places of the modules in progress, by mount.
    mounting: Mutex<HashMap<u64, BTreeSet<usize>>>,
    /// The mounts of this process. Messages about any other mount are ignored: it belongs to another session.
    mounts: Mutex<HashSet<u64>>,
}

struct BridgeAnswerWaiter {
    answer: oneshot::Sender<Result<Vec<u8>, Arc<BridgeExit>>>,
    /// For a call: the receiver of its events.
    call: Option<Arc<ears::CallSide>>,
}

/// The end of a process.
#[derive(Debug)]
pub(super) struct BridgeExit {
    pub(super) ended: Option<CommandExit>,
    /// Why the host ended it, if it did.
    pub(super) because: Option<String>,
    /// The host ended the process because it was no longer needed.
    pub(super) unwanted: bool,
    /// The tail of its standard error.
    pub(super) last_words: String,
}

/// Why a request has no usable answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The bridge reported a failure.
    Failed(BridgeFailureReply),
    Gone(Arc<BridgeExit>),
    /// The answer could not be parsed.
    Unreadable(String),
}

pub(super) struct PendingBridgeAnswer {
    pub(super) id: u64,
    answer: oneshot::Receiver<Result<Vec<u8>, Arc<BridgeExit>>>,
}

impl BridgeProcess {
    /// Sends an order without an answer.
    pub(super) fn tell(&self, order: BridgeOrder<'_>) {
        self.send(None, order);
    }

    pub(super) fn request(&self, order: BridgeOrder<'_>) -> PendingBridgeAnswer {
        self.send_request(order, None)
    }

    /// Sends a call; its events go to the call's context.
    pub(super) fn call(
        &self,
        order: BridgeOrder<'_>,
        context: &CallContext,
    ) -> PendingBridgeAnswer {
        self.send_request(order, Some(Arc::new(ears::CallSide::new(context.clone()))))
    }

    fn send_request(
        &self,
        order: BridgeOrder<'_>,
        call: Option<Arc<ears::CallSide>>,
    ) -> PendingBridgeAnswer {
        let id = self.desk.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        self.desk.waiting.lock().insert(
            id,
            BridgeAnswerWaiter {
                answer: sender,
                call,
            },
        );
        self.send(Some(id), order);
        // The process may have ended before this request was registered, and then no reader would fail it.
        if let Some(gone) = self.gone() {
            self.desk.fail(&gone);
        }
        PendingBridgeAnswer { id, answer }
    }

    /// Cancels a request; its answer still comes.
    pub(super) fn cancel(&self, id: u64) {
        self.send(Some(id), BridgeOrder::Cancel);
    }

    fn send(&self, id: Option<u64>, order: BridgeOrder<'_>) {
        // Serializing plain data cannot fail.
        let mut line = serde_json::to_vec(&NumberedBridgeOrder { id, order }).unwrap_or_default();
        line.push(b'\n');
        let _ = self.orders.send(line);
    }

    /// A request and its answer, read.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        order: BridgeOrder<'_>,
    ) -> Result<T, NoAnswer> {
        read(&self.request(order).line().await?)
    }

    /// Records a success, so that the next start needs no pause.
    pub(super) fn works(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    /// A watch on its end.
    pub(super) fn life(&self) -> BridgeExitWatch {
        BridgeExitWatch {
            gone: self.gone.clone(),
            proven: Arc::clone(&self.proven),
        }
    }

    /// Registers a mount before it is requested.
    pub(super) fn begin_mount(&self, mount: u64) {
        self.desk.mounts.lock().insert(mount);
    }

    /// Ignores further messages about this mount.
    pub(super) fn end_mount(&self, mount: u64) {
        self.desk.mounts.lock().remove(&mount);
    }

    /// Ends a mount attempt; returns the plan places of the modules in progress.
    pub(super) fn mounted(&self, mount: u64) -> BTreeSet<usize> {
        self.desk.mounting.lock().remove(&mount).unwrap_or_default()
    }

    /// Its end, if it has ended.
    pub(super) fn gone(&self) -> Option<Arc<BridgeExit>> {
        self.gone.borrow().clone()
    }

    /// Ends it and all its children; returns when that is done.
    pub(super) async fn kill(&self, because: String) {
        let _ = self.end.send(because);
        let mut gone = self.gone.clone();
        let _ = gone.wait_for(Option::is_some).await;
    }
}

impl PendingBridgeAnswer {
    /// The raw answer. Dropping this future loses nothing.
    pub(super) async fn line(&mut self) -> Result<Vec<u8>, NoAnswer> {
        match (&mut self.answer).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(gone)) => Err(NoAnswer::Gone(gone)),
            Err(_) => Err(NoAnswer::Unreadable("the request was dropped".to_owned())),
        }
    }
}

/// Parses an answer as the expected type.
pub(super) fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, NoAnswer> {
    let unreadable = |error: serde_json::Error| NoAnswer::Unreadable(error.to_string());
    let tag: BridgeLineTag = serde_json::from_slice(line).map_err(unreadable)?;
    if tag.kind == "failure" {
        return Err(NoAnswer::Failed(
            serde_json::from_slice(line).map_err(unreadable)?,
        ));
    }
    serde_json::from_slice(line).map_err(unreadable)
}

impl BridgeRequestRegistry {
    /// Fails all waiting requests.
    fn fail(&self, gone: &Arc<BridgeExit>) {
        for (_, waiter) in self.waiting.lock().drain() {
            let _ = waiter.answer.send(Err(Arc::clone(gone)));
        }
    }

    /// The call that these events belong to.
    fn call(&self, id: u64) -> Option<Arc<ears::CallSide>> {
        self.waiting
            .lock()
            .get(&id)
            .and_then(|waiter| waiter.call.clone())
    }

    /// The running call, if there is exactly one.
    fn only_call(&self) -> Option<Arc<ears::CallSide>> {
        let waiting = self.waiting.lock();
        let mut calls = waiting.values().filter_map(|waiter| waiter.call.as_ref());
        calls.next().filter(|_| calls.next().is_none()).cloned()
    }
}

impl BridgeExit {
    /// As a message.
    pub(super) fn told(&self) -> String {
        if let Some(because) = &self.because {
            return format!("the process of the Python modules was ended: {because}");
        }
        let how = match self.ended {
            Some(CommandExit {
                out_of_memory: true,
                ..
            }) => "out of memory".to_owned(),
            Some(CommandExit {
                code: Some(code), ..
            }) => format!("exit code {code}"),
            Some(CommandExit {
                signal: Some(signal),
                ..
            }) => format!("signal {signal}"),
            Some(CommandExit { .. }) | None => "cause unknown".to_owned(),
        };
        let words = self.last_words.trim();
        let words = if words.is_empty() {
            String::new()
        } else {
            format!("; its last output:\n{words}")
        };
        format!("the process of the Python modules ended: {how}{words}")
    }
}

impl NoAnswer {
    /// As the failure of a call that may have had effects.
    pub(super) fn into_failure(self) -> ToolFailure {
        match self {
            Self::Gone(gone) => ToolFailure::new(gone.told()).code("module_process_ended").hint(
                "check the effects of this call before you repeat it; the next call starts a new process",
            ),
            Self::Unreadable(why) => {
                ToolFailure::new(format!("the answer of the module cannot be read: {why}"))
            }
            Self::Failed(failure) => failed(failure),
        }
    }
}

fn failed(failure: BridgeFailureReply) -> ToolFailure {
    let BridgeFailureReply {
        code,
        message,
        traceback,
    } = failure;
    let told = match code.as_str() {
        "raised" => ToolFailure::new(message).code("raised"),
        "canceled" => ToolFailure::of(ErrorClass::Canceled, message),
        "invalid_message" => ToolFailure::of(ErrorClass::SchemaValidationFailed, message)
            .code("invalid_message")
            .untouched(),
        "too_large" => ToolFailure::of(ErrorClass::ResultTooLarge, message),
        "unknown_tool" => ToolFailure::of(ErrorClass::DependencyUnavailable, message).untouched(),
        _ => ToolFailure::new(message).code("bridge_failed"),
    };
    match traceback {
        Some(trace) => ToolFailure {
            details: Some(serde_json::json!({ "traceback": trace })),
            ..told
        },
        None => told,
    }
}
