//! Whether an approval covers exactly the call that is about to run, including the files it would run.
//!
//! The files are read when a question is raised and again before the call starts on the answer. A call that rules allow
//! never gets here: its permission does not depend on the content of a file, and hashing files for every call is slow.

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

/// The hashes that identify a call to be approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalHashes {
    /// The hash of the call with the files it would run.
    pub(crate) whole: CallHash,
    /// The hash without the files, if there are any. It identifies the same call after its files changed.
    pub(crate) without_files: Option<CallHash>,
}

/// The parts of a call that go into its hash.
pub(crate) struct HashedCall<'a> {
    pub(crate) resolved: &'a ResolvedTool,
    pub(crate) arguments: &'a Value,
    pub(crate) effects: &'a Effects,
    pub(crate) programs: &'a [ProgramFile],
    pub(crate) principal: &'a Principal,
    /// The arguments hold a sensitive value, which must not be found from the hash by trial.
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

/// The hashes of a call with its files as last read.
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

/// Reads the files that a call would run.
pub(crate) async fn programs_of(
    resolved: &ResolvedTool,
    input: &CallInput,
) -> Result<Vec<ProgramFile>, ToolFailure> {
    let input = credentials::with_words(input);
    resolved.source.programs(resolved.entry.id(), &input).await
}

/// Reads the files that the call would run. A failure ends the call, because no answer could cover those files.
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

/// Whether an operator approved exactly this call with its files as last read.
pub(crate) fn is_covered(host: &HostInner, call: &PipelineCall) -> bool {
    let approved = call
        .asking
        .approval
        .as_ref()
        .map(|approval| approval.yes.approves);
    approved.is_some() && approved == hashes(host, call).map(|hashes| hashes.whole)
}

/// Whether the call continues because of an approval, and not because a rule allows it with any files.
pub(crate) fn rests_on_a_yes(call: &PipelineCall) -> bool {
    let decision = call.findings.decision.as_ref();
    call.asking.approval.is_some()
        && decision.is_some_and(|decision| {
            decision.behavior == Behavior::Allow && decision.reason.kind == ReasonType::Approval
        })
}

/// Compares the files again right before the call starts, because they can change while the question waits. A call
/// whose files changed gives back its slot, is decided again and asks under a new id. The loop ends because each round
/// needs another answer of an operator.
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

/// The files that changed since this call, or an earlier equal call, was asked about.
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
    // Older records list no files, so nothing can be compared with them.
    let before = approved
        .or(earlier)
        .or_else(kept)
        .filter(|files| !files.is_empty());
    before
        .map(|before| ProgramChange::between(&before, &call.asking.programs))
        .unwrap_or_default()
}
