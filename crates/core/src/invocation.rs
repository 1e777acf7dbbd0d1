//! Layer 4: what the agent asked for, and everything known of it on its way.

mod answer;
mod cancel;
mod idempotency;
mod inputs;
mod live;
mod met;
mod milestones;
mod output;
pub(crate) mod patience;
mod request;
pub(crate) mod resolve;
pub(crate) mod validate;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use toolpost_model::{
    BatchPlace, Decision, Effects, HookRun, InvocationId, NativeCallId, ResourceUse, SourceSession,
    Stage, SurfaceId, ToolResult, Transition, Vote,
};

pub(crate) use answer::OnDrop;
pub use answer::{CallHandle, CallHandleState, PendingCall, PendingCause, RecordedResult};
pub(crate) use cancel::CallCancellation;
pub use cancel::CancelReason;
pub(crate) use idempotency::{
    ClaimedRequest, RequestIdClaim, RequestIdLookup, RequestIdStatus, SessionRequests,
};
pub use idempotency::{EarlierCall, request_digest};
pub(crate) use inputs::CallInputs;
pub(crate) use live::LiveCall;
use live::STAGES;
pub(crate) use met::CallCircumstances;
pub use met::{CallDeadline, DeadlineBy, LateAnswer, MatchedBy};
pub(crate) use milestones::Milestone;
pub use milestones::ModuleEvent;
pub(crate) use patience::ParkedQuestion;
pub use request::{
    AcknowledgementTiming, CallDelivery, CallRequest, CallTimeLimits, EventDelivery, EventInterest,
    EventListener, Patience, RequestIdentity,
};

use crate::{
    approval::CallApprovalState,
    catalog::CatalogEntry,
    hooks::OutputMutation,
    port::SourceIndex,
    record::journal::RequestKey,
    result::{CallEnding, UnkeptPart},
    scheduling::{Permit, batch::BatchMember},
    session::Session,
};

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
    pub(crate) session: Arc<Session>,
    pub(crate) lineage: CallLineage,
    pub(crate) origin: CallOrigin,
    pub(crate) waits: CallWaitLimits,
    pub(crate) progress: CallProgress,
    pub(crate) inputs: CallInputs,
    pub(crate) findings: CallFindings,
    /// The questions it raised, and the approval it goes on with.
    pub(crate) asking: CallApprovalState,
    pub(crate) hooks: HookContributions,
    pub(crate) turn: CallTurn,
    pub(crate) conclusion: CallConclusion,
}

/// The call that made a call.
#[derive(Clone)]
pub(crate) struct ParentCall {
    pub(crate) id: InvocationId,
    /// The calls from the outermost one down to it.
    pub(crate) line: Vec<InvocationId>,
    /// Where its tool comes from.
    pub(crate) source: Option<SourceIndex>,
    /// Nothing it makes outlasts it.
    pub(crate) deadline: Instant,
    /// What it and the calls above it hold.
    pub(crate) held: Vec<ResourceUse>,
    /// Whether a person approved it.
    pub(crate) is_approved: bool,
}

/// Whether another call made a call.
#[derive(Default)]
pub(crate) struct CallLineage {
    pub(crate) parent: Option<ParentCall>,
    /// Whether the decision about its parent covers it.
    pub(crate) is_step: bool,
}

/// Where a call came from, and under which ids.
pub(crate) struct CallOrigin {
    pub(crate) face: String,
    pub(crate) request: Option<RequestKey>,
    pub(crate) native_call_id: Option<NativeCallId>,
    pub(crate) correlation_id: Option<String>,
    /// Its place in a batch, as its caller gave it.
    pub(crate) place: Option<BatchPlace>,
    pub(crate) background: bool,
}

/// How long a call may wait and run.
pub(crate) struct CallWaitLimits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) patience: Option<Patience>,
    /// How long calls that it makes wait for an approval.
    pub(crate) nested_patience: Option<Duration>,
    /// When it ends, at any stage.
    pub(crate) latest_end: Option<Instant>,
}

/// How far a call is, and what it met on the way.
pub(crate) struct CallProgress {
    pub(crate) stage: Stage,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) on_record: OnRecord,
    pub(crate) met: CallCircumstances,
    pub(crate) queued: Duration,
    pub(crate) executed: Duration,
}

/// What the stages before execution found out.
#[derive(Default)]
pub(crate) struct CallFindings {
    /// The surface of its session when the tool was looked up.
    pub(crate) surface: Option<SurfaceId>,
    pub(crate) resolved: Option<ResolvedTool>,
    pub(crate) effects: Option<Effects>,
    pub(crate) decision: Option<Decision>,
}

/// The scheduler's leave to run, and the place in a batch once it is taken.
#[derive(Default)]
pub(crate) struct CallTurn {
    pub(crate) permit: Option<Permit>,
    pub(crate) member: Option<BatchMember>,
}

/// The end of a call before it is mapped to a result.
#[derive(Default)]
pub(crate) struct CallConclusion {
    pub(crate) ending: Option<CallEnding>,
    /// The content that is too large to show.
    pub(crate) unkept: Vec<UnkeptPart>,
    /// The answer of the recorded call, in a replay.
    pub(crate) replayed: Option<Box<ToolResult>>,
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
        let waits = CallWaitLimits {
            timeout: times.timeout,
            patience: times.patience.filter(|_| in_foreground),
            nested_patience: times.nested_patience.or(times.patience.map(Patience::time)),
            latest_end: times
                .total_time
                .filter(|_| in_foreground)
                .map(|time| live.began + time),
        };
        Self {
            live,
            session: request.session,
            lineage: CallLineage::default(),
            origin: CallOrigin {
                face: request.face.to_owned(),
                request: key,
                native_call_id: identity.native_call_id,
                correlation_id: identity.correlation_id,
                place: request.batch,
                background: delivery.background,
            },
            waits,
            progress: CallProgress {
                stage: Stage::Resolve,
                transitions: Vec::with_capacity(STAGES.len()),
                on_record: OnRecord::Nothing,
                met: CallCircumstances::default(),
                queued: Duration::ZERO,
                executed: Duration::ZERO,
            },
            inputs: CallInputs::new(request.input),
            findings: CallFindings::default(),
            asking: CallApprovalState::default(),
            hooks: HookContributions::default(),
            turn: CallTurn::default(),
            conclusion: CallConclusion::default(),
        }
    }

    /// Notes that the call reached its stage.
    pub(crate) fn enter(&mut self) {
        self.progress.transitions.push(Transition {
            stage: self.progress.stage,
            at_us: micros(self.live.began.elapsed()),
        });
        self.live.set_stage(self.progress.stage);
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
