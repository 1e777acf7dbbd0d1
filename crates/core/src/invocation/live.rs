//! The part of a call that other tasks share while it runs.

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

/// The shared part of a call: its identity, cancellation, stage and events.
pub(crate) struct LiveCall {
    pub(crate) id: InvocationId,
    pub(crate) tool: String,
    pub(crate) began: Instant,
    pub(super) session: SessionId,
    pub(super) principal: Principal,
    pub(crate) caller: LiveCaller,
    pub(super) stop: CallStop,
    pub(crate) audience: CallAudience,
    redaction: LiveRedaction,
    waiters: CallWaiters,
    /// The artifacts that the call has stored so far.
    pub(crate) artifacts: CallArtifacts,
    /// The time that does not count towards the deadline.
    pub(crate) pauses: DeadlinePauses,
}

/// The caller of a running call.
pub(crate) struct LiveCaller {
    /// The connection through which a tool can ask the caller.
    pub(crate) consulted: Option<Arc<dyn ConsultableCaller>>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
    /// The trace span of the caller, if it sent one.
    pub(crate) span: Option<Box<TraceContext>>,
    /// The time of the request, if an earlier host received it.
    pub(crate) asked_for_at: Option<jiff::Timestamp>,
}

/// The cancellation state of a call.
#[derive(Default)]
pub(super) struct CallStop {
    pub(super) token: CancellationToken,
    pub(super) cancellation: OnceLock<CallCancellation>,
    /// Whether a cancellation of the parent call cancels this call.
    pub(super) is_nested: bool,
}

/// The receivers of a call's events, and the counters of those events.
pub(crate) struct CallAudience {
    /// Dropped at the end, so that the stream of a face ends even while the call is still referenced.
    listener: Mutex<Option<Arc<dyn EventListener>>>,
    interest: EventInterest,
    /// The witnesses, which receive the events of all calls.
    pub(crate) witnesses: Option<Box<CallAndWitnesses>>,
    seq: AtomicU64,
    dropped: AtomicU64,
    stage: AtomicU64,
    milestones: Mutex<MilestoneSampler>,
}

/// The redaction of a call's events and records.
struct LiveRedaction {
    host: Arc<HostRedactor>,
    /// The sensitive texts of the call. Hooks that rewrite arguments can add to them.
    secrets: Mutex<OwnSecrets>,
    outputs: Mutex<RedactedOutputStreams>,
}

#[derive(Default)]
struct CallWaiters {
    accepted: SetOnce<()>,
    /// The number of callers that wait for the answer.
    awaited: AtomicU64,
    over: SetOnce<()>,
    /// The question that the call is parked on.
    parking: CallParking,
}

/// The sensitive texts of a call, with a finder for them.
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

    /// Marks the call as recorded or ended, so that it can be acknowledged.
    pub(crate) fn accepted(&self) {
        let _ = self.waiters.accepted.set(());
    }

    /// Removes the listener, which then gets no further events.
    pub(crate) fn take_listener(&self) -> Option<Arc<dyn EventListener>> {
        self.audience.listener.lock().take()
    }

    /// Counts a caller that waits for the answer.
    pub(crate) fn await_answer(&self) {
        self.waiters.awaited.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes a caller from that count.
    pub(crate) fn stop_awaiting(&self) {
        self.waiters.awaited.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a caller waits for the answer.
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

    /// Marks the call as no longer running. Its state is on record.
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

    /// Sends a status message about the call.
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

    /// The redactor of the call, with the secrets that are known so far.
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

    /// The number of events, and of the events that a slow reader lost.
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

    /// Sends an event to the listener and the witnesses. Never blocks.
    pub(crate) fn emit(&self, mut body: EventBody) {
        if self.audience.interest == EventInterest::Nothing && self.audience.witnesses.is_none() {
            let seq = self.audience.seq.fetch_add(1, Ordering::Relaxed) + 1;
            self.mark(seq, &body);
            return;
        }
        let redactor = self.redactor();
        if let EventBody::Output(chunk) = body {
            // Held until the chunk is sent: two threads of one tool could otherwise send the chunks of one stream in
            // another order than the redactor got them.
            let mut outputs = self.redaction.outputs.lock();
            if let Some(chunk) = outputs.pass(&chunk, &redactor) {
                self.tell(EventBody::Output(chunk));
            }
            return;
        }
        redactor.event(&mut body);
        self.tell(body);
    }

    /// Sends the held-back rest of the output streams at the end of the work.
    pub(crate) fn flush_output(&self) {
        let mut outputs = self.redaction.outputs.lock();
        outputs
            .finish()
            .into_iter()
            .for_each(|chunk| self.tell(EventBody::Output(chunk)));
    }

    fn tell(&self, body: EventBody) {
        // Numbered under the lock, so that the listener receives the events of several threads in the order of their
        // numbers. The listener and the witnesses are called under this lock as well, so they must not emit events of
        // this call. The lock order is outputs, listener, milestones.
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

    /// The milestones for the record.
    pub(crate) fn milestones(&self) -> Vec<Milestone> {
        self.audience.milestones.lock().told(&self.redactor())
    }
}

impl LiveCall {
    /// The trace span of the call.
    pub(crate) fn trace(&self) -> TraceContext {
        match &self.caller.span {
            Some(caller) => caller.child(self.id),
            None => TraceContext::of_call(self.id),
        }
    }

    /// Marks the call as a request of an earlier host, at the time in its id.
    pub(crate) fn resumed(mut self) -> Self {
        let millis = i64::try_from(self.id.unix_millis()).unwrap_or_default();
        self.caller.asked_for_at = jiff::Timestamp::from_millisecond(millis).ok();
        self
    }

    /// Ties the call's cancellation to its parent's.
    pub(crate) fn nested_in(mut self, parent: &CancellationToken) -> Self {
        self.stop.token = parent.child_token();
        self.stop.is_nested = true;
        self
    }
}
