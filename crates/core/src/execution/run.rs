//! The execution of an admitted call.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use toolpost_model::{CallContext, CancelSupport, Effects, Stage, ToolCall, ToolFailure};

use super::{
    deadline::{self, ExecutionEnd},
    nested,
};
use crate::{
    approval::{coverage, wait},
    call::{CallRunKind, StageExit, lost_its_way},
    host::HostInner,
    invocation::{
        CancelReason, LateAnswer, OnRecord, PipelineCall,
        patience::{capping_setting, time_left},
        resolve::{accept, owes_acknowledgement},
    },
    permission::decide::effects,
    record::{
        journal::{AppendStrength, RecordKind},
        rendering,
    },
    result::{self, CallEnding},
    scheduling::admit::QUICK,
};

/// The limit of decisions for one call, whose facts may change each time while it waits.
const MAX_DECISIONS: usize = 3;

/// Runs the tool. No other code does.
///
/// The order of the steps matters. Files and effects are checked again first, because they can change while the call
/// waits. Credentials are filled in after the last check that looks at arguments, so that no rule, hook or record gets
/// them. The `started` record of a call with effects is synced before the work begins. Without it, recovery after a
/// crash would report that the call had not started, and its caller would repeat the effects.
pub(crate) async fn execute(
    host: &Arc<HostInner>,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    // Boxed, because few calls run on an approval and the others should not be larger for it.
    if coverage::rests_on_a_yes(call)
        && let Some(step) = Box::pin(coverage::compare_again(host, call)).await
    {
        return step;
    }
    let (Some(effects), Some(resolved), Some(input)) =
        (effects(call), &call.findings.resolved, &call.inputs.call)
    else {
        return lost_its_way();
    };
    if call.findings.effects.as_ref() != Some(&effects) {
        return decide_again(call);
    }
    if let Some(reason) = call.live.cancel_reason() {
        return StageExit::End(result::canceled_before_start(reason));
    }
    if way == CallRunKind::Recovered && !effects.is_harmless() {
        return StageExit::End(result::restarted(
            "it had not started, and its caller is gone",
        ));
    }
    let limit = match time_left(host, call, &resolved.entry) {
        Ok((limit, deadline)) => {
            call.progress.met.deadline = Some(deadline);
            limit
        }
        Err(ending) => return StageExit::End(ending),
    };
    let execution = &resolved.entry.declaration().interface.execution;
    let support = execution.cancel;
    let interrupt = execution.interrupt;
    let entry = Arc::clone(&resolved.entry);
    let source = Arc::clone(&resolved.source);
    let input = match host.credentials.filled(&entry, input) {
        Ok(None) => input.clone(),
        Ok(Some((filled, used))) => {
            call.live.add_secrets(used);
            filled
        }
        Err(ending) => return StageExit::End(ending),
    };
    if let Some(Err(reason)) = call
        .turn
        .member
        .as_ref()
        .map(|member| member.begin(interrupt))
    {
        return StageExit::End(result::canceled_before_start(reason));
    }
    if !effects.is_harmless() && call.progress.on_record != OnRecord::Started {
        let record = rendering::record(call, RecordKind::Started, None);
        if let Err(error) = host.append(record, AppendStrength::Synced).await {
            return StageExit::End(result::journal_refuses(&error));
        }
        call.progress.on_record = OnRecord::Started;
        call.live.accepted();
    }
    wait::spend(call);
    let began = Instant::now();
    let live = Arc::clone(&call.live);
    let context = CallContext::new(Arc::new(nested::RunningCallPort::of(
        host,
        call,
        &effects,
        began + limit,
    )));
    let work = source.execute(entry.id(), ToolCall { input, context });
    let work = deadline::supervise(work, (began + limit, &live.pauses), live.token(), support);
    let finished = match acknowledged(host, call, way, work).await {
        Ok(finished) => finished,
        Err(ending) => return StageExit::End(ending),
    };
    call.progress.executed = began.elapsed();
    call.turn.permit = None;
    call.progress.met.late = late(call, &finished, support);
    call.progress.met.work_ended_at = call.live.cancel_reason().map(|_| crate::port::now());
    let met = call.progress.met.deadline;
    let capped_by = met.and_then(|deadline| capping_setting(&entry, deadline.by));
    let limit = PassedLimit { limit, capped_by };
    StageExit::End(ending(call, finished, &effects, &limit))
}

