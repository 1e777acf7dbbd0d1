//! How long a call waits for others, and when its caller stops waiting.

use crate::{
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
