//! What a face hands to the host, and how it hears of what becomes of it.

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

/// What a face hands to the host.
#[derive(Clone)]
pub struct CallRequest {
    /// The session the call belongs to.
    pub session: Arc<Session>,
    /// The tool, by wire name, alias or id.
    pub tool: String,
    /// The arguments as they came.
    pub input: ModelInput,
    /// Where the call came in, for the record.
    pub face: &'static str,
    /// What its caller calls the request.
    pub identity: RequestIdentity,
    /// How long it may wait and run.
    pub times: CallTimeLimits,
    /// How its caller hears of it.
    pub delivery: CallDelivery,
    /// Its place among the calls of one turn: what it waits for, and what its failure means for the others.
    pub batch: Option<BatchPlace>,
    /// What the caller said beside the arguments, for tools of the same system: MCP's `_meta`. It is passed on and not
    /// recorded.
    pub meta: Option<Box<Map<String, Value>>>,
}

/// The ids that a caller gives a request. A face reads them from its own headers or messages.
#[derive(Clone, Debug, Default)]
pub struct RequestIdentity {
    /// The caller's own id: a repeat gets the first answer.
    pub request_id: Option<RequestId>,
    /// The caller's own id of the call, for the record alone. It finds no earlier answer: see `request_id`.
    pub native_call_id: Option<NativeCallId>,
    /// The caller's word for what belongs together.
    pub correlation_id: Option<String>,
    /// The span of the caller that the call is part of. Without one, the call begins a trace of its own.
    pub trace: Option<Box<TraceContext>>,
}

/// How long a call may wait and run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTimeLimits {
    /// The deadline the caller wishes for.
    pub timeout: Option<Duration>,
    /// How long the call may wait before it runs. A call that still waits by then ends `queued` or `approval_pending`,
    /// and nothing has run. A call that runs is not affected.
    pub patience: Option<Patience>,
    /// How long a call that this one makes while it runs waits for a person's answer. Without it: as `patience` says.
    pub nested_patience: Option<Duration>,
    /// The longest the call may take in all, waiting and work, from the request on. A call that still waits by then ends
    /// as with `patience`; a call that runs is stopped.
    pub total_time: Option<Duration>,
}

/// How a caller hears of its call.
#[derive(Clone)]
pub struct CallDelivery {
    /// Who hears of what happens on the way, and of the end.
    pub listener: Option<Arc<dyn EventListener>>,
    /// Whether the caller hears of the call before its end, so that accepting it must be on record first.
    pub acknowledged: AcknowledgementTiming,
    /// Who can be asked something while it runs.
    pub caller: Option<Arc<dyn ConsultableCaller>>,
    /// The caller does not wait for it: it outlives its handle and its caller's patience, and its end is asked for by
    /// its id. What ends it early is a cancellation, its deadline or the end of its session.
    pub background: bool,
}

impl CallRequest {
    /// A plain call: answered at its end, no events, the tool's deadline.
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

    /// Names the face for the record.
    pub fn record_face(mut self, face: &'static str) -> Self {
        self.face = face;
        self
    }

    /// Takes over the ids that the caller gave.
    pub fn identify(mut self, identity: RequestIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Limits how long the call waits and runs.
    pub fn limit_times(mut self, times: CallTimeLimits) -> Self {
        self.times = times;
        self
    }

    /// Sends events and the end to a listener.
    pub fn notify(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.delivery.listener = Some(listener);
        self
    }

    /// Acknowledges the call to its caller at this moment.
    pub fn acknowledge(mut self, timing: AcknowledgementTiming) -> Self {
        self.delivery.acknowledged = timing;
        self
    }

    /// Lets tools ask the caller while the call runs.
    pub fn consult(mut self, caller: Arc<dyn ConsultableCaller>) -> Self {
        self.delivery.caller = Some(caller);
        self
    }

    /// Lets the call go on without its caller.
    pub fn run_in_background(mut self) -> Self {
        self.delivery.background = true;
        self
    }

    /// When its caller hears of it. That a call goes on in the background is something to hear before its end.
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
    /// The tool's deadline, and a limit to the wait alone.
    pub fn of_patience(patience: Patience) -> Self {
        Self {
            patience: Some(patience),
            ..Self::default()
        }
    }
}

/// How long a caller waits for a call to begin, and for which of its waits that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For a person's answer only, from the question on. The question stays open, and a later call with the same
    /// arguments gets the answer.
    Approval(Duration),
    /// For everything before the work, a slot and a person's answer among it, from the request on.
    Turn(Duration),
}

impl Patience {
    /// How long.
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Approval(time) | Self::Turn(time) => time,
        }
    }
}

/// Hears what happens to a call. Called from the call's own task, so it never waits: what it cannot take is lost
/// and counted.
pub trait EventListener: Send + Sync + 'static {
    /// Which events it wants.
    fn wants(&self) -> EventInterest {
        EventInterest::Everything
    }

    /// Whether the caller behind it waits for the answer. When the host stops, a parked call whose caller waits is
    /// given up; any other keeps its open question for the next host.
    fn awaits_answer(&self) -> bool {
        true
    }

    /// Takes an event, or gives it up.
    fn hear(&self, event: Event) -> EventDelivery;

    /// The call is over and on record. Told once, after the last event, to the listener of a call that was
    /// under way; a repeat or a refusal is in the handle at once.
    fn ended(&self, answer: &Arc<RecordedResult>) {
        let _ = answer;
    }
}

/// Which events a listener wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventInterest {
    /// None, only the end.
    Nothing,
    /// What the tool reports.
    ToolEvents,
    /// Stages too.
    Everything,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventDelivery {
    /// It was taken.
    Taken,
    /// The listener is gone or behind.
    Lost,
}

/// A full channel loses events, never time.
impl EventListener for mpsc::Sender<Event> {
    fn hear(&self, event: Event) -> EventDelivery {
        if self.try_send(event).is_ok() {
            EventDelivery::Taken
        } else {
            EventDelivery::Lost
        }
    }
}

/// When the caller first hears that its call was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgementTiming {
    /// With the answer.
    AtTheEnd,
    /// Before it.
    Early,
    /// As soon as anything of it is on record: its end, where that comes at once, which spares a record.
    OnceOnRecord,
}
