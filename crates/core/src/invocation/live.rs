//! The part of a call that others may use while it runs.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use toolpost_model::{
    ConsultableCaller, Event, EventBody, InvocationId, Principal, SessionId, Stage, TraceContext,
};

use super::{
    CallCancellation, CallRequest, EventDelivery, EventInterest, EventListener, Milestone, micros,
    milestones::MilestoneSampler, output::RedactedOutputStreams, patience::CallParking,
};
use crate::{
    execution::deadline::DeadlinePauses,
    hooks::witness::CallAndWitnesses,
    record::{
        artifacts::CallArtifacts,
        redaction::{CallRedactor, HostRedactor, KnownSecrets},
    },
};

/// The part of a call that others may touch while it runs: cancel it, look at its stage, hear its events.
pub(crate) struct LiveCall {
    pub(crate) id: InvocationId,
    pub(crate) tool: String,
    pub(crate) began: Instant,
    pub(super) session: SessionId,
    pub(super) principal: Principal,
    /// Its caller, as far as tools and records see it.
    pub(crate) caller: LiveCaller,
    pub(super) stop: CallStop,
    pub(crate) audience: CallAudience,
    redaction: LiveRedaction,
    waiters: CallWaiters,
    /// The artifacts that it has stored so far.
    pub(crate) artifacts: CallArtifacts,
    /// The time for which the call waits for others while it runs.
    pub(crate) pauses: DeadlinePauses,
}

/// The caller of a running call.
pub(crate) struct LiveCaller {
    /// The connection through which a tool may ask the caller.
    pub(crate) consulted: Option<Arc<dyn ConsultableCaller>>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
    /// The span of the caller, if it sent one.
    pub(crate) span: Option<Box<TraceContext>>,
    /// The time of the request, if it came to an earlier host.
    pub(crate) asked_for_at: Option<jiff::Timestamp>,
}

/// The ways in which a call is stopped.
#[derive(Default)]
pub(super) struct CallStop {
    pub(super) token: CancellationToken,
    pub(super) cancellation: OnceLock<CallCancellation>,
    /// Stopping the call that made this one stops this one.
    pub(super) is_nested: bool,
}

/// The receivers of a call's events, and the numbers of those events.
pub(crate) struct CallAudience {
    /// Dropped at the end, so that a reader sees the end even while the call is still referenced.
    listener: Mutex<Option<Arc<dyn EventListener>>>,
    interest: EventInterest,
    /// The witnesses, which receive the events of every call.
    pub(crate) witnesses: Option<Box<CallAndWitnesses>>,
    seq: AtomicU64,
    dropped: AtomicU64,
    stage: AtomicU64,
    milestones: Mutex<MilestoneSampler>,
}

/// What keeps secrets out of a call's events and records.
struct LiveRedaction {
    host: Arc<HostRedactor>,
    /// The call's sensitive texts. Grows: a hook's rewrite may bring more.
    secrets: Mutex<OwnSecrets>,
    outputs: Mutex<RedactedOutputStreams>,
}

/// The callers that wait for a call.
#[derive(Default)]
struct CallWaiters {
    accepted: SetOnce<()>,
    /// The number of callers that wait for the answer.
    awaited: AtomicU64,
    over: SetOnce<()>,
    /// The question that the call is parked on.
    parking: CallParking,
}

/// The sensitive texts of one call, and what finds them.
#[derive(Default)]
struct OwnSecrets {
    texts: Vec<String>,
    finder: Option<Arc<KnownSecrets>>,
}

impl OwnSecrets {
    fn add(&mut self, secrets: Vec<String>) {
        let before = self.texts.len();
        for secret in secrets {
            if !self.texts.contains(&secret) {
                self.texts.push(secret);
            }
        }
        if self.texts.len() > before {
            self.finder = Some(Arc::new(KnownSecrets::arguments(&self.texts)));
        }
    }
}

impl LiveCall {
    pub(crate) fn new(
        id: InvocationId,
        request: &CallRequest,
        redactor: Arc<HostRedactor>,
    ) -> Self {
        let listener = request.delivery.listener.clone();
        Self {
            id,
            tool: request.tool.clone(),
            began: Instant::now(),
            session: request.session.id().clone(),
            principal: request.session.principal().clone(),
            caller: LiveCaller {
                consulted: request.delivery.caller.clone(),
                meta: request.meta.clone(),
                span: request.identity.trace.clone(),
                asked_for_at: None,
            },
            stop: CallStop::default(),
            audience: CallAudience {
                interest: listener
                    .as_ref()
                    .map_or(EventInterest::Nothing, |listener| listener.wants()),
                listener: Mutex::new(listener),
                witnesses: None,
                seq: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                stage: AtomicU64::new(0),
                milestones: Mutex::default(),
            },
            redaction: LiveRedaction {
                host: redactor,
                secrets: Mutex::default(),
                outputs: Mutex::default(),
            },
            waiters: CallWaiters::default(),
            artifacts: CallArtifacts::default(),
            pauses: DeadlinePauses::default(),
        }
    }

    /// The call is on record, or has ended: it may be acknowledged.
    pub(crate) fn accepted(&self) {
        let _ = self.waiters.accepted.set(());
    }

    /// The call is over: whoever listens hears no more events.
    pub(crate) fn take_listener(&self) -> Option<Arc<dyn EventListener>> {
        self.audience.listener.lock().take()
    }

    /// Somebody waits for the answer from now on.
    pub(crate) fn await_answer(&self) {
        self.waiters.awaited.fetch_add(1, Ordering::SeqCst);
    }

