//! The answer to a caller: the result, with its JSON as recorded.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep_until},
};
use toolpost_model::{InvocationId, Redactions, ResultContent, Stage, ToolResult};

use super::{CancelReason, LiveCall, ParkedQuestion, Patience};
use crate::{
    record::{redaction::CallRedactor, rendering::written},
    result::{self, CallEnding},
};

/// The size of a result's JSON without its content, roughly.
const RESULT_ROOM: usize = 512;

/// The end of a call. The JSON is byte for byte the recorded text, so that a repeat gets the same bytes.
#[derive(Debug)]
pub struct RecordedResult {
    result: ToolResult,
    json: String,
}

impl RecordedResult {
    pub(crate) fn of(result: ToolResult) -> Arc<Self> {
        let content: usize = result.content.iter().map(ResultContent::size).sum();
        let json = written(&result, RESULT_ROOM + content);
        Arc::new(Self { result, json })
    }

    /// Redacts the JSON of a result as well. Some secrets are recognized only there, such as the name of a header
    /// beside its value. This happens before the result is recorded, because the record and the answer must be the same
    /// bytes.
    pub(crate) fn without_secrets(result: ToolResult, redactor: &CallRedactor) -> Arc<Self> {
        let answer = Self::of(result);
        let mut counts = Redactions::default();
        let Cow::Owned(clean) = redactor.json(&answer.json, &mut counts) else {
            return answer;
        };
        match serde_json::from_str::<ToolResult>(&clean) {
            Ok(mut result) => {
                result.redactions.add(&counts);
                Self::of(result)
            }
            // The redaction broke the structure of the JSON. The parts of the result are then redacted one by one.
            Err(_) => {
                let mut result = answer.result.clone();
                redactor.result(&mut result);
                Self::of(result)
            }
        }
    }

    /// The answer of a call that ended earlier, from its record.
    pub(crate) fn recorded(json: &str) -> Option<Arc<Self>> {
        let result = serde_json::from_str(json).ok()?;
        Some(Arc::new(Self {
            result,
            json: json.to_owned(),
        }))
    }

    /// The result.
    pub fn result(&self) -> &ToolResult {
        &self.result
    }

    /// The result as JSON.
    pub fn json(&self) -> &str {
        &self.json
    }
}

/// A call under way. Dropping the handle cancels the call, unless the handle is detached.
pub struct CallHandle {
    id: InvocationId,
    live: Option<Arc<LiveCall>>,
    on_drop: OnDrop,
    /// Whether this handle counts as a waiting caller.
    is_awaiting: bool,
    is_background: bool,
    answer: ResultReceiver,
}

/// The state of a call when its handle is created.
pub enum CallHandleState<'a> {
    /// The call began, and its listener receives its end.
    UnderWay,
    /// The call began in the background. Once it is [accepted](CallHandle::accepted), its id is the answer.
    Backgrounded,
    /// The call repeats a request that is under way. The listener of the first call receives its end.
    Joined,
    /// The call is over: it repeats a call that ended, or it could not begin.
    Over(&'a Arc<RecordedResult>),
}

/// A call that has not begun to run and continues without its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// The cause of the wait.
    pub cause: PendingCause,
}

/// Why a call waits before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingCause {
    /// The call waits for approval.
    Approval {
        /// The question.
        ask_id: InvocationId,
        /// The time at which an unanswered call ends as `approval_rejected`.
        expires_at: Timestamp,
    },
    /// The call waits for a slot, a lock or a hook.
    Queue,
}

/// The effect of dropping a handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDrop {
    Cancel,
    LetGoOn,
}

enum ResultReceiver {
    Own(oneshot::Receiver<Arc<RecordedResult>>),
    Shared(watch::Receiver<Option<Arc<RecordedResult>>>),
    Ready(Arc<RecordedResult>),
}

impl CallHandle {
    /// A handle that continues the call on drop from the start belongs to a call in the background.
    pub(crate) fn own(
        live: Arc<LiveCall>,
        answer: oneshot::Receiver<Arc<RecordedResult>>,
        on_drop: OnDrop,
    ) -> Self {
        live.await_answer();
        let is_background = on_drop == OnDrop::LetGoOn;
        let id = live.id;
        let live = Some(live);
        let answer = ResultReceiver::Own(answer);
        Self {
            id,
            live,
            on_drop,
            is_awaiting: true,
            is_background,
            answer,
        }
    }

    /// A handle for a repeat. It waits for the first call and does not cancel it on drop.
    pub(crate) fn shared(
        live: Arc<LiveCall>,
        answer: watch::Receiver<Option<Arc<RecordedResult>>>,
    ) -> Self {
        live.await_answer();
        let id = live.id;
        let live = Some(live);
        let answer = ResultReceiver::Shared(answer);
        Self {
            id,
            live,
            on_drop: OnDrop::LetGoOn,
            is_awaiting: true,
            is_background: false,
            answer,
        }
    }

    pub(crate) fn ready(answer: Arc<RecordedResult>) -> Self {
        let id = answer.result().invocation_id;
        let on_drop = OnDrop::LetGoOn;
        let answer = ResultReceiver::Ready(answer);
        Self {
            id,
            live: None,
            on_drop,
            is_awaiting: false,
            is_background: false,
            answer,
        }
    }

    /// The id of the call.
    pub fn invocation_id(&self) -> InvocationId {
        self.id
    }

