//! How long a call waits for others, and when its caller stops waiting.

use std::time::{Duration, Instant};

use crate::{
    catalog::Entry,
    flow::{
        invocation::{Call, CancelReason},
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
pub(super) fn time_left(host: &Inner, call: &Call, entry: &Entry) -> Result<Duration, Ending> {
    let own = entry.declaration().interface.execution.timeout_ms.map(Duration::from_millis);
    let (set, ceiling) = (entry.settings.timeout, host.limits.deadline_ceiling);
    let most = entry.settings.ceiling.or(set).unwrap_or(ceiling).min(ceiling);
    let mut limit = call.timeout.or(set).or(own).unwrap_or(host.limits.deadline).min(most);
    let until = |end: Instant| end.saturating_duration_since(Instant::now());
    if let Some(parent) = &call.parent {
        limit = limit.min(until(parent.deadline));
        if limit.is_zero() {
            return Err(result::canceled_before_start(CancelReason::ParentStopped));
        }
    }
    if let Some(patience) = call.patience {
        limit = limit.min(until(patience));
        if limit.is_zero() {
            return Err(result::still_queued());
        }
    }
    Ok(limit)
}
