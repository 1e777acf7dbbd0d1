//! Where the file tools' blocking work runs, and how it learns that nobody waits for it any more.
//!
//! Every file operation goes through [`on_worker`], so that the threads can be confined (a second wall behind
//! the path rules) by changing this one place.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use toolpost_model::{CallContext, ErrorClass, Progress, ToolFailure};

/// Runs blocking work apart from the async threads.
pub(crate) async fn on_worker<T, W>(context: CallContext, work: W) -> Result<T, ToolFailure>
where
    T: Send + 'static,
    W: FnOnce(&StopSign) -> Result<T, ToolFailure> + Send + 'static,
{
    let abandoned = Arc::new(AtomicBool::new(false));
    let _set_when_dropped = Abandon(abandoned.clone());
    let stop = StopSign { context, abandoned };
    let joined = tokio::task::spawn_blocking(move || work(&stop)).await;
    joined.unwrap_or_else(|error| {
        let what = if error.is_panic() { "panicked" } else { "was shut down" };
        Err(ToolFailure::new(format!("the file worker {what} before it was done")).code("worker_stopped"))
    })
}

/// Tells running work to stop: the call was canceled, or its future was dropped at the deadline. Without the
/// latter a write could still be committed after the caller was told that it timed out.
pub(crate) struct StopSign {
    context: CallContext,
    abandoned: Arc<AtomicBool>,
}

/// The call was told to stop.
#[derive(Debug, thiserror::Error)]
#[error("the call was canceled before anything was changed")]
pub(crate) struct Stopped;

/// Why a piece of work ended early. The caller knows the path and makes its own error of this.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// The call was told to stop.
    Stopped(Stopped),
    /// The system said no.
    Io(io::Error),
}

impl From<Stopped> for Unfinished {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<io::Error> for Unfinished {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl StopSign {
    /// Fails once the work should stop. Ask before every chunk and right before a change becomes visible.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        match self.context.is_canceled() || self.abandoned.load(Ordering::Relaxed) {
            true => Err(Stopped),
            false => Ok(()),
        }
    }

    /// When the call will be told to stop.
    pub(crate) fn deadline(&self) -> Instant {
        self.context.deadline()
    }

    /// Says how far the work got.
    pub(crate) fn progress(&self, progress: Progress) {
        self.context.progress(progress);
    }
}

impl Stopped {
    /// As the call's result tells it.
    pub(crate) fn into_failure(self) -> ToolFailure {
        ToolFailure::of(ErrorClass::Canceled, self.to_string()).untouched()
    }
}

struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
