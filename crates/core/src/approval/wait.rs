//! The stage between the decision and the schedule: a call that needs approval raises its question, waits for the
//! answer and continues with it, also after a restart of the host.

use jiff::SignedDuration;
use serde_json::Value;
use tokio::time::Instant;
use toolpost_model::{
    ApprovalStatus, Arguments, Behavior, CallInput, EventBody, InvocationId, Outcome,
    PermissionInput, PrincipalName, Stage,
};

use crate::{
    approval::{
        self, ApprovalAnswer, ApprovalConsent, ApprovalGrant, ApprovalRejection, Approvals,
        CallApproval, KeptVerdictFlag, OneUse, QuestionAdmission, QuestionKey, QuestionLeaveReason,
        QuestionLeaveReply, QuestionTerms, QuestionWaiter,
        coverage::{ApprovalHashes, changed_programs, hashes, is_covered, look_at_programs},
    },
    call::{CallRunKind, StageExit, lost_its_way},
    hooks::{InputMutation, changed_fields},
    host::HostInner,
    invocation::{
        CancelReason, ParkedQuestion, PipelineCall, micros,
        patience::out_of_patience_for_answer,
        resolve::{self, show},
        validate::validate,
    },
    permission::decide::{decide, override_by_approval},
    record::{body::RecordedQuestion, journal::RecordKind},
    result::{self, CallEnding},
};

/// Decides on a call whose question was raised by an earlier host.
pub(crate) async fn decide_resumed(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    let step = decide(host, call, way).await;
    still_asked(host, call).await.unwrap_or(step)
}

/// A resumed call still needs its approval if the rules allow it now. The question may have come from a hook, hooks see
/// a call only once, and a fresh decision would let the call pass without the hook's vote. A deny of today does count.
async fn still_asked(host: &HostInner, call: &mut PipelineCall) -> Option<StageExit> {
    let is_allowed = call
        .findings
        .decision
        .as_ref()
        .is_some_and(|decision| decision.behavior == Behavior::Allow);
    if !is_allowed || call.asking.earlier.is_none() {
        return None;
    }
    if let Err(ending) = look_at_programs(call).await {
        return Some(StageExit::End(ending));
    }
    if is_covered(host, call) {
        return None;
    }
    call.findings.decision = call
        .asking
        .earlier
        .as_ref()
        .map(|earlier| earlier.decision.clone());
    Some(StageExit::Next(Stage::AwaitApproval))
}

/// Resumes a call of an earlier host after its hooks.
pub(crate) fn take_up(host: &HostInner, call: &mut PipelineCall) -> StageExit {
    let answered = call
        .asking
        .earlier
        .as_ref()
        .and_then(|earlier| earlier.answer.clone());
    let Some((yes, one_use)) = answered else {
        let Some(input) = &call.inputs.call else {
            return lost_its_way();
        };
        call.inputs.permission = Some(PermissionInput::new(input.arguments().clone()));
        return StageExit::Next(Stage::Decide);
    };
    go_on(host, call, yes, one_use, None)
}

/// Asks an operator, if the host has one.
pub(crate) async fn await_approval(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    if let Err(ending) = look_at_programs(call).await {
        return StageExit::End(ending);
    }
    let (Some(resolved), Some(decision), Some(hashes)) = (
        &call.findings.resolved,
        &call.findings.decision,
        hashes(host, call),
    ) else {
        return lost_its_way();
    };
    let name = resolved.entry.label();
    if is_covered(host, call) {
        return admitted(call);
    }
    match (way, host.approval.mode) {
        (CallRunKind::Recovered, _) => StageExit::End(result::restarted(
            "it needs approval, and its caller is gone",
        )),
        (CallRunKind::Live(_) | CallRunKind::Resumed | CallRunKind::Dry, Approvals::Nobody) => {
            StageExit::End(result::nobody_to_ask(name, decision))
        }
        (
            CallRunKind::Live(_) | CallRunKind::Resumed | CallRunKind::Dry,
            Approvals::Ask { timeout, .. },
        ) => {
            let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
            ask(host, call, hashes, timeout).await
        }
    }
}

