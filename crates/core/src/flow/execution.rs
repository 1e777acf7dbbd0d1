//! Layer 7: how a call is run. The loop makes the work; this room watches over it: deadline, cancellation,
//! panic.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use toolpost_model::{BoxFuture, CancelSupport, ToolFailure, ToolOutput};

/// How long a tool that listens gets to stop by itself before it is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// How the work ended.
pub(crate) enum Finished {
    /// By itself, also when it was told to stop and still finished: what was done is what is told.
    Returned(Result<ToolOutput, ToolFailure>),
    /// It panicked.
    Panicked(String),
    /// The deadline passed, and the work was dropped.
    DeadlinePassed,
    /// It was told to stop, and was dropped.
    Canceled,
}

/// Runs the work to its end, or to the end of its time.
pub(crate) async fn supervise(
    work: BoxFuture<'_, Result<ToolOutput, ToolFailure>>,
    deadline: Instant,
    cancel: &CancellationToken,
    support: CancelSupport,
) -> Finished {
    let mut work = AssertUnwindSafe(work).catch_unwind();
    let stopped = tokio::select! {
        biased;
        ended = &mut work => return match returned(ended) {
            // Told to stop, a tool that listens may be quicker than this.
            Finished::Returned(Err(_)) if cancel.is_cancelled() => Finished::Canceled,
            ended => ended,
        },
        () = cancel.cancelled() => Finished::Canceled,
        () = tokio::time::sleep_until(deadline.into()) => Finished::DeadlinePassed,
    };
    cancel.cancel();
    match support {
        CancelSupport::Cooperative => match tokio::time::timeout(GRACE, work).await {
            Ok(ended) => match (returned(ended), stopped) {
                // An error after the word to stop is the stop itself; a success is a success.
                (Finished::Returned(Err(_)), stopped) => stopped,
                (ended, _) => ended,
            },
            Err(_) => stopped,
        },
        CancelSupport::AtAwaitPoints | CancelSupport::Unsupported => stopped,
    }
}

type Ended = Result<Result<ToolOutput, ToolFailure>, Box<dyn std::any::Any + Send>>;

fn returned(ended: Ended) -> Finished {
    match ended {
        Ok(result) => Finished::Returned(result),
        Err(panic) => Finished::Panicked(panic_text(&*panic)),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
