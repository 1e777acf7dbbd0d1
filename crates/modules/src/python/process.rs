//! One bridge process: started by the launcher, talked with over its socket, heard on its pipes, and told of by its end.

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

/// A bridge process. Dropped, it is asked to clean up, and then ended with all it started.
pub(super) struct BridgeProcess {
    pub(super) core: CoreInUse,
    pub(super) applied: AppliedSandbox,
    desk: Arc<BridgeRequestRegistry>,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    end: mpsc::UnboundedSender<String>,
    gone: watch::Receiver<Option<Arc<BridgeExit>>>,
    /// A call went well since it started, so it is worth another start at once.
    proven: Arc<AtomicBool>,
}

/// A process, as whoever starts the next one remembers it.
pub(super) struct BridgeExitWatch {
    gone: watch::Receiver<Option<Arc<BridgeExit>>>,
    proven: Arc<AtomicBool>,
}

/// What an end means for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BridgeExitKind {
    /// It did nothing but end.
    InVain,
    /// It had done some work.
    Proven,
    /// The host wanted no more of it.
    Unwanted,
}

impl BridgeExitWatch {
    /// How it ended, if it did.
    pub(super) fn ending(&self) -> Option<BridgeExitKind> {
        let gone = self.gone.borrow().clone()?;
        Some(match (gone.unwanted, self.proven.load(Ordering::Relaxed)) {
            (true, _) => BridgeExitKind::Unwanted,
            (false, true) => BridgeExitKind::Proven,
            (false, false) => BridgeExitKind::InVain,
        })
    }
}

/// Who waits for what.
#[derive(Default)]
pub(super) struct BridgeRequestRegistry {
    numbers: AtomicU64,
    waiting: Mutex<HashMap<u64, BridgeAnswerWaiter>>,
    /// The places of the modules that are being mounted, by mount.
    mounting: Mutex<HashMap<u64, BTreeSet<usize>>>,
    /// The mounts that this process was told to make. What it says of any other is not heard: that is another session's.
    mounts: Mutex<HashSet<u64>>,
}

struct BridgeAnswerWaiter {
    answer: oneshot::Sender<Result<Vec<u8>, Arc<BridgeExit>>>,
    /// For a call: where its events go.
    call: Option<Arc<ears::CallSide>>,
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct BridgeExit {
    pub(super) ended: Option<CommandExit>,
    /// Why the host ended it, if it did.
    pub(super) because: Option<String>,
    /// Nobody had a use for it any more.
    pub(super) unwanted: bool,
    /// The last of what it wrote to standard error.
    pub(super) last_words: String,
}

/// Why a request has no answer that can be used.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The bridge said that it could not be done.
    Failed(BridgeFailureReply),
    /// The process is gone.
    Gone(Arc<BridgeExit>),
    /// What it said makes no sense.
    Unreadable(String),
}

/// An answer on its way.
pub(super) struct PendingBridgeAnswer {
    pub(super) id: u64,
    answer: oneshot::Receiver<Result<Vec<u8>, Arc<BridgeExit>>>,
}

impl BridgeProcess {
    /// Sends what nobody answers.
    pub(super) fn tell(&self, order: BridgeOrder<'_>) {
        self.send(None, order);
    }

    /// Sends a request.
    pub(super) fn request(&self, order: BridgeOrder<'_>) -> PendingBridgeAnswer {
        self.send_request(order, None)
    }

    /// Sends a call; what it does on its way is told to its context.
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
        // Whoever comes after the end finds nobody to answer.
        if let Some(gone) = self.gone() {
            self.desk.fail(&gone);
        }
        PendingBridgeAnswer { id, answer }
    }

    /// Tells a request to stop; its answer still comes.
    pub(super) fn cancel(&self, id: u64) {
        self.send(Some(id), BridgeOrder::Cancel);
    }

    fn send(&self, id: Option<u64>, order: BridgeOrder<'_>) {
        // Plain data cannot fail to be written.
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

    /// Notes that it does its work.
    pub(super) fn works(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    /// What is remembered of it.
    pub(super) fn life(&self) -> BridgeExitWatch {
        BridgeExitWatch {
            gone: self.gone.clone(),
            proven: Arc::clone(&self.proven),
        }
    }

    /// A mount is about to be asked for.
    pub(super) fn begin_mount(&self, mount: u64) {
        self.desk.mounts.lock().insert(mount);
    }

    /// Nothing that it says of this mount is heard any more.
    pub(super) fn end_mount(&self, mount: u64) {
        self.desk.mounts.lock().remove(&mount);
    }

    /// A mount was tried; gives back the places of the modules that were being mounted.
    pub(super) fn mounted(&self, mount: u64) -> BTreeSet<usize> {
        self.desk.mounting.lock().remove(&mount).unwrap_or_default()
    }

    /// How it ended, if it did.
    pub(super) fn gone(&self) -> Option<Arc<BridgeExit>> {
        self.gone.borrow().clone()
    }

    /// Ends it and everything it started; returns when that is done.
    pub(super) async fn kill(&self, because: String) {
        let _ = self.end.send(because);
        let mut gone = self.gone.clone();
        let _ = gone.wait_for(Option::is_some).await;
    }
}

impl PendingBridgeAnswer {
    /// The answer as it came. Can be given up and awaited again.
    pub(super) async fn line(&mut self) -> Result<Vec<u8>, NoAnswer> {
        match (&mut self.answer).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(gone)) => Err(NoAnswer::Gone(gone)),
            Err(_) => Err(NoAnswer::Unreadable("the request was forgotten".to_owned())),
        }
    }
}

/// Reads an answer as what it should be.
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
    /// Nobody is answered any more.
    fn fail(&self, gone: &Arc<BridgeExit>) {
        for (_, waiter) in self.waiting.lock().drain() {
            let _ = waiter.answer.send(Err(Arc::clone(gone)));
        }
    }

    /// Whose events these are.
    fn call(&self, id: u64) -> Option<Arc<ears::CallSide>> {
        self.waiting
            .lock()
            .get(&id)
            .and_then(|waiter| waiter.call.clone())
    }

    /// The one call that is under way, if there is just one.
    fn only_call(&self) -> Option<Arc<ears::CallSide>> {
        let waiting = self.waiting.lock();
        let mut calls = waiting.values().filter_map(|waiter| waiter.call.as_ref());
        calls.next().filter(|_| calls.next().is_none()).cloned()
    }
}

impl BridgeExit {
    /// In words.
    pub(super) fn told(&self) -> String {
        if let Some(because) = &self.because {
            return format!("the process of the Python modules was ended: {because}");
        }
        let how = match self.ended {
            Some(CommandExit {
                out_of_memory: true,
                ..
            }) => "it ran out of memory".to_owned(),
            Some(CommandExit {
                code: Some(code), ..
            }) => format!("exit code {code}"),
            Some(CommandExit {
                signal: Some(signal),
                ..
            }) => format!("signal {signal}"),
            Some(CommandExit { .. }) | None => "nobody knows how".to_owned(),
        };
        let words = self.last_words.trim();
        let words = if words.is_empty() {
            String::new()
        } else {
            format!("; it last wrote:\n{words}")
        };
        format!("the process of the Python modules ended: {how}{words}")
    }
}

impl NoAnswer {
    /// As the failure of a call that may have done something.
    pub(super) fn into_failure(self) -> ToolFailure {
        match self {
            Self::Gone(gone) => ToolFailure::new(gone.told()).code("module_process_ended").hint(
                "the process is started anew for the next call; what this call did until then is not known",
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