/// The time that the call may run, and the setting that does not allow more.
struct PassedLimit {
    limit: Duration,
    capped_by: Option<String>,
}

/// Turns the end of the work into the ending of the call.
fn ending(
    call: &PipelineCall,
    finished: ExecutionEnd,
    effects: &Effects,
    passed: &PassedLimit,
) -> CallEnding {
    let safe = effects.may_run_again();
    // A tool that stopped before it began can report that it changed nothing, which its class cannot.
    let unless_untouched = |said: &Option<ToolFailure>| {
        safe || said
            .as_ref()
            .is_some_and(|failure| failure.untouched == Some(true))
    };
    let reason = call.live.cancel_reason().unwrap_or(CancelReason::Requested);
    let ending = match finished {
        ExecutionEnd::Returned(Ok(output)) => CallEnding::Output(Box::new(output)),
        ExecutionEnd::Returned(Err(failure)) => result::tool_failed(failure, effects),
        ExecutionEnd::Panicked(message) => result::panicked(&message, safe),
        ExecutionEnd::DeadlinePassed { said } => {
            let safe = unless_untouched(&said);
            let PassedLimit { limit, capped_by } = passed;
            let ending = result::timed_out(limit.as_millis(), safe, capped_by.as_deref());
            result::stopped(ending, said)
        }
        ExecutionEnd::Canceled { said } => {
            let safe = unless_untouched(&said);
            result::stopped(result::canceled_while_running(reason, safe), said)
        }
    };
    match call.progress.met.late {
        Some(LateAnswer::Discarded) => result::discarding(ending),
        Some(LateAnswer::Told | LateAnswer::Unheard) | None => ending,
    }
}

/// Classifies an answer that came after a cancellation, or that may still come after the call's end.
fn late(
    call: &PipelineCall,
    finished: &ExecutionEnd,
    support: CancelSupport,
) -> Option<LateAnswer> {
    match finished {
        ExecutionEnd::Returned(Ok(_)) => call.live.cancel_reason().map(|reason| match reason {
            CancelReason::CallerGone => LateAnswer::Unheard,
            CancelReason::Requested
            | CancelReason::Shutdown
            | CancelReason::SessionClosed
            | CancelReason::ParentStopped
            | CancelReason::SiblingFailed { .. } => LateAnswer::Told,
        }),
        ExecutionEnd::DeadlinePassed { said: None } | ExecutionEnd::Canceled { said: None } => {
            match support {
                CancelSupport::Cooperative | CancelSupport::Unsupported => {
                    Some(LateAnswer::Discarded)
                }
                // The work was dropped at an await point, so no answer can follow.
                CancelSupport::AtAwaitPoints => None,
            }
        }
        ExecutionEnd::DeadlinePassed { said: Some(_) }
        | ExecutionEnd::Canceled { said: Some(_) }
        | ExecutionEnd::Returned(Err(_))
        | ExecutionEnd::Panicked(_) => None,
    }
}

/// Waits for the work. If the caller waits for an acknowledgement, the call is recorded as accepted meanwhile.
async fn acknowledged(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
    work: impl Future<Output = ExecutionEnd>,
) -> Result<ExecutionEnd, CallEnding> {
    if !owes_acknowledgement(call, way) {
        return Ok(work.await);
    }
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(QUICK, &mut work).await {
        Ok(finished) => Ok(finished),
        Err(_) => {
            // The work continues even if the record fails, because it changes nothing.
            let (accepted, finished) = tokio::join!(accept(host, call), &mut work);
            accepted.map(|()| finished)
        }
    }
}

/// Decides again, because the facts changed while the call waited.
fn decide_again(call: &mut PipelineCall) -> StageExit {
    call.turn.permit = None;
    let decided = call
        .progress
        .transitions
        .iter()
        .filter(|transition| transition.stage == Stage::Decide)
        .count();
    if decided < MAX_DECISIONS {
        return StageExit::Next(Stage::Decide);
    }
    StageExit::End(result::internal(
        "the effects of the call kept changing while it waited",
    ))
}
