//! The request of a face, and the port through which the face gets events and the answer.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolpost_model::{
    BatchPlace, ConsultableCaller, Event, ModelInput, NativeCallId, RequestId, TraceContext,
};

use crate::{
    invocation::{OnDrop, RecordedResult},
    session::Session,
};

/// The request of a face to the host.
#[derive(Clone)]
pub struct CallRequest {
    /// The session of the call.
    pub session: Arc<Session>,
    /// The tool, by wire name, alias or id.
    pub tool: String,
    /// The arguments as received.
    pub input: ModelInput,
    /// The face, for the record.
    pub face: &'static str,
    /// The caller's ids of the request.
    pub identity: RequestIdentity,
    /// The limits of waiting and running.
    pub times: CallTimeLimits,
    /// The delivery of events and the answer.
    pub delivery: CallDelivery,
    /// The place in a batch, with its dependencies.
    pub batch: Option<BatchPlace>,
    /// The caller's metadata for tools of the same system, such as MCP's `_meta`. It is passed on and not recorded.
    pub meta: Option<Box<Map<String, Value>>>,
}

/// The caller's ids of a request. A face reads them from its own headers or messages.
#[derive(Clone, Debug, Default)]
pub struct RequestIdentity {
    /// The idempotency id: a repeat gets the first answer.
    pub request_id: Option<RequestId>,
    /// The caller's id of the call, for the record only. It finds no earlier answer: see `request_id`.
    pub native_call_id: Option<NativeCallId>,
    /// The caller's id for a group of related calls.
    pub correlation_id: Option<String>,
    /// The caller's trace span, which becomes the parent of the call's span. Without it, the call starts a new trace.
    pub trace: Option<Box<TraceContext>>,
}

/// The limits of waiting and running.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTimeLimits {
    /// The deadline that the caller requests.
    pub timeout: Option<Duration>,
    /// The time that the call may wait before it runs. A call that still waits then ends as `queued` or
    /// `approval_pending`, and nothing has run. A running call is not affected.
    pub patience: Option<Patience>,
    /// The time that nested calls wait for an approval. The default is the time of `patience`.
    pub nested_patience: Option<Duration>,
    /// The total time of the call from the request on, including waits. A call that still waits then ends as with
    /// `patience`; a running call is stopped.
    pub total_time: Option<Duration>,
}

/// The delivery of a call's events and answer.
#[derive(Clone)]
pub struct CallDelivery {
    /// Receives the events and the end.
    pub listener: Option<Arc<dyn EventListener>>,
    /// When the caller is told that its call was accepted. A call that is acknowledged early must be on record first.
    pub acknowledged: AcknowledgementTiming,
    /// The connection through which a tool can ask the caller.
    pub caller: Option<Arc<dyn ConsultableCaller>>,
    /// The caller does not wait. The call outlives its handle and its caller's patience, and the caller fetches its end
    /// by id. Only a cancellation, its deadline or the end of its session ends it early.
    pub background: bool,
}

impl CallRequest {
    /// A plain call: an answer at its end, no events, the tool's deadline.
    pub fn new(session: Arc<Session>, tool: impl Into<String>, input: ModelInput) -> Self {
        Self {
            session,
            tool: tool.into(),
            input,
            face: "embedded",
            identity: RequestIdentity::default(),
            times: CallTimeLimits::default(),
            delivery: CallDelivery {
                listener: None,
                acknowledged: AcknowledgementTiming::AtTheEnd,
                caller: None,
                background: false,
            },
            batch: None,
            meta: None,
        }
    }

    /// Sets the face for the record.
    pub fn record_face(mut self, face: &'static str) -> Self {
        self.face = face;
        self
    }

    /// Sets the caller's ids.
    pub fn identify(mut self, identity: RequestIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the limits of waiting and running.
    pub fn limit_times(mut self, times: CallTimeLimits) -> Self {
        self.times = times;
        self
    }

    /// Sends events and the end to a listener.
    pub fn notify(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.delivery.listener = Some(listener);
        self
    }

    /// Sets when the call is acknowledged.
    pub fn acknowledge(mut self, timing: AcknowledgementTiming) -> Self {
        self.delivery.acknowledged = timing;
        self
    }

    /// Lets tools ask the caller while the call runs.
    pub fn consult(mut self, caller: Arc<dyn ConsultableCaller>) -> Self {
        self.delivery.caller = Some(caller);
        self
    }

    /// Runs the call in the background.
    pub fn run_in_background(mut self) -> Self {
        self.delivery.background = true;
        self
    }

    /// When the call is acknowledged. A call in the background is acknowledged before its end.
    pub(crate) fn told(&self) -> AcknowledgementTiming {
        match self.delivery.acknowledged {
            AcknowledgementTiming::AtTheEnd if self.delivery.background => {
                AcknowledgementTiming::OnceOnRecord
            }
            told => told,
        }
    }

    pub(crate) fn on_drop(&self) -> OnDrop {
        if self.delivery.background {
            OnDrop::LetGoOn
        } else {
            OnDrop::Cancel
        }
    }
}

impl CallTimeLimits {
    /// Only limits the wait. The deadline is the tool's.
    pub fn of_patience(patience: Patience) -> Self {
        Self {
            patience: Some(patience),
            ..Self::default()
        }
    }
}

/// The time that a caller waits for its call to start, and the waits that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Limits the wait for an approval, from the question on. The question stays open, and a later equal call gets its
    /// answer.
    Approval(Duration),
    /// Limits all waits before the execution, from the request on. This includes slots and approvals.
    Turn(Duration),
}

impl Patience {
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Approval(time) | Self::Turn(time) => time,
        }
    }
}

/// Receives the events of a call. The methods run in the call's task and must not block: an event that the listener
/// cannot take is lost and counted.
pub trait EventListener: Send + Sync + 'static {
    /// The events that the listener receives.
    fn wants(&self) -> EventInterest {
        EventInterest::Everything
    }

    /// Whether the caller waits for the answer. When the host stops, a parked call with a waiting caller ends; any
    /// other stays open for the next host.
    fn awaits_answer(&self) -> bool {
        true
    }

    /// Takes or loses an event.
    fn hear(&self, event: Event) -> EventDelivery;

    /// Receives the recorded end of the call, once and after the last event. Not called for a repeat or a refusal,
    /// whose answer is in the handle at once.
    fn ended(&self, answer: &Arc<RecordedResult>) {
        let _ = answer;
    }
}

/// The events that a listener receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventInterest {
    /// Only the end.
    Nothing,
    /// The events of the tool.
    ToolEvents,
    /// The events of the tool and the stages.
    Everything,
}

/// The delivery of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventDelivery {
    /// The listener took the event.
    Taken,
    /// The listener is gone or too slow.
    Lost,
}

/// A full channel loses events and does not delay the call.
impl EventListener for mpsc::Sender<Event> {
    fn hear(&self, event: Event) -> EventDelivery {
        if self.try_send(event).is_ok() {
            EventDelivery::Taken
        } else {
            EventDelivery::Lost
        }
    }
}

/// When a caller is told that its call was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgementTiming {
    /// With the answer.
    AtTheEnd,
    /// Before the answer.
    Early,
    /// As soon as a record of the call exists. For a call that ends at once this is its end, which saves a record.
    OnceOnRecord,
}
