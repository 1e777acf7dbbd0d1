//! The admission of a call: it waits for its batch, then for a slot and for its locks.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use toolpost_model::{Effects, Stage};

use crate::{
    call::{CallRunKind, StageExit, explain, lost_its_way},
    catalog::CatalogEntry,
    host::HostInner,
    invocation::{
        CancelReason, PipelineCall,
        patience::out_of_patience,
        resolve::{accept, owes_acknowledgement},
    },
    result::{self},
    scheduling::{
        AdmissionRequest, ConcurrencyLimit, ConcurrencyLimitSubject, Permit, QueueFull,
        SchedulerSnapshot, batch::turn,
    },
};

/// A call that ends within this time is acknowledged by its end.
pub(crate) const QUICK: Duration = Duration::from_millis(2);

/// Waits for the calls of its batch, then for a slot and for the locks.
pub(crate) async fn admit(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    let began = Instant::now();
    if let Err(ending) = turn::await_turn(host, call, way).await {
        call.progress.queued += began.elapsed();
        return StageExit::End(ending);
    }
    let (Some(effects), Some(resolved)) = (call.findings.effects.clone(), &call.findings.resolved)
    else {
        return lost_its_way();
    };
    let live = Arc::clone(&call.live);
    let session = Arc::clone(&call.session);
    let parent = call.lineage.parent.clone();
    if effects.unscheduled {
        return take_turn(call, host.scheduler.hold(session.principal(), session.id()));
    }
    let wanted = AdmissionRequest {
        call: live.id,
        principal: session.principal(),
        session: session.id(),
        effects: &effects,
        alone: runs_alone(&resolved.entry, &effects),
        parent: parent.as_ref(),
        bounds: bounds(host, &resolved.entry),
    };
    call.progress.met.alone = wanted.alone;
    let waited_for = OnceLock::new();
    let admission = host.scheduler.admit(wanted, |reasons| {
        live.say_queued();
        let _ = waited_for.set(reasons);
    });
    let mut admission = std::pin::pin!(admission);
    let admitted = loop {
        let owes = owes_acknowledgement(call, way);
        tokio::select! {
            biased;
            admitted = &mut admission => break Ok(admitted),
            () = live.token().cancelled() => {
                let reason = live.cancel_reason().unwrap_or(CancelReason::Requested);
                break Err(result::canceled_before_start(reason));
            }
            () = out_of_patience(call) => break Err(result::still_queued()),
            () = tokio::time::sleep(QUICK), if owes => {
                if let Err(ending) = accept(host, call).await {
                    break Err(ending);
                }
            }
        }
    };
    call.progress.queued += began.elapsed();
    if let Some(reasons) = waited_for.get() {
        // A call whose facts changed waits a second time; the record gets the reasons of both waits.
        let redactor = live.redactor();
        call.progress
            .met
            .waited_for
            .extend(reasons.iter().cloned().map(|mut reason| {
                reason.clean(|key| explain::clean_key(&redactor, key));
                reason
            }));
    }
    match admitted {
        Ok(admitted) => take_turn(call, admitted),
        Err(ending) => StageExit::End(ending),
    }
}

/// The waits of a call if it came now.
pub(crate) fn look_ahead(
    host: &HostInner,
    call: &PipelineCall,
) -> Option<Result<SchedulerSnapshot, QueueFull>> {
    let effects = call.findings.effects.as_ref()?;
    let resolved = call.findings.resolved.as_ref()?;
    (!effects.unscheduled).then(|| {
        host.scheduler.look(AdmissionRequest {
            call: call.live.id,
            principal: call.session.principal(),
            session: call.session.id(),
            effects,
            alone: runs_alone(&resolved.entry, effects),
            parent: call.lineage.parent.as_ref(),
            bounds: bounds(host, &resolved.entry),
        })
    })
}

/// The operator's setting, or else the effects.
fn runs_alone(entry: &CatalogEntry, effects: &Effects) -> bool {
    entry
        .settings
        .execution
        .exclusive
        .unwrap_or(!effects.concurrency_safe)
}

fn take_turn(call: &mut PipelineCall, admitted: Result<Permit, QueueFull>) -> StageExit {
    match admitted {
        Ok(permit) => {
            call.turn.permit = Some(permit);
            StageExit::Next(Stage::Execute)
        }
        Err(full) => StageExit::End(result::queue_full(&full)),
    }
}

/// The operator's limits for the tool and for its source. At least one: with a limit of zero the call could never run.
fn bounds(host: &HostInner, entry: &CatalogEntry) -> Vec<ConcurrencyLimit> {
    let tool = entry
        .settings
        .execution
        .concurrency
        .map(|most| (ConcurrencyLimitSubject::Tool(entry.id().clone()), most));
    let built_in = || host.sources.limits.get(entry.source.0).copied().flatten();
    let source = entry.source_concurrency.or_else(built_in);
    let source = source.map(|most| (ConcurrencyLimitSubject::Source(entry.source), most));
    tool.into_iter()
        .chain(source)
        .map(|(on, most)| ConcurrencyLimit {
            on,
            most: most.max(1),
        })
        .collect()
}
