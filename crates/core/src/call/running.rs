//! The turn of a call and its work: admit, execute.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use toolpost_model::{CallContext, Stage, ToolCall};

use super::{
    Step, Way, lost_its_way, nested,
    permitting::{self, effects},
    prepare::{accept, owes_acknowledgement},
    waiting::{out_of_patience, time_left},
};
use crate::{
    catalog::Entry,
    flow::{
        execution::{self, Finished},
        invocation::{Call, CancelReason, OnRecord},
        result::{self, Ending},
        scheduling::{Bound, Bounded, Wanted},
    },
    host::Inner,
    record::{
        journal::{RecordKind, Strength},
        rendering,
    },
};

/// A call that ends within this time is acknowledged by its end.
const QUICK: Duration = Duration::from_millis(2);

/// A decision is made again when the facts changed while the call waited, but not for ever.
const MAX_DECISIONS: usize = 3;

/// Waits for a slot and for the resources.
pub(super) async fn admit(host: &Inner, call: &mut Call, way: Way) -> Step {
    let (Some(effects), Some(resolved)) = (call.effects.clone(), &call.resolved) else {
        return lost_its_way();
    };
    let (began, live, session) = (Instant::now(), Arc::clone(&call.live), Arc::clone(&call.session));
    let parent = call.parent.clone();
    let wanted = Wanted {
        call: live.id,
        session: session.id(),
        effects: &effects,
        alone: resolved.entry.settings.exclusive.unwrap_or(!effects.concurrency_safe),
        parent: parent.as_ref(),
        bounds: bounds(host, &resolved.entry),
    };
    let admission = host.scheduler.admit(wanted, || live.say_queued());
    let mut admission = std::pin::pin!(admission);
    let admitted = loop {
        let owes = owes_acknowledgement(call, way);
        tokio::select! {
            biased;
            admitted = &mut admission => break admitted,
            () = live.token().cancelled() => {
                let reason = live.cancel_reason().unwrap_or(CancelReason::Requested);
                return Step::End(result::canceled_before_start(reason));
            }
            () = out_of_patience(call) => return Step::End(result::still_queued()),
            () = tokio::time::sleep(QUICK), if owes => {
                if let Err(ending) = accept(host, call).await {
                    return Step::End(ending);
                }
            }
        }
    };
    call.queued += began.elapsed();
    match admitted {
        Ok(permit) => {
            call.permit = Some(permit);
            Step::Next(Stage::Execute)
        }
        Err(full) => Step::End(result::queue_full(&full)),
    }
}

/// The limits that the operator set for the tool and for its source. Of neither can nothing run.
fn bounds(host: &Inner, entry: &Entry) -> Vec<Bound> {
    let tool = entry.settings.concurrency.map(|most| (Bounded::Tool(entry.id().clone()), most));
    let built_in = || host.source_limits.get(entry.source.0).copied().flatten();
    let source = entry.source_concurrency.or_else(built_in);
    let source = source.map(|most| (Bounded::Source(entry.source), most));
    tool.into_iter().chain(source).map(|(on, most)| Bound { on, most: most.max(1) }).collect()
}

/// Runs the tool. The only place that does.
pub(super) async fn execute(host: &Arc<Inner>, call: &mut Call, way: Way) -> Step {
    let (Some(effects), Some(resolved), Some(input)) = (effects(call), &call.resolved, &call.inputs.call)
    else {
        return lost_its_way();
    };
    if call.effects.as_ref() != Some(&effects) {
        return decide_again(call);
    }
    if let Some(reason) = call.live.cancel_reason() {
        return Step::End(result::canceled_before_start(reason));
    }
    if way == Way::Recovered && !effects.is_harmless() {
        return Step::End(result::restarted("it had not started, and its caller is gone"));
    }
    let interface = &resolved.entry.declaration().interface;
    let limit = match time_left(host, call, &resolved.entry) {
        Ok(limit) => limit,
        Err(ending) => return Step::End(ending),
    };
    let (entry, source, input) = (Arc::clone(&resolved.entry), Arc::clone(&resolved.source), input.clone());
    let support = interface.execution.cancel;
    if !effects.is_harmless() && call.on_record != OnRecord::Started {
        let record = rendering::record(call, RecordKind::Started, None);
        if let Err(error) = host.append(record, Strength::Synced).await {
            return Step::End(result::journal_refuses(&error));
        }
        call.on_record = OnRecord::Started;
        call.live.accepted();
    }
    permitting::spend(call);
    let (began, live) = (Instant::now(), Arc::clone(&call.live));
    let context = CallContext::new(Arc::new(nested::Port::of(host, call, &effects, began + limit)));
    let work = source.execute(entry.id(), ToolCall { input, context });
    let mut work = std::pin::pin!(execution::supervise(work, began + limit, live.token(), support));
    let finished = if owes_acknowledgement(call, way) {
        match tokio::time::timeout(QUICK, &mut work).await {
            Ok(finished) => finished,
            Err(_) => {
                // The work goes on whatever becomes of the record: it changes nothing.
                let accepted = accept(host, call);
                let (accepted, finished) = tokio::join!(accepted, &mut work);
                if let Err(ending) = accepted {
                    return Step::End(ending);
                }
                finished
            }
        }
    } else {
        work.await
    };
    call.executed = began.elapsed();
    call.permit = None;
    let safe = effects.may_run_again();
    let reason = call.live.cancel_reason().unwrap_or(CancelReason::Requested);
    Step::End(match finished {
        Finished::Returned(Ok(output)) => Ending::Output(output),
        Finished::Returned(Err(failure)) => result::tool_failed(failure, &effects),
        Finished::Panicked(message) => result::panicked(&message, safe),
        Finished::DeadlinePassed { said } => {
            result::stopped(result::timed_out(limit.as_millis(), safe), said)
        }
        Finished::Canceled { said } => result::stopped(result::canceled_while_running(reason, safe), said),
    })
}

/// The facts changed while the call waited: what was decided no longer stands.
fn decide_again(call: &mut Call) -> Step {
    call.permit = None;
    let decided = call.transitions.iter().filter(|transition| transition.stage == Stage::Decide).count();
    if decided < MAX_DECISIONS {
        return Step::Next(Stage::Decide);
    }
    Step::End(result::internal("what the call touches kept changing while it waited"))
}
