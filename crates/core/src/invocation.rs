//! Layer 4: what the agent asked for, and everything known of it on its way.

mod answer;
mod cancel;
mod idempotency;
mod inputs;
mod met;
mod milestones;
mod origin;
mod output;
mod parent;
mod parking;
pub(crate) mod patience;
mod request;
pub(crate) mod resolve;
pub(crate) mod validate;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use toolpost_model::{
    BatchPlace, ConsultableCaller, Decision, Effects, Event, EventBody, HookRun, InvocationId,
    NativeCallId, Principal, SessionId, SourceSession, Stage, SurfaceId, ToolResult, TraceContext,
    Transition, Vote,
};

pub(crate) use answer::OnDrop;
pub use answer::{CallHandle, CallHandleState, PendingCall, PendingCause, RecordedResult};
pub(crate) use cancel::CallCancellation;
pub use cancel::CancelReason;
pub use idempotency::request_digest;
pub(crate) use inputs::Inputs;
pub(crate) use met::{CallCircumstances, LateAnswer};
pub use met::{CallDeadline, DeadlineBy, MatchedBy};
pub(crate) use milestones::Milestone;
use milestones::Milestones;
pub use milestones::ModuleEvent;
use output::Outputs;
pub(crate) use parent::Parent;
pub(crate) use parking::ParkedQuestion;
use parking::Parking;
pub use request::{
    AcknowledgementTiming, CallDelivery, CallRequest, CallTimeLimits, EventDelivery, EventInterest,
    EventListener, Patience, RequestIdentity,
};

use crate::{
    approval::CallApprovalState,
    catalog::CatalogEntry,
    execution::deadline::Pauses,
    hooks::{OutputMutation, witness::CallWitnesses},
    record::{
        artifacts::CallArtifacts,
        journal::RequestKey,
        redaction::{CallRedactor, HostRedactor, KnownSecrets},
    },
    result::{CallEnding, Unkept},
    scheduling::{Permit, batch::BatchMember},
    session::Session,
};

