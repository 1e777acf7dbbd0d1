//! What a caller gets: the result, and its JSON as the journal has it.

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

/// What a result takes beside its content.
const RESULT_ROOM: usize = 512;

/// The end of a call. The JSON is what was recorded, byte for byte, so that a repeat gets the same.
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

    /// The same, once more without secrets: some show only when a result is written, such as a header's name and its
    /// value side by side. Done before it is recorded, so that the record and the answer stay the same bytes.
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
            // Then it is written again from parts that are clean one by one.
            Err(_) => {
                let mut result = answer.result.clone();
                redactor.result(&mut result);
                Self::of(result)
            }
        }
    }

    /// From the record of a call that ended earlier.
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

/// A call under way. Dropping the handle cancels the call, unless it was let go on.
pub struct CallHandle {
    id: InvocationId,
    live: Option<Arc<LiveCall>>,
    on_drop: OnDrop,
    /// Whether the call counts this handle among those that wait for its answer.
    is_awaiting: bool,
    is_background: bool,
    answer: ResultReceiver,
}

/// Where a call stands when its handle is made.
pub enum CallHandleState<'a> {
    /// It began, and its listener will hear of its end.
    UnderWay,
    /// It began, and its caller does not wait for it: once it is [accepted](CallHandle::accepted), its id is the answer.
    Backgrounded,
    /// It repeats a request whose call was under way before; that one's listener hears of it.
    Joined,
    /// It is over: a repeat of one that ended, or a call that could not begin.
    Over(&'a Arc<RecordedResult>),
}

/// A call that has not begun to run and goes on without the caller that waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// What it waits for.
    pub cause: PendingCause,
}

/// What a call waits for before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingCause {
    /// A person's answer. The call runs after a yes.
    Approval {
        /// The question.
        ask_id: InvocationId,
        /// Without an answer by then, the call ends `approval_rejected`.
        expires_at: Timestamp,
    },
    /// A free slot, another call or a hook.
    Queue,
}

/// What becomes of the call when nobody waits for it any more.
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
    /// `on_drop` is what the request says: a call that is let go on from the start is one in the background.
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

    /// A repeat waits for the first one's call, which is not its own to cancel.
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

    /// The call.
    pub fn invocation_id(&self) -> InvocationId {
        self.id
    }

    /// Where the call stands, for whoever gave it a listener.
    pub fn standing(&self) -> CallHandleState<'_> {
        match &self.answer {
            ResultReceiver::Own(_) if self.is_background => CallHandleState::Backgrounded,
            ResultReceiver::Own(_) => CallHandleState::UnderWay,
            ResultReceiver::Shared(_) => CallHandleState::Joined,
            ResultReceiver::Ready(answer) => CallHandleState::Over(answer),
        }
    }

    /// Resolves when the call is on record, so that it may be acknowledged.
    pub async fn accepted(&self) {
        if let Some(live) = &self.live {
            live.wait_accepted().await;
        }
    }

    /// Lets the call go on when the handle is dropped.
    pub fn detach(&mut self) {
        self.on_drop = OnDrop::LetGoOn;
    }

    /// Waits for the end.
    pub async fn answer(mut self) -> Arc<RecordedResult> {
        let answer = receive(&mut self.answer).await;
        self.on_drop = OnDrop::LetGoOn;
        answer.unwrap_or_else(|| lost(self.id))
    }

    /// Waits for the end, or until `patience` is over before the call runs. The call goes on then, under its id: this is
    /// for callers that can come back for its end.
    ///
    /// The same is told when the host goes while the call is parked, because the next host goes on with the call.
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

    /// Resolves when `patience`, counted from `since` on, is over before the call runs; never for a call that ends or runs.
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

/// `None`: the call's task is gone without an answer.
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
            // The caller is told an id to come back with, so the call must be on record.
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

/// Resolves when the call is parked at the moment that `end` names for its question.
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

/// Resolves when the call is somewhere before its work. A call may come back there: it is decided again where its facts
/// changed.
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

/// The task that ran the call is gone without an answer: the runtime was torn down.
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
