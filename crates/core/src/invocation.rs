//! Layer 4, invocation: the identity, the inputs and the state of a call.

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

/// The tool that a call resolved to.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) entry: Arc<CatalogEntry>,
    pub(crate) source: Arc<dyn SourceSession>,
}

/// The last kind of record that exists of a call before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRecord {
    Nothing,
    Accepted,
    Started,
}

/// The contributions of hooks to a call.
#[derive(Default)]
pub(crate) struct HookContributions {
    pub(crate) runs: Vec<HookRun>,
    /// The votes about the call.
    pub(crate) opinions: Vec<Vote>,
    /// The text for the model.
    pub(crate) context: Vec<String>,
    pub(crate) output_mutations: Vec<OutputMutation>,
}

/// The state of one call in the pipeline. Owned by the loop in `call.rs`.
pub(crate) struct PipelineCall {
    pub(crate) live: Arc<LiveCall>,
    pub(crate) session: Arc<Session>,
    pub(crate) lineage: CallLineage,
    pub(crate) origin: CallOrigin,
    pub(crate) waits: CallWaitLimits,
    pub(crate) progress: PipelineProgress,
    pub(crate) inputs: CallInputs,
    pub(crate) findings: CallFindings,
    /// The questions that the call raised, and the approval that it continues with.
    pub(crate) asking: CallApprovalState,
    pub(crate) hooks: HookContributions,
    pub(crate) turn: CallTurn,
    pub(crate) conclusion: CallConclusion,
}

/// The parent of a nested call.
#[derive(Clone)]
pub(crate) struct ParentCall {
    pub(crate) id: InvocationId,
    /// The ids from the outermost call down to this parent.
    pub(crate) line: Vec<InvocationId>,
    /// The source of the parent's tool.
    pub(crate) source: Option<SourceIndex>,
    /// Nested calls end by this time.
    pub(crate) deadline: Instant,
    /// The resources that the parent and its ancestors hold.
    pub(crate) held: Vec<ResourceUse>,
    /// Whether an operator approved the parent.
    pub(crate) is_approved: bool,
}

#[derive(Default)]
pub(crate) struct CallLineage {
    pub(crate) parent: Option<ParentCall>,
    /// Whether the parent's decision covers this call.
    pub(crate) is_step: bool,
}

/// The origin and the ids of a call.
pub(crate) struct CallOrigin {
    pub(crate) face: String,
    pub(crate) request: Option<RequestKey>,
    pub(crate) native_call_id: Option<NativeCallId>,
    pub(crate) correlation_id: Option<String>,
    /// The place in a batch, as the caller sent it.
    pub(crate) place: Option<BatchPlace>,
    pub(crate) background: bool,
}

/// The time limits of a call.
pub(crate) struct CallWaitLimits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) patience: Option<Patience>,
    /// How long nested calls wait for an approval.
    pub(crate) nested_patience: Option<Duration>,
    /// The time at which the call ends at any stage.
    pub(crate) latest_end: Option<Instant>,
}

/// The progress of a call and its circumstances.
pub(crate) struct PipelineProgress {
    pub(crate) stage: Stage,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) on_record: OnRecord,
    pub(crate) met: CallCircumstances,
    pub(crate) queued: Duration,
    pub(crate) executed: Duration,
}

/// The findings of the stages before execution.
#[derive(Default)]
pub(crate) struct CallFindings {
    /// The session's surface at the time of the lookup.
    pub(crate) surface: Option<SurfaceId>,
    pub(crate) resolved: Option<ResolvedTool>,
    pub(crate) effects: Option<Effects>,
    pub(crate) decision: Option<Decision>,
}

/// The scheduler's permit, and the membership in a batch.
#[derive(Default)]
pub(crate) struct CallTurn {
    pub(crate) permit: Option<Permit>,
    pub(crate) member: Option<BatchMember>,
}

/// The end of a call before it is mapped to a result.
#[derive(Default)]
pub(crate) struct CallConclusion {
    pub(crate) ending: Option<CallEnding>,
    /// The content that is too large for the result.
    pub(crate) unkept: Vec<UnkeptPart>,
    /// The recorded answer, in a replay.
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
            progress: PipelineProgress {
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

    /// Records that the call reached its stage.
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
