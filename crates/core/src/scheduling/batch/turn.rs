//! A call among the calls of its batch: when it may begin, and when its answer may be given out.

use toolpost_model::{ErrorClass, Outcome};

use super::{BatchCallEnd, BatchMember, BatchTurn};
use crate::{
    call::CallRunKind,
    host::HostInner,
    invocation::{
        CancelReason, PipelineCall, RecordedResult,
        patience::out_of_patience,
        resolve::{accept, owes_acknowledgement},
    },
    result::{self, CallEnding},
    scheduling::WaitReason,
    scheduling::admit::QUICK,
};

/// Takes the call's place in its batch. A call that cannot have it ends before it begins.
pub(crate) fn join(call: &PipelineCall) -> Result<Option<BatchMember>, CallEnding> {
    let Some(place) = &call.origin.place else {
        return Ok(None);
    };
    call.session
        .batches
        .join(place, &call.live)
        .map(Some)
        .map_err(|refusal| result::no_place(&refusal))
}

/// Waits for the calls of the batch that must end before this one begins. Like any waiting call, it has a place in the
/// queue and ends when its caller's patience is over.
pub(crate) async fn await_turn(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> Result<(), CallEnding> {
    let Some(mut changes) = call.turn.member.as_ref().map(BatchMember::changes) else {
        return Ok(());
    };
    let latest = call.live.began + host.limits.deadline;
    let mut place = None;
    while let Some(member) = &call.turn.member {
        changes.mark_unchanged();
        let (missing, until) = match member.turn() {
            BatchTurn::Begin => return Ok(()),
            BatchTurn::GivenUp { because_of: place } => {
                return Err(result::canceled_before_start(CancelReason::SiblingFailed {
                    place,
                }));
            }
            BatchTurn::Wait { missing, until } => (missing, until),
        };
        if place.is_none() {
            let held = host
                .scheduler
                .hold(call.session.principal(), call.session.id());
            place = Some(held.map_err(|full| result::queue_full(&full))?);
            call.live.say("waiting for other calls of its batch");
            call.progress.met.waited_for.push(WaitReason::Batch);
        }
        let owes = owes_acknowledgement(call, way);
        tokio::select! {
            biased;
            // Cannot fail: the sender lives as long as the place in the batch.
            _ = changes.changed() => {}
            () = call.live.token().cancelled() => {
                let reason = call.live.cancel_reason().unwrap_or(CancelReason::Requested);
                return Err(result::canceled_before_start(reason));
            }
            () = out_of_patience(call) => {
                return Err(missing.map_or_else(result::still_queued, result::dependency_missing));
            }
            () = tokio::time::sleep(QUICK), if owes => accept(host, call).await?,
            () = tokio::time::sleep_until(until.unwrap_or_else(|| latest.into())), if until.is_some() => {}
            () = tokio::time::sleep_until(latest.into()), if missing.is_some() => {
                return Err(missing.map_or_else(result::still_queued, result::dependency_missing));
            }
        }
    }
    Ok(())
}

/// Called after the call's end is recorded: reports the end to its siblings, and holds the answer until the answers of
/// lower places are sent.
///
/// Only the answer waits. The slot and the locks are free and the end is in the journal before this wait begins. If
/// execution waited for the order instead, a slow call at a low place would keep the slots and locks of all its
/// siblings, and a crash during the wait would lose ends that had already happened.
pub(crate) async fn await_order(
    call: &PipelineCall,
    member: &BatchMember,
    answer: &RecordedResult,
) {
    let mut changes = member.changes();
    member.end(ended(answer));
    call.live.accepted();
    let is_ordered = call.origin.place.as_ref().is_some_and(super::is_ordered);
    if call.origin.background || !is_ordered {
        return;
    }
    let Some(_held) = member.hold_back(answer.json().len()) else {
        return;
    };
    // The cancellation by a sibling's failure does not end the wait: only the caller's own cancellation asks for the
    // answer at once.
    let by_sibling = matches!(
        call.live.cancel_reason(),
        Some(CancelReason::SiblingFailed { .. })
    );
    loop {
        changes.mark_unchanged();
        let Err(until) = member.may_answer() else {
            return;
        };
        tokio::select! {
            biased;
            _ = changes.changed() => {}
            () = call.live.token().cancelled(), if !by_sibling => return,
            () = out_of_patience(call) => return,
            () = tokio::time::sleep_until(until.unwrap_or_else(tokio::time::Instant::now)), if until.is_some() => {}
        }
    }
}

/// How the call ended, as its siblings see it.
fn ended(answer: &RecordedResult) -> BatchCallEnd {
    let result = answer.result();
    if result.outcome.is_success() {
        BatchCallEnd::Succeeded
    } else if result.error_class() == Some(ErrorClass::SiblingCanceled) {
        BatchCallEnd::GivenUp
    } else if result.outcome == Outcome::Rejected {
        BatchCallEnd::Rejected
    } else {
        BatchCallEnd::Failed
    }
}