/// An operator approved exactly this call. The decision keeps both reasons: the rule that asked and the approval.
fn admitted(call: &mut PipelineCall) -> StageExit {
    if let (Some(decision), Some(approval)) = (&mut call.findings.decision, &call.asking.approval) {
        let yes = &approval.yes;
        let text = format!(
            "{} approved it (question {})",
            yes.by,
            approval::short(yes.ask_id)
        );
        override_by_approval(decision, Behavior::Allow, text);
    }
    StageExit::Next(Stage::Admit)
}

/// Raises or joins a question and waits for its answer.
async fn ask(
    host: &HostInner,
    call: &mut PipelineCall,
    hashes: ApprovalHashes,
    timeout: SignedDuration,
) -> StageExit {
    let changed = changed_programs(host, call, hashes);
    let mut seat = loop {
        let engine = host.engine(&call.session);
        let terms = QuestionTerms {
            changed_programs: changed.clone(),
            ..terms(call, hashes, timeout)
        };
        let surface = host.surface(&call.session);
        let Some(draft) = approval::draft(call, &*engine, &surface, &terms) else {
            return lost_its_way();
        };
        match host
            .approval
            .questions
            .enter(draft, call.live.id, &call.session)
        {
            QuestionAdmission::New(seat) => {
                if let Err(ending) = put_on_record(host, call, &seat, hashes).await {
                    return StageExit::End(ending);
                }
                seat.open();
                break seat;
            }
            QuestionAdmission::Joined(seat) => {
                if let Err(ending) = put_on_record(host, call, &seat, hashes).await {
                    return StageExit::End(ending);
                }
                break seat;
            }
            QuestionAdmission::Late(late) => {
                give_back(host, call);
                return take_late(host, call, late);
            }
            // The wait lasts as long as one record of the journal.
            QuestionAdmission::Busy(mut over) => {
                let _ = over.changed().await;
            }
            QuestionAdmission::Full(full) => {
                return StageExit::End(result::too_many_questions(&full));
            }
        }
    };
    let ask_id = seat.request().ask_id;
    let expires_at = seat.request().expires_at;
    call.live.emit(EventBody::Approval(ApprovalStatus::Pending {
        ask_id,
        expires_at,
    }));
    call.live.parking().park(ParkedQuestion {
        ask_id,
        expires_at,
        since: Instant::now(),
    });
    let word = wait(host, call, &mut seat).await;
    // A call that its host leaves open stays parked. Otherwise its callers would take `approval_pending` for its end.
    if !call.asking.left_open {
        call.live.parking().unpark();
    }
    match word {
        Ok(ApprovalAnswer::Yes(yes)) => {
            give_back(host, call);
            go_on(host, call, yes, OneUse(false), None)
        }
        Ok(ApprovalAnswer::No(no)) => refused(call, no, KeptVerdictFlag::No),
        Ok(ApprovalAnswer::Expired) => StageExit::End(result::approval_expired(name(call), ask_id)),
        Err(ending) => StageExit::End(ending),
    }
}

fn name(call: &PipelineCall) -> &str {
    call.findings
        .resolved
        .as_ref()
        .map_or(call.live.tool.as_str(), |resolved| resolved.entry.label())
}

/// Restores the question of a call whose caller got `approval_pending`. If the facts of the call changed, the question
/// is gone, and the call asks anew when it comes again.
pub(crate) async fn ask_again(host: &HostInner, call: &mut PipelineCall) {
    let asked = call.asking.earlier.as_ref().map(|earlier| earlier.asked);
    if call.progress.stage != Stage::AwaitApproval || look_at_programs(call).await.is_err() {
        return;
    }
    let (Some(asked), Some(hashes)) = (asked, hashes(host, call)) else {
        return;
    };
    if asked.hash != hashes.whole {
        return;
    }
    let terms = terms(call, hashes, SignedDuration::ZERO);
    let surface = host.surface(&call.session);
    if let Some(draft) = approval::draft(call, &*host.engine(&call.session), &surface, &terms) {
        host.approval.questions.restore(draft);
    }
}

