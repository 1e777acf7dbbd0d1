//! The stage plan: the step of each stage, chosen when the call begins, so that the loop has no special cases.

use toolpost_model::Stage;

use crate::{
    approval::Approvals,
    host::HostInner,
    invocation::{AcknowledgementTiming, PipelineCall},
};

/// The kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRunKind {
    /// A call with a caller.
    Live(AcknowledgementTiming),
    /// A call that the last host left open. It runs only if a repeat is safe.
    Recovered,
    /// A call that waited for approval when the last host stopped. It runs after an approval.
    Resumed,
    /// For `explain`.
    Dry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageStep {
    Resolve,
    Parse,
    Validate,
    Observe,
    PreHooks,
    /// Answers the call from a cassette.
    Replay,
    /// Takes a resumed call's arguments from its record, because the hooks have seen the call already.
    TakeUp,
    Decide,
    /// Decides on a resumed call, which needs its approval even if the rules allow it now.
    DecideResumed,
    AwaitApproval,
    Admit,
    Execute,
    Stop,
}

/// The steps that differ between calls.
pub(super) struct StagePlan {
    pre_hooks: StageStep,
    decide: StageStep,
    await_approval: StageStep,
    admit: StageStep,
}

impl StagePlan {
    pub(super) fn of(host: &HostInner, call: &PipelineCall, mode: CallRunKind) -> Self {
        let is_dry = mode == CallRunKind::Dry;
        let was_asked = call.asking.earlier.is_some();
        Self {
            pre_hooks: match (&host.record.replay, was_asked) {
                (Some(_), _) if !is_dry => StageStep::Replay,
                (_, true) => StageStep::TakeUp,
                (_, false) => StageStep::PreHooks,
            },
            decide: if was_asked {
                StageStep::DecideResumed
            } else {
                StageStep::Decide
            },
            await_approval: if is_dry && host.approval.mode != Approvals::Nobody {
                StageStep::Stop
            } else {
                StageStep::AwaitApproval
            },
            admit: if is_dry {
                StageStep::Stop
            } else {
                StageStep::Admit
            },
        }
    }

    pub(super) fn step(&self, stage: Stage) -> StageStep {
        match stage {
            Stage::Resolve => StageStep::Resolve,
            Stage::Parse => StageStep::Parse,
            Stage::Validate => StageStep::Validate,
            Stage::Observe => StageStep::Observe,
            Stage::PreHooks => self.pre_hooks,
            Stage::Decide => self.decide,
            Stage::AwaitApproval => self.await_approval,
            Stage::Admit => self.admit,
            Stage::Execute => StageStep::Execute,
            Stage::Map | Stage::PostHooks | Stage::Persist | Stage::Emit => StageStep::Stop,
        }
    }

    /// Whether the cassette overrides an end at `stage`: the recorded result counts, not the findings of this host.
    pub(super) fn is_overruled_by_replay(&self, stage: Stage) -> bool {
        self.pre_hooks == StageStep::Replay && stage < Stage::PreHooks
    }
}
