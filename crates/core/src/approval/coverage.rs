//! Whether a person's yes is for exactly the call that is about to run: the call as one number, with the files it would
//! run. The files are looked at when a question is raised and again before the call starts on the answer; a call that
//! rules allow never comes here.

use serde_json::Value;
use toolpost_model::{
    Behavior, CallHash, CallInput, Effects, Principal, ProgramChange, ProgramFile, ReasonType,
    Stage, ToolFailure,
};

use super::call_hash;
use crate::{
    call::StageExit,
    execution::credentials,
    host::HostInner,
    invocation::{PipelineCall, ResolvedTool},
    result::{self, CallEnding},
};

/// What a person would approve, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalHashes {
    /// The call with the files it would run.
    pub(crate) whole: CallHash,
    /// The same without the files, where there are some: by it a call is known again whose files changed.
    pub(crate) without_files: Option<CallHash>,
}

/// The parts of a call that go into its hash.
pub(crate) struct HashedCall<'a> {
    pub(crate) resolved: &'a ResolvedTool,
    pub(crate) arguments: &'a Value,
    pub(crate) effects: &'a Effects,
    pub(crate) programs: &'a [ProgramFile],
    pub(crate) principal: &'a Principal,
    /// Its arguments hold a value that must not be guessed from the hash.
    pub(crate) is_redacted: bool,
}

impl HashedCall<'_> {
    pub(crate) fn hashes(&self, host: &HostInner) -> ApprovalHashes {
        let salt = self.is_redacted.then_some(&host.approval.questions.salt);
        let of = |programs: &[ProgramFile]| {
            let declaration = self.resolved.entry.declaration();
            call_hash(
                declaration,
                self.arguments,
                self.effects,
                programs,
                self.principal,
                salt,
            )
        };
        let without_files = (!self.programs.is_empty()).then(|| of(&[]));
        ApprovalHashes {
            whole: of(self.programs),
            without_files,
        }
    }
}

/// The hashes of a call with its files as they were looked at last.
pub(crate) fn hashes(host: &HostInner, call: &PipelineCall) -> Option<ApprovalHashes> {
    let hashed = HashedCall {
        resolved: call.findings.resolved.as_ref()?,
        arguments: call.inputs.call.as_ref()?.arguments().value(),
        effects: call.findings.effects.as_ref()?,
        programs: &call.asking.programs,
        principal: call.session.principal(),
        is_redacted: call.inputs.redacted,
    };
    Some(hashed.hashes(host))
}

/// The files that a call would run, as they are now.
pub(crate) async fn programs_of(
    resolved: &ResolvedTool,
    input: &CallInput,
) -> Result<Vec<ProgramFile>, ToolFailure> {
    let input = credentials::with_words(input);
    resolved.source.programs(resolved.entry.id(), &input).await
}

/// Looks at the files that the call would run. Where that fails the call ends: no answer would cover what runs.
pub(crate) async fn look_at_programs(call: &mut PipelineCall) -> Result<(), CallEnding> {
    let (Some(resolved), Some(input)) = (call.findings.resolved.clone(), call.inputs.call.clone())
    else {
        return Ok(());
    };
    match programs_of(&resolved, &input).await {
        Ok(programs) => {
            call.asking.programs = programs;
            Ok(())
        }
        Err(failure) => {
            let effects = call
                .findings
                .effects
                .clone()
                .unwrap_or_else(Effects::unknown);
            Err(result::tool_failed(failure, &effects))
        }
    }
}

/// Whether a person approved exactly this, by the files as they were looked at last.
pub(crate) fn is_covered(host: &HostInner, call: &PipelineCall) -> bool {
    let approved = call
        .asking
        .approval
        .as_ref()
        .map(|approval| approval.yes.approves);
    approved.is_some() && approved == hashes(host, call).map(|hashes| hashes.whole)
}

/// Whether the call goes on because a person said yes, and not because a rule covers it whatever its files hold.
pub(crate) fn rests_on_a_yes(call: &PipelineCall) -> bool {
    let decision = call.findings.decision.as_ref();
    call.asking.approval.is_some()
        && decision.is_some_and(|decision| {
            decision.behavior == Behavior::Allow && decision.reason.kind == ReasonType::Approval
        })
}

/// Compares the files once more right before the call starts. A call whose files changed is decided anew, and then
/// asked about under a new id. Each time a person answers in between, so this comes to an end.
pub(crate) async fn compare_again(host: &HostInner, call: &mut PipelineCall) -> Option<StageExit> {
    if let Err(ending) = look_at_programs(call).await {
        return Some(StageExit::End(ending));
    }
    if is_covered(host, call) {
        return None;
    }
    call.turn.permit = None;
    call.live.say(
        "a file that it would run changed since it was approved, so it is asked about again"
            .to_owned(),
    );
    Some(StageExit::Next(Stage::Decide))
}

/// The files that are not as they were when this call, or the same call before it, was asked about.
pub(crate) fn changed_programs(
    host: &HostInner,
    call: &PipelineCall,
    hashes: ApprovalHashes,
) -> Vec<ProgramChange> {
    let approved = call
        .asking
        .approval
        .as_ref()
        .map(|approval| approval.yes.programs.clone());
    let earlier = call
        .asking
        .earlier
        .as_ref()
        .filter(|earlier| earlier.asked.hash != hashes.whole);
    let earlier = earlier.map(|earlier| earlier.programs.clone());
    let kept = || {
        host.approval
            .questions
            .files_of_kept_yes(call.session.principal(), hashes.without_files?)
    };
    // A record of before files were told has none, and nothing can be said about it.
    let before = approved
        .or(earlier)
        .or_else(kept)
        .filter(|files| !files.is_empty());
    before
        .map(|before| ProgramChange::between(&before, &call.asking.programs))
        .unwrap_or_default()
}