/// An id stands for one question, because an answer is about the text that the operator saw under this id. A call whose
/// facts changed asks under a new id. A recovered call that asks the same question keeps the id and its expiry.
fn terms(call: &PipelineCall, hashes: ApprovalHashes, timeout: SignedDuration) -> QuestionTerms {
    let now = crate::port::now();
    let earlier = call.asking.earlier.as_ref().map(|earlier| earlier.asked);
    if let Some(asked) =
        earlier.filter(|asked| asked.hash == hashes.whole && call.asking.asked.is_none())
    {
        // The clock may have been set back while no host ran. The time left never exceeds the original time.
        let whole = asked.expires_at.duration_since(asked.asked_at);
        let left = asked
            .expires_at
            .duration_since(now)
            .clamp(SignedDuration::ZERO, whole.abs());
        let deadline = Instant::now() + left.unsigned_abs();
        return QuestionTerms {
            ask_id: asked.ask_id,
            hashes,
            asked_at: asked.asked_at,
            expires_at: asked.expires_at,
            deadline,
            changed_programs: Vec::new(),
            reopened: Some(asked),
        };
    }
    let is_first = earlier.is_none() && call.asking.asked.is_none();
    let ask_id = if is_first {
        call.live.id
    } else {
        InvocationId::new()
    };
    let deadline = Instant::now() + timeout.unsigned_abs();
    let expires_at = now + timeout;
    QuestionTerms {
        ask_id,
        hashes,
        asked_at: now,
        expires_at,
        deadline,
        changed_programs: Vec::new(),
        reopened: None,
    }
}

/// Records the question before an operator can see it. An answer to an unrecorded question could not be resolved after
/// a crash.
async fn put_on_record(
    host: &HostInner,
    call: &mut PipelineCall,
    seat: &QuestionWaiter,
    hashes: ApprovalHashes,
) -> Result<(), CallEnding> {
    let request = seat.request();
    let asked = RecordedQuestion {
        ask_id: request.ask_id,
        hash: request.call_hash,
        without_files: hashes.without_files,
        asked_at: request.asked_at,
        expires_at: request.expires_at,
        offer: request.source_offer.as_ref().map(approval::hash_offer),
    };
    let is_known = call
        .asking
        .earlier
        .as_ref()
        .is_some_and(|earlier| earlier.asked == asked);
    call.asking.asked = Some(asked);
    if !is_known {
        resolve::append(host, call, RecordKind::Asked).await?;
    }
    call.live.accepted();
    Ok(())
}

/// The events that end the wait without an answer.
enum ApprovalInterruption {
    Canceled,
    PatienceOver,
    HostGoes,
}

async fn interrupted(
    host: &HostInner,
    call: &PipelineCall,
    asked: Instant,
) -> ApprovalInterruption {
    tokio::select! {
        biased;
        () = call.live.token().cancelled() => ApprovalInterruption::Canceled,
        () = host.closing().cancelled() => ApprovalInterruption::HostGoes,
        () = out_of_patience_for_answer(call, asked) => ApprovalInterruption::PatienceOver,
    }
}

async fn wait(
    host: &HostInner,
    call: &mut PipelineCall,
    seat: &mut QuestionWaiter,
) -> Result<ApprovalAnswer, CallEnding> {
    let ask_id = seat.request().ask_id;
    let asked = Instant::now();
    loop {
        let cause = tokio::select! {
            biased;
            word = seat.word() => return Ok(word),
            cause = interrupted(host, call, asked) => cause,
        };
        let why = match cause {
            ApprovalInterruption::Canceled => QuestionLeaveReason::GivenUp,
            ApprovalInterruption::PatienceOver | ApprovalInterruption::HostGoes => {
                QuestionLeaveReason::ForNow
            }
        };
        if seat.leave(why) == QuestionLeaveReply::NotNow {
            // An answer for this call is being recorded. If the record fails, the next iteration leaves.
            seat.changed().await;
            continue;
        }
        return Err(match cause {
            ApprovalInterruption::Canceled => result::canceled_before_start(
                call.live.cancel_reason().unwrap_or(CancelReason::Requested),
            ),
            ApprovalInterruption::PatienceOver => result::approval_pending(name(call), ask_id),
            ApprovalInterruption::HostGoes => {
                // A waiting caller gets `approval_pending`, which is the recorded end of the call. Without a waiting
                // caller the call stays open, and the next host resumes it.
                call.asking.left_open = !call.live.is_awaited();
                result::approval_pending(name(call), ask_id)
            }
        });
    }
}