    /// And no longer does.
    pub(crate) fn stop_awaiting(&self) {
        self.waiters.awaited.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether anybody would hear its answer now.
    pub(crate) fn is_awaited(&self) -> bool {
        let listener = self.audience.listener.lock();
        listener
            .as_ref()
            .is_some_and(|listener| listener.awaits_answer())
            || self.waiters.awaited.load(Ordering::SeqCst) > 0
    }

    pub(crate) async fn wait_accepted(&self) {
        self.waiters.accepted.wait().await;
    }

    /// The call is not known as running any more: what is to be known of it is on record.
    pub(crate) fn over(&self) {
        let _ = self.waiters.over.set(());
    }

    pub(crate) async fn wait_over(&self) {
        self.waiters.over.wait().await;
    }

    pub(crate) fn parking(&self) -> &CallParking {
        &self.waiters.parking
    }

    pub(crate) fn say_queued(&self) {
        self.waiters.parking.notify();
        self.say("waiting for a free slot or for another call to finish");
    }

    /// Says what the host is doing with the call.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.emit(EventBody::Status {
            message: message.into(),
        });
    }

    pub(crate) fn host_redactor(&self) -> &HostRedactor {
        &self.redaction.host
    }

    pub(crate) fn add_secrets(&self, secrets: Vec<String>) {
        self.redaction.secrets.lock().add(secrets);
    }

    /// What the call may not tell, as far as that is known now.
    pub(crate) fn redactor(&self) -> CallRedactor {
        let own = self.redaction.secrets.lock().finder.clone();
        CallRedactor {
            own,
            ..self.redaction.host.of_no_call()
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        let place =
            usize::try_from(self.audience.stage.load(Ordering::Relaxed)).unwrap_or_default();
        STAGES[place.min(STAGES.len() - 1)]
    }

    pub(super) fn set_stage(&self, stage: Stage) {
        self.audience.stage.store(stage as u64, Ordering::Relaxed);
        if self.audience.interest == EventInterest::Everything {
            self.emit(EventBody::Stage { stage });
        }
    }

    /// Events sent so far and events lost to a slow reader.
    pub(crate) fn event_counts(&self) -> (u64, u64) {
        (
            self.audience.seq.load(Ordering::Relaxed),
            self.audience.dropped.load(Ordering::Relaxed),
        )
    }
}

pub(super) const STAGES: [Stage; 13] = [
    Stage::Resolve,
    Stage::Parse,
    Stage::Validate,
    Stage::Observe,
    Stage::PreHooks,
    Stage::Decide,
    Stage::AwaitApproval,
    Stage::Admit,
    Stage::Execute,
    Stage::Map,
    Stage::PostHooks,
    Stage::Persist,
    Stage::Emit,
];

impl LiveCall {
    pub(crate) fn session_id(&self) -> &SessionId {
        &self.session
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Passes an event on. Never blocks.
    pub(crate) fn emit(&self, mut body: EventBody) {
        if self.audience.interest == EventInterest::Nothing && self.audience.witnesses.is_none() {
            let seq = self.audience.seq.fetch_add(1, Ordering::Relaxed) + 1;
            self.mark(seq, &body);
            return;
        }
        let redactor = self.redactor();
        if let EventBody::Output(chunk) = body {
            // Held until it is told, so that two threads of one tool do not tell pieces of one stream in another order.
            let mut outputs = self.redaction.outputs.lock();
            if let Some(chunk) = outputs.pass(&chunk, &redactor) {
                self.tell(EventBody::Output(chunk));
            }
            return;
        }
        redactor.event(&mut body);
        self.tell(body);
    }

    /// Tells what was held back of a process's output: no more of it comes.
    pub(crate) fn flush_output(&self) {
        let mut outputs = self.redaction.outputs.lock();
        outputs
            .finish()
            .into_iter()
            .for_each(|chunk| self.tell(EventBody::Output(chunk)));
    }

    fn tell(&self, body: EventBody) {
        // Numbered under the lock, so that two threads of one tool are heard in the order of their numbers.
        let listener = self.audience.listener.lock();
        let seq = self.audience.seq.fetch_add(1, Ordering::Relaxed) + 1;
        self.mark(seq, &body);
        let event = Event {
            invocation_id: self.id,
            seq,
            at: crate::port::now(),
            body,
        };
        self.audience
            .witnesses
            .iter()
            .for_each(|watch| watch.hear(&event));
        if self.audience.interest == EventInterest::Nothing {
            return;
        }
        if listener
            .as_ref()
            .is_none_or(|listener| listener.hear(event) == EventDelivery::Lost)
        {
            self.audience.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LiveCall {
    fn mark(&self, seq: u64, body: &EventBody) {
        let mut milestones = self.audience.milestones.lock();
        milestones.pass(seq, micros(self.began.elapsed()), body);
    }

    /// What stays on record of its progress.
    pub(crate) fn milestones(&self) -> Vec<Milestone> {
        self.audience.milestones.lock().told(&self.redactor())
    }
}

impl LiveCall {
    /// Its own span.
    pub(crate) fn trace(&self) -> TraceContext {
        match &self.caller.span {
            Some(caller) => caller.child(self.id),
            None => TraceContext::of_call(self.id),
        }
    }

    /// Makes it a call that an earlier host was asked for: its id tells when.
    pub(crate) fn resumed(mut self) -> Self {
        let millis = i64::try_from(self.id.unix_millis()).unwrap_or_default();
        self.caller.asked_for_at = jiff::Timestamp::from_millisecond(millis).ok();
        self
    }

    /// Makes it a call of the call that `parent` stops.
    pub(crate) fn nested_in(mut self, parent: &CancellationToken) -> Self {
        self.stop.token = parent.child_token();
        self.stop.is_nested = true;
        self
    }
}
