//! The supervision of running work: deadline, cancellation and panics.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolpost_model::{BoxFuture, CancelSupport, ToolFailure, ToolOutput};

/// The time that a cooperative tool gets to stop before it is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// The shortest interval between two looks at a paused deadline.
const PAUSED_LOOK: Duration = Duration::from_millis(50);

pub(crate) enum ExecutionEnd {
    /// The work returned by itself. This includes work that finished after a cancellation, because its effects are
    /// done.
    Returned(Result<ToolOutput, ToolFailure>),
    Panicked(String),
    /// The deadline passed, and the work stopped or was dropped.
    DeadlinePassed {
        said: Option<ToolFailure>,
    },
    /// The call was canceled, and the work stopped or was dropped.
    Canceled {
        said: Option<ToolFailure>,
    },
}

/// The time that does not count towards a call's deadline, because the call waits for an answer of its caller.
#[derive(Default)]
pub(crate) struct DeadlinePauses(Mutex<PauseClock>);

#[derive(Default)]
struct PauseClock {
    open: usize,
    since: Option<Instant>,
    over: Duration,
}

impl DeadlinePauses {
    /// Pauses the deadline until the returned guard is dropped.
    pub(crate) fn begin(&self) -> DeadlinePause<'_> {
        let mut paused = self.0.lock();
        paused.open += 1;
        paused.since.get_or_insert_with(Instant::now);
        drop(paused);
        DeadlinePause(self)
    }

    /// The next time to look at a deadline.
    fn moved(&self, deadline: Instant, now: Instant) -> Instant {
        let paused = self.0.lock();
        let moved = deadline + paused.over;
        match paused.since {
            None => moved,
            // During a pause the remaining time does not shrink, so the deadline cannot pass earlier than this.
            Some(since) => now + moved.saturating_duration_since(since).max(PAUSED_LOOK),
        }
    }
}

/// A pause of the deadline.
pub(crate) struct DeadlinePause<'a>(&'a DeadlinePauses);

impl Drop for DeadlinePause<'_> {
    fn drop(&mut self) {
        let mut paused = self.0.0.lock();
        paused.open -= 1;
        if paused.open == 0 {
            let since = paused.since.take();
            paused.over += since.map(|since| since.elapsed()).unwrap_or_default();
        }
    }
}

/// Resolves when the deadline passed, pauses excluded.
async fn deadline_passed(deadline: Instant, pauses: &DeadlinePauses) {
    let mut look = deadline;
    loop {
        tokio::time::sleep_until(look.into()).await;
        let now = Instant::now();
        look = pauses.moved(deadline, now);
        if look <= now {
            return;
        }
    }
}

/// Runs the work until it ends, is canceled or passes its deadline.
///
/// The work is polled before the cancellation and the deadline. A result that is ready in the same poll counts, because
/// its effects have happened and a reported cancellation would invite a repeat.
pub(crate) async fn supervise(
    work: BoxFuture<'_, Result<ToolOutput, ToolFailure>>,
    (deadline, pauses): (Instant, &DeadlinePauses),
    cancel: &CancellationToken,
    support: CancelSupport,
) -> ExecutionEnd {
    let mut work = AssertUnwindSafe(work).catch_unwind();
    let stopped = tokio::select! {
        biased;
        ended = &mut work => return match returned(ended) {
            // A cooperative tool can see the cancellation and return an error before this function does.
            ExecutionEnd::Returned(Err(said)) if cancel.is_cancelled() => ExecutionEnd::Canceled { said: Some(said) },
            ended => ended,
        },
        () = cancel.cancelled() => ExecutionStopReason::Canceled,
        () = deadline_passed(deadline, pauses) => ExecutionStopReason::DeadlinePassed,
    };
    cancel.cancel();
    match support {
        CancelSupport::Cooperative => match tokio::time::timeout(GRACE, work).await {
            Ok(ended) => match (returned(ended), stopped) {
                // An error after a cancellation is the stop itself. A success still counts as a success.
                (ExecutionEnd::Returned(Err(said)), stopped) => stopped.finished(Some(said)),
                (ended, _) => ended,
            },
            Err(_) => stopped.finished(None),
        },
        CancelSupport::AtAwaitPoints | CancelSupport::Unsupported => stopped.finished(None),
    }
}

#[derive(Clone, Copy)]
enum ExecutionStopReason {
    DeadlinePassed,
    Canceled,
}

impl ExecutionStopReason {
    fn finished(self, said: Option<ToolFailure>) -> ExecutionEnd {
        match self {
            Self::DeadlinePassed => ExecutionEnd::DeadlinePassed { said },
            Self::Canceled => ExecutionEnd::Canceled { said },
        }
    }
}

type CaughtToolOutput = Result<Result<ToolOutput, ToolFailure>, Box<dyn std::any::Any + Send>>;

fn returned(ended: CaughtToolOutput) -> ExecutionEnd {
    match ended {
        Ok(result) => ExecutionEnd::Returned(result),
        Err(panic) => ExecutionEnd::Panicked(panic_text(&*panic)),
    }
}

/// Runs code of an operator within a time limit. `Err` holds the text about a panic or a timeout.
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, String> {
    match tokio::time::timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(panic)) => Err(format!("it panicked: {}", panic_text(&*panic))),
        Err(_) => Err(format!("it did not answer within {} ms", limit.as_millis())),
    }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}