/// The answer arrived before the call: the caller had stopped waiting and calls again.
fn take_late(host: &HostInner, call: &mut PipelineCall, late: ApprovalGrant) -> StageExit {
    match late.word.clone() {
        ApprovalAnswer::Yes(yes) => go_on(host, call, yes, OneUse(true), Some(late)),
        ApprovalAnswer::No(no) => refused(call, no, KeptVerdictFlag::Yes),
        ApprovalAnswer::Expired => lost_its_way(),
    }
}

fn refused(call: &mut PipelineCall, no: ApprovalRejection, kept: KeptVerdictFlag) -> StageExit {
    if let Some(decision) = &mut call.findings.decision {
        let text = format!(
            "{} did not approve it (question {})",
            no.by,
            approval::short(no.ask_id)
        );
        override_by_approval(decision, Behavior::Deny, text);
    }
    let ending = result::approval_refused(name(call), &no);
    call.asking.refusal = Some((no, kept));
    StageExit::End(ending)
}

/// Continues an approved call. It is decided again, because the rules or its arguments may have changed. A deny of the
/// new decision counts; an ask is answered by this approval.
fn go_on(
    host: &HostInner,
    call: &mut PipelineCall,
    yes: ApprovalConsent,
    one_use: OneUse,
    grant: Option<ApprovalGrant>,
) -> StageExit {
    call.live.emit(EventBody::Approval(ApprovalStatus::Granted {
        ask_id: yes.ask_id,
    }));
    let edited = yes.arguments.clone();
    let by = yes.by.clone();
    call.asking.approval = Some(CallApproval {
        yes,
        one_use,
        grant,
        spent: false,
    });
    if let Some(arguments) = edited
        && let Err(ending) = edit(host, call, arguments, &by)
    {
        return StageExit::End(ending);
    }
    let Some(input) = &call.inputs.call else {
        return lost_its_way();
    };
    call.inputs.permission = Some(PermissionInput::new(input.arguments().clone()));
    StageExit::Next(Stage::Decide)
}

/// Replaces the arguments of the call by the operator's, after the same validation.
fn edit(
    host: &HostInner,
    call: &mut PipelineCall,
    arguments: Value,
    by: &PrincipalName,
) -> Result<(), CallEnding> {
    if let Some(input) = &call.inputs.call {
        let changed_fields = changed_fields(input.arguments().value(), &arguments);
        call.inputs.note_change(InputMutation {
            source_type: "permission_prompt".into(),
            source: by.to_string(),
            changed_fields,
            reason: "changed by the operator who approved the call".to_owned(),
            at_us: micros(call.live.began.elapsed()),
            arguments_before: None,
        });
    }
    call.inputs.call = Some(CallInput::new(Arguments::from_value(arguments)));
    if let StageExit::End(ending) = validate(host, call) {
        return Err(ending);
    }
    show(call);
    Ok(())
}

/// Marks the approval as used, because the call begins to run.
pub(crate) fn spend(call: &mut PipelineCall) {
    if let Some(approval) = &mut call.asking.approval {
        approval.spent = true;
    }
}

/// Returns the approval of a call that ends before it ran. A kept answer is kept again. A direct answer is kept if the
/// host rejected the call, for example because its queue was full: the operator is then not asked again when the call
/// is repeated.
pub(crate) fn give_back(host: &HostInner, call: &mut PipelineCall) {
    let Some(CallApproval {
        yes,
        grant,
        spent: false,
        ..
    }) = &mut call.asking.approval
    else {
        return;
    };
    let not_taken = matches!(
        &call.conclusion.ending,
        Some(CallEnding::Failure {
            outcome: Outcome::Rejected,
            ..
        })
    );
    let late = match (grant.take(), call.asking.asked, host.approval.mode) {
        (Some(late), _, _) => late,
        // An approval of an earlier question of this call does not answer its latest question.
        (None, Some(asked), Approvals::Ask { grant_for, .. })
            if not_taken && asked.ask_id == yes.ask_id =>
        {
            let key = QuestionKey {
                principal: call.session.principal().clone(),
                hash: asked.hash,
            };
            let without_files = asked.without_files;
            let word = ApprovalAnswer::Yes(yes.clone());
            ApprovalGrant {
                key,
                without_files,
                word,
                until: Instant::now() + grant_for,
            }
        }
        (None, _, _) => return,
    };
    if late.until > Instant::now() {
        host.approval.questions.keep(late);
    }
}