/// The part of a call that others may touch while it runs: cancel it, look at its stage, hear its events.
pub(crate) struct LiveCall {
    pub(crate) id: InvocationId,
    pub(crate) tool: String,
    pub(crate) began: Instant,
    /// When its caller asked an earlier host for it.
    pub(crate) asked_for_at: Option<jiff::Timestamp>,
    session: SessionId,
    principal: Principal,
    cancel: CancellationToken,
    cancellation: OnceLock<CallCancellation>,
    /// Stopping the call that made this one stops this one.
    is_nested: bool,
    /// Let go of at the end, so that a reader sees the end even while somebody holds the call.
    listener: Mutex<Option<Arc<dyn EventListener>>>,
    wants: EventInterest,
    /// Whoever hears of every call.
    pub(super) watch: Option<Box<CallWitnesses>>,
    seq: AtomicU64,
    dropped: AtomicU64,
    stage: AtomicU64,
    milestones: Mutex<Milestones>,
    redactor: Arc<HostRedactor>,
    /// The call's sensitive texts. Grows: a hook's rewrite may bring more.
    secrets: Mutex<OwnSecrets>,
    outputs: Mutex<Outputs>,
    /// What it kept so far.
    pub(crate) artifacts: CallArtifacts,
    accepted: SetOnce<()>,
    /// How many wait for its answer.
    awaited: AtomicU64,
    over: SetOnce<()>,
    /// The question it is parked on.
    parking: Parking,
    pub(crate) caller: Option<Arc<dyn ConsultableCaller>>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
    /// The span of its caller, where that was told.
    pub(crate) caller_span: Option<Box<TraceContext>>,
    /// Time that somebody else is waited for while it runs.
    pub(crate) pauses: Pauses,
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
        Self {
            id,
            tool: request.tool.clone(),
            began: Instant::now(),
            asked_for_at: None,
            session: request.session.id().clone(),
            principal: request.session.principal().clone(),
            cancel: CancellationToken::new(),
            cancellation: OnceLock::new(),
            is_nested: false,
            listener: Mutex::new(request.delivery.listener.clone()),
            wants: request
                .delivery
                .listener
                .as_ref()
                .map_or(EventInterest::Nothing, |listener| listener.wants()),
            watch: None,
            seq: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            stage: AtomicU64::new(0),
            milestones: Mutex::default(),
            redactor,
            secrets: Mutex::default(),
            artifacts: CallArtifacts::default(),
            outputs: Mutex::default(),
            accepted: SetOnce::new(),
            awaited: AtomicU64::new(0),
            over: SetOnce::new(),
            parking: Parking::default(),
            caller: request.delivery.caller.clone(),
            meta: request.meta.clone(),
            caller_span: request.identity.trace.clone(),
            pauses: Pauses::default(),
        }
    }

    /// The call is on record, or has ended: it may be acknowledged.
    pub(crate) fn accepted(&self) {
        let _ = self.accepted.set(());
    }

    /// The call is over: whoever listens hears no more events.
    pub(crate) fn take_listener(&self) -> Option<Arc<dyn EventListener>> {
        self.listener.lock().take()
    }

    /// Somebody waits for the answer from now on.
    pub(crate) fn await_answer(&self) {
        self.awaited.fetch_add(1, Ordering::SeqCst);
    }

    /// And no longer does.
    pub(crate) fn stop_awaiting(&self) {
        self.awaited.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether anybody would hear its answer now.
    pub(crate) fn is_awaited(&self) -> bool {
        let listener = self.listener.lock();
        listener
            .as_ref()
            .is_some_and(|listener| listener.awaits_answer())
            || self.awaited.load(Ordering::SeqCst) > 0
    }

    pub(crate) async fn wait_accepted(&self) {
        self.accepted.wait().await;
    }

    /// The call is not known as running any more: what is to be known of it is on record.
    pub(crate) fn over(&self) {
        let _ = self.over.set(());
    }

    pub(crate) async fn wait_over(&self) {
        self.over.wait().await;
    }

    pub(crate) fn parking(&self) -> &Parking {
        &self.parking
    }

    pub(crate) fn say_queued(&self) {
        self.parking.notify();
        self.say("waiting for a free slot or for another call to finish");
    }

    /// Says what the host is doing with the call.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.emit(EventBody::Status {
            message: message.into(),
        });
    }

    pub(crate) fn host_redactor(&self) -> &HostRedactor {
        &self.redactor
    }

    pub(crate) fn add_secrets(&self, secrets: Vec<String>) {
        self.secrets.lock().add(secrets);
    }

    /// What the call may not tell, as far as that is known now.
    pub(crate) fn redactor(&self) -> CallRedactor {
        let own = self.secrets.lock().finder.clone();
        CallRedactor {
            own,
            ..self.redactor.of_no_call()
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        let place = usize::try_from(self.stage.load(Ordering::Relaxed)).unwrap_or_default();
        STAGES[place.min(STAGES.len() - 1)]
    }

    fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u64, Ordering::Relaxed);
        if self.wants == EventInterest::Everything {
            self.emit(EventBody::Stage { stage });
        }
    }

    /// Events sent so far and events lost to a slow reader.
    pub(crate) fn event_counts(&self) -> (u64, u64) {
        (
            self.seq.load(Ordering::Relaxed),
            self.dropped.load(Ordering::Relaxed),
        )
    }
}

const STAGES: [Stage; 13] = [
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
        if self.wants == EventInterest::Nothing && self.watch.is_none() {
            let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
            self.mark(seq, &body);
            return;
        }
        let redactor = self.redactor();
        if let EventBody::Output(chunk) = body {
            // Held until it is told, so that two threads of one tool do not tell pieces of one stream in another order.
            let mut outputs = self.outputs.lock();
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
        let mut outputs = self.outputs.lock();
        outputs
            .finish()
            .into_iter()
            .for_each(|chunk| self.tell(EventBody::Output(chunk)));
    }

    fn tell(&self, body: EventBody) {
        // Numbered under the lock, so that two threads of one tool are heard in the order of their numbers.
        let listener = self.listener.lock();
        let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
        self.mark(seq, &body);
        let event = Event {
            invocation_id: self.id,
            seq,
            at: crate::port::now(),
            body,
        };
        self.watch.iter().for_each(|watch| watch.hear(&event));
        if self.wants == EventInterest::Nothing {
            return;
        }
        if listener
            .as_ref()
            .is_none_or(|listener| listener.hear(event) == EventDelivery::Lost)
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LiveCall {
    fn mark(&self, seq: u64, body: &EventBody) {
        let mut milestones = self.milestones.lock();
        milestones.pass(seq, micros(self.began.elapsed()), body);
    }

    /// What stays on record of its progress.
    pub(crate) fn milestones(&self) -> Vec<Milestone> {
        self.milestones.lock().told(&self.redactor())
    }
}

/// The tool a call was resolved to.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) entry: Arc<CatalogEntry>,
    pub(crate) source: Arc<dyn SourceSession>,
}

/// How many records of this call exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRecord {
    Nothing,
    Accepted,
    Started,
}

