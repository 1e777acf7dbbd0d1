//! How long a call waits for others, and when its caller stops waiting.

use std::time::{Duration, Instant};

use crate::{
    catalog::Entry,
    flow::{
        invocation::{Call, CancelReason, Deadline, DeadlineBy},
        result::{self, Ending},
    },
    host::Inner,
};

/// Waits for a source or a hook, but not past a cancellation and not for ever: neither is the tool's own work,
/// so neither has a deadline of its own.
pub(super) async fn patiently<T>(
    host: &Inner,
    call: &Call,
    work: impl Future<Output = T>,
) -> Result<T, Ending> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = call.live.token().cancelled() => {
            Err(result::canceled_before_start(call.live.cancel_reason().unwrap_or(CancelReason::Requested)))
        }
        () = out_of_patience(call) => Err(result::still_queued()),
        () = tokio::time::sleep(host.limits.deadline) => {
            Err(result::not_ready(host.limits.deadline.as_millis()))
        }
    }
}

/// Resolves when the caller stops waiting; never, where it did not say how long it waits.
pub(super) async fn out_of_patience(call: &Call) {
    match call.patience {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

/// How long the call may run: the caller's wish, else the operator's or the tool's own, else the host's; never
/// beyond what the operator set for the tool, the host's ceiling, the caller's patience or the calling call's end.
pub(super) fn time_left(host: &Inner, call: &Call, entry: &Entry) -> Result<(Duration, Deadline), Ending> {
    let (limit, by) = allotted(host, call, entry);
    match by {
        DeadlineBy::Parent if limit.is_zero() => {
            Err(result::canceled_before_start(CancelReason::ParentStopped))
        }
        DeadlineBy::Patience if limit.is_zero() => Err(result::still_queued()),
        DeadlineBy::Caller
        | DeadlineBy::ToolSetting
        | DeadlineBy::Tool
        | DeadlineBy::HostDefault
        | DeadlineBy::ToolCeiling
        | DeadlineBy::HostCeiling
        | DeadlineBy::Parent
        | DeadlineBy::Patience => {
            let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            Ok((limit, Deadline { ms, by }))
        }
    }
}

fn allotted(host: &Inner, call: &Call, entry: &Entry) -> (Duration, DeadlineBy) {
    let own = entry.declaration().interface.execution.timeout_ms.map(Duration::from_millis);
    let (set, limits) = (entry.settings.timeout, &host.limits);
    let mut allotted = match (call.timeout, set, own) {
        (Some(wish), _, _) => (wish, DeadlineBy::Caller),
        (None, Some(set), _) => (set, DeadlineBy::ToolSetting),
        (None, None, Some(own)) => (own, DeadlineBy::Tool),
        (None, None, None) => (limits.deadline, DeadlineBy::HostDefault),
    };
    let until = |end: Instant| end.saturating_duration_since(Instant::now());
    let bounds = [
        entry.settings.ceiling.or(set).map(|most| (most, DeadlineBy::ToolCeiling)),
        Some((limits.deadline_ceiling, DeadlineBy::HostCeiling)),
        call.parent.as_ref().map(|parent| (until(parent.deadline), DeadlineBy::Parent)),
        call.patience.map(|patience| (until(patience), DeadlineBy::Patience)),
    ];
    for (most, by) in bounds.into_iter().flatten() {
        if most < allotted.0 {
            allotted = (most, by);
        }
    }
    allotted
}
