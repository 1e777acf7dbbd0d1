//! What a caller gets: the result, and its JSON as the journal has it.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};
use toolpost_model::{Content, InvocationId, Redactions, ToolResult};

use crate::{
    flow::{
        invocation::{CancelReason, LiveCall},
        result::{self, Ending},
    },
    record::{redaction::CallRedactor, rendering::written},
};

/// What a result takes beside its content.
const RESULT_ROOM: usize = 512;

/// The end of a call. The JSON is what was recorded, byte for byte, so that a repeat gets the same.
#[derive(Debug)]
pub struct Answer {
    result: ToolResult,
    json: String,
}

impl Answer {
    pub(crate) fn of(result: ToolResult) -> Arc<Self> {
        let content: usize = result.content.iter().map(Content::size).sum();
        let json = written(&result, RESULT_ROOM + content);
        Arc::new(Self { result, json })
    }

    /// The same, once more without secrets: some show only when a result is written, such as a header's name and its
    /// value side by side. Done before it is recorded, so that the record and the answer stay the same bytes.
    pub(crate) fn without_secrets(result: ToolResult, redactor: &CallRedactor) -> Arc<Self> {
        let answer = Self::of(result);
        let mut counts = Redactions::default();
        let Cow::Owned(clean) = redactor.json(&answer.json, &mut counts) else { return answer };
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
    pub(crate) fn recorded(json: &RawValue) -> Option<Arc<Self>> {
        let result = serde_json::from_str(json.get()).ok()?;
        Some(Arc::new(Self { result, json: json.get().into() }))
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
    is_background: bool,
    answer: Waiting,
}

/// Where a call stands when its handle is made.
pub enum Standing<'a> {
    /// It began, and its listener will hear of its end.
    UnderWay,
    /// It began, and its caller does not wait for it: once it is [accepted](CallHandle::accepted), its id is the answer.
    Backgrounded,
    /// It repeats a request whose call was under way before; that one's listener hears of it.
    Joined,
    /// It is over: a repeat of one that ended, or a call that could not begin.
    Over(&'a Arc<Answer>),
}

/// What becomes of the call when nobody waits for it any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDrop {
    Cancel,
    LetGoOn,
}

enum Waiting {
    Own(oneshot::Receiver<Arc<Answer>>),
    Shared(watch::Receiver<Option<Arc<Answer>>>),
    Ready(Arc<Answer>),
}

impl CallHandle {
    /// `on_drop` is what the request says: a call that is let go on from the start is one in the background.
    pub(crate) fn own(live: Arc<LiveCall>, answer: oneshot::Receiver<Arc<Answer>>, on_drop: OnDrop) -> Self {
        live.await_answer();
        let is_background = on_drop == OnDrop::LetGoOn;
        Self { id: live.id, live: Some(live), on_drop, is_background, answer: Waiting::Own(answer) }
    }

    /// A repeat waits for the first one's call, which is not its own to cancel.
    pub(crate) fn shared(live: Arc<LiveCall>, answer: watch::Receiver<Option<Arc<Answer>>>) -> Self {
        live.await_answer();
        let (id, live, answer) = (live.id, Some(live), Waiting::Shared(answer));
        Self { id, live, on_drop: OnDrop::LetGoOn, is_background: false, answer }
    }

    pub(crate) fn ready(answer: Arc<Answer>) -> Self {
        let id = answer.result().invocation_id;
        let (on_drop, answer) = (OnDrop::LetGoOn, Waiting::Ready(answer));
        Self { id, live: None, on_drop, is_background: false, answer }
    }

    /// The call.
    pub fn invocation_id(&self) -> InvocationId {
        self.id
    }

    /// Where the call stands, for whoever gave it a listener.
    pub fn standing(&self) -> Standing<'_> {
        match &self.answer {
            Waiting::Own(_) if self.is_background => Standing::Backgrounded,
            Waiting::Own(_) => Standing::UnderWay,
            Waiting::Shared(_) => Standing::Joined,
            Waiting::Ready(answer) => Standing::Over(answer),
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
    pub async fn answer(mut self) -> Arc<Answer> {
        let id = self.id;
        let answer = match &mut self.answer {
            Waiting::Ready(answer) => Some(Arc::clone(answer)),
            Waiting::Own(answer) => answer.await.ok(),
            Waiting::Shared(answer) => match answer.wait_for(Option::is_some).await {
                Ok(found) => found.clone(),
                Err(_) => None,
            },
        };
        self.on_drop = OnDrop::LetGoOn;
        answer.unwrap_or_else(|| lost(id))
    }
}

impl Drop for CallHandle {
    fn drop(&mut self) {
        let Some(live) = &self.live else { return };
        live.stop_awaiting();
        if self.on_drop == OnDrop::Cancel {
            live.cancel(CancelReason::CallerGone);
        }
    }
}

/// The task that ran the call is gone without an answer: the runtime was torn down.
fn lost(id: InvocationId) -> Arc<Answer> {
    let Ending::Failure { outcome, error, .. } = result::outcome_unknown() else {
        unreachable!("it is a failure")
    };
    Answer::of(ToolResult {
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
        timings: toolpost_model::Timings::default(),
    })
}
