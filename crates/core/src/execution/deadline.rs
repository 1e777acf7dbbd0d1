//! Layer 7: how a call is run. The loop makes the work; this room watches over it: deadline, cancellation,
//! panic.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolpost_model::{BoxFuture, CancelSupport, ToolFailure, ToolOutput};

/// How long a tool that listens gets to stop by itself before it is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// How soon a deadline that stands still is looked at again, at the earliest.
const PAUSED_LOOK: Duration = Duration::from_millis(50);

/// How the work ended.
pub(crate) enum ExecutionEnd {
    /// By itself, also when it was told to stop and still finished: what was done is what is told.
    Returned(Result<ToolOutput, ToolFailure>),
    Panicked(String),
    /// The deadline passed, and the work was stopped or dropped.
    DeadlinePassed {
        said: Option<ToolFailure>,
    },
    /// It was told to stop, and stopped or was dropped.
    Canceled {
        said: Option<ToolFailure>,
    },
}

/// The time of a call that does not count towards its deadline: somebody else is waited for.
#[derive(Default)]
pub(crate) struct DeadlinePauses(Mutex<PauseClock>);

#[derive(Default)]
struct PauseClock {
    open: usize,
    since: Option<Instant>,
    over: Duration,
}

impl DeadlinePauses {
    /// The time stands still until what this gives is dropped.
    pub(crate) fn begin(&self) -> DeadlinePause<'_> {
        let mut paused = self.0.lock();
        paused.open += 1;
        paused.since.get_or_insert_with(Instant::now);
        drop(paused);
        DeadlinePause(self)
    }

    /// When to look at a deadline again, as far as that is known at `now`.
    fn moved(&self, deadline: Instant, now: Instant) -> Instant {
        let paused = self.0.lock();
        let moved = deadline + paused.over;
        match paused.since {
            None => moved,
            // What was left when it began is left when it ends.
            Some(since) => now + moved.saturating_duration_since(since).max(PAUSED_LOOK),
        }
    }
}

/// Time that stands still.
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

/// Resolves when the time of a call is over.
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

/// Runs the work to its end, or to the end of its time.
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
            // Told to stop, a tool that listens may be quicker than this.
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
                // An error after the word to stop is the stop itself; a success is a success.
                (ExecutionEnd::Returned(Err(said)), stopped) => stopped.finished(Some(said)),
                (ended, _) => ended,
            },
            Err(_) => stopped.finished(None),
        },
        CancelSupport::AtAwaitPoints | CancelSupport::Unsupported => stopped.finished(None),
    }
}

/// Why the work was stopped.
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

/// What work of an operator's program comes to within its time; `Err` says that it panicked or did not come back.
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, String> {
    match tokio::time::timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(panic)) => Err(format!("it panicked: {}", panic_text(&*panic))),
        Err(_) => Err(format!("it did not answer within {} ms", limit.as_millis())),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}