/// What hooks left behind on a call's way.
#[derive(Default)]
pub(crate) struct HookContributions {
    pub(crate) runs: Vec<HookRun>,
    /// What they think of the call.
    pub(crate) opinions: Vec<Vote>,
    /// What they want the model to be told with the result.
    pub(crate) context: Vec<String>,
    pub(crate) output_mutations: Vec<OutputMutation>,
}

/// One call on its way. Owned by the loop in `call.rs`.
pub(crate) struct PipelineCall {
    pub(crate) live: Arc<LiveCall>,
    pub(crate) parent: Option<Parent>,
    /// Whether the decision about its parent covers it.
    pub(crate) is_step: bool,
    pub(crate) session: Arc<Session>,
    pub(crate) face: String,
    pub(crate) request: Option<RequestKey>,
    pub(crate) native_call_id: Option<NativeCallId>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) patience: Option<Patience>,
    /// How long calls that it makes wait for a person's answer.
    pub(crate) nested_patience: Option<Duration>,
    /// When it ends, wherever it stands.
    pub(crate) latest_end: Option<Instant>,
    pub(crate) stage: Stage,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) inputs: Inputs,
    /// What its session saw when the tool was looked for.
    pub(crate) surface: Option<SurfaceId>,
    pub(crate) resolved: Option<ResolvedTool>,
    pub(crate) effects: Option<Effects>,
    pub(crate) decision: Option<Decision>,
    /// The questions it raised, and the yes it goes on with.
    pub(crate) asking: CallApprovalState,
    pub(crate) hooks: HookContributions,
    pub(crate) permit: Option<Permit>,
    pub(crate) ending: Option<CallEnding>,
    /// What its result is too large to show.
    pub(crate) unkept: Vec<Unkept>,
    /// The answer of the recorded call that it is, in a replay.
    pub(crate) replayed: Option<Box<ToolResult>>,
    pub(crate) on_record: OnRecord,
    /// Its place in a batch, as its caller gave it.
    pub(crate) place: Option<BatchPlace>,
    /// That place, once it was taken.
    pub(crate) member: Option<BatchMember>,
    pub(crate) background: bool,
    /// What it met on its way, for its record.
    pub(crate) met: CallCircumstances,
    pub(crate) queued: Duration,
    pub(crate) executed: Duration,
}

impl PipelineCall {
    pub(crate) fn new(live: Arc<LiveCall>, request: CallRequest, key: Option<RequestKey>) -> Self {
        let CallRequest {
            identity,
            times,
            delivery,
            ..
        } = request;
        let in_foreground = !delivery.background;
        Self {
            patience: times.patience.filter(|_| in_foreground),
            nested_patience: times.nested_patience.or(times.patience.map(Patience::time)),
            latest_end: times
                .total_time
                .filter(|_| in_foreground)
                .map(|time| live.began + time),
            live,
            parent: None,
            is_step: false,
            session: request.session,
            face: request.face.to_owned(),
            request: key,
            native_call_id: identity.native_call_id,
            correlation_id: identity.correlation_id,
            timeout: times.timeout,
            stage: Stage::Resolve,
            transitions: Vec::with_capacity(STAGES.len()),
            inputs: Inputs::new(request.input),
            surface: None,
            resolved: None,
            effects: None,
            decision: None,
            asking: CallApprovalState::default(),
            hooks: HookContributions::default(),
            permit: None,
            ending: None,
            unkept: Vec::new(),
            replayed: None,
            on_record: OnRecord::Nothing,
            place: request.batch,
            member: None,
            background: delivery.background,
            met: CallCircumstances::default(),
            queued: Duration::ZERO,
            executed: Duration::ZERO,
        }
    }

    /// Notes that the call reached its stage.
    pub(crate) fn enter(&mut self) {
        self.transitions.push(Transition {
            stage: self.stage,
            at_us: micros(self.live.began.elapsed()),
        });
        self.live.set_stage(self.stage);
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
