//! Which step runs at each stage of a call: chosen when the call begins, so that the loop has no special cases.

use toolpost_model::Stage;

use crate::{
    approval::Approvals,
    host::HostInner,
    invocation::{AcknowledgementTiming, PipelineCall},
};

/// How the loop is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRunKind {
    /// For a caller who waits.
    Live(AcknowledgementTiming),
    /// For a call the last host left open. Only what may run twice is run.
    Recovered,
    /// For a call that was waiting for a person's answer when the last host went. It runs once it has a yes.
    Resumed,
    /// For `explain`.
    Dry,
}

/// A step of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageStep {
    Resolve,
    Parse,
    Validate,
    Observe,
    PreHooks,
    /// Answers the call from a recording.
    Replay,
    /// Takes a resumed call's arguments from its record: the hooks saw the call before.
    TakeUp,
    Decide,
    /// Decides on a resumed call, which still needs its approval where the rules allow it by now.
    DecideResumed,
    AwaitApproval,
    Admit,
    Execute,
    /// Leaves the loop.
    Stop,
}

/// The step of each stage that differs between calls.
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

    /// Whether an end at `stage` gives way to the recording: the recorded result counts, not what this host found.
    pub(super) fn is_overruled_by_replay(&self, stage: Stage) -> bool {
        self.pre_hooks == StageStep::Replay && stage < Stage::PreHooks
    }
}