    /// The state of the call when the handle was created.
    pub fn standing(&self) -> CallHandleState<'_> {
        match &self.answer {
            ResultReceiver::Own(_) if self.is_background => CallHandleState::Backgrounded,
            ResultReceiver::Own(_) => CallHandleState::UnderWay,
            ResultReceiver::Shared(_) => CallHandleState::Joined,
            ResultReceiver::Ready(answer) => CallHandleState::Over(answer),
        }
    }

    /// Resolves when the call is on record and can be acknowledged.
    pub async fn accepted(&self) {
        if let Some(live) = &self.live {
            live.wait_accepted().await;
        }
    }

    /// Lets the call continue when the handle is dropped.
    pub fn detach(&mut self) {
        self.on_drop = OnDrop::LetGoOn;
    }

    /// Waits for the end.
    pub async fn answer(mut self) -> Arc<RecordedResult> {
        let answer = receive(&mut self.answer).await;
        self.on_drop = OnDrop::LetGoOn;
        answer.unwrap_or_else(|| lost(self.id))
    }

    /// Waits for the end, or until `patience` ends before the call runs. The call then continues under its id, so this
    /// is for callers that can fetch its end later.
    ///
    /// The same error is returned if the host stops while the call is parked, because the next host resumes the call.
    pub async fn answer_within(
        mut self,
        patience: Option<Patience>,
    ) -> Result<Arc<RecordedResult>, PendingCall> {
        self.on_drop = OnDrop::LetGoOn;
        self.stop_awaiting();
        let id = self.id;
        let live = self.live.clone();
        let pending = wait_pending(id, live.as_deref(), patience, Instant::now());
        let answer = tokio::select! {
            biased;
            answer = receive(&mut self.answer) => answer.unwrap_or_else(|| lost(id)),
            pending = pending => return Err(pending),
        };
        match live.and_then(|live| live.parking().question()) {
            Some(question) => Err(PendingCall {
                invocation_id: id,
                cause: question.into(),
            }),
            None => Ok(answer),
        }
    }

    /// Resolves when `patience`, counted from `since`, ends before the call runs. Never resolves for a call that runs
    /// or ends.
    pub async fn pending(&self, patience: Option<Patience>, since: Instant) -> PendingCall {
        wait_pending(self.id, self.live.as_deref(), patience, since).await
    }

    fn stop_awaiting(&mut self) {
        if let Some(live) = self.live.as_ref().filter(|_| self.is_awaiting) {
            live.stop_awaiting();
        }
        self.is_awaiting = false;
    }
}

/// `None` if the call's task ended without an answer.
async fn receive(waiting: &mut ResultReceiver) -> Option<Arc<RecordedResult>> {
    match waiting {
        ResultReceiver::Ready(answer) => Some(Arc::clone(answer)),
        ResultReceiver::Own(answer) => answer.await.ok(),
        ResultReceiver::Shared(answer) => match answer.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            Err(_) => None,
        },
    }
}

async fn wait_pending(
    id: InvocationId,
    live: Option<&LiveCall>,
    patience: Option<Patience>,
    since: Instant,
) -> PendingCall {
    let cause = match (live, patience) {
        (Some(live), Some(Patience::Approval(patience))) => {
            let end = |question: ParkedQuestion| question.since.max(since) + patience;
            parked_until(live, end).await
        }
        (Some(live), Some(Patience::Turn(patience))) => {
            sleep_until(since + patience).await;
            // The caller gets an id to come back with, so the call must be on record.
            live.wait_accepted().await;
            not_running(live).await
        }
        (None, _) | (_, None) => std::future::pending().await,
    };
    PendingCall {
        invocation_id: id,
        cause,
    }
}

/// Resolves when the call is still parked at the time that `end` returns for its question.
async fn parked_until(live: &LiveCall, end: impl Fn(ParkedQuestion) -> Instant) -> PendingCause {
    loop {
        let changed = live.parking().changed();
        match live.parking().question() {
            Some(question) => tokio::select! {
                () = sleep_until(end(question)) => return question.into(),
                () = changed => {}
            },
            None => changed.await,
        }
    }
}

/// Resolves when the call is at a stage before its execution. A call can return to such a stage: it is decided again if
/// its facts changed.
async fn not_running(live: &LiveCall) -> PendingCause {
    loop {
        let changed = live.parking().changed();
        if let Some(question) = live.parking().question() {
            return question.into();
        }
        if live.stage() < Stage::Execute {
            return PendingCause::Queue;
        }
        changed.await;
    }
}

impl From<ParkedQuestion> for PendingCause {
    fn from(question: ParkedQuestion) -> Self {
        Self::Approval {
            ask_id: question.ask_id,
            expires_at: question.expires_at,
        }
    }
}

impl Drop for CallHandle {
    fn drop(&mut self) {
        self.stop_awaiting();
        let Some(live) = &self.live else { return };
        if self.on_drop == OnDrop::Cancel {
            live.cancel(CancelReason::CallerGone, Some(live.principal()));
        }
    }
}

/// The answer of a call whose task ended without one, because the runtime shut down.
fn lost(id: InvocationId) -> Arc<RecordedResult> {
    let CallEnding::Failure { outcome, error, .. } = result::outcome_unknown() else {
        unreachable!("it is a failure")
    };
    RecordedResult::of(ToolResult {
        invocation_id: id,
        tool_id: None,
        outcome,
        disposition: toolpost_model::Disposition::Synthetic,
        is_error: true,
        content: Vec::new(),
        structured_content: None,
        meta: None,
        summary: Some(error.message.clone()),
        exit_code: None,
        truncated: None,
        artifacts: Vec::new(),
        persistence: None,
        redactions: Redactions::default(),
        error: Some(*error),
        sandbox: None,
        approval_waived: None,
        timings: toolpost_model::Timings::default(),
    })
}
