//! Ends all threads of a search when the call is canceled or its time is nearly over.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use toolpost_processes::{CallStopError, StopSign};

/// The most and the least time that is kept back of a call to report the hits so far.
const TIME_TO_TELL: Duration = Duration::from_secs(1);
const LEAST_TIME_TO_TELL: Duration = Duration::from_millis(50);

/// Shared by the threads of one search.
pub(super) struct SearchStopSignal<'s> {
    stop: &'s StopSign,
    until: Instant,
    stopped: AtomicBool,
    late: AtomicBool,
}

impl<'s> SearchStopSignal<'s> {
    pub(super) fn new(stop: &'s StopSign) -> Self {
        let left = stop.deadline().saturating_duration_since(Instant::now());
        let until = Instant::now() + left.saturating_sub(time_to_tell(left));
        Self {
            stop,
            until,
            stopped: AtomicBool::new(false),
            late: AtomicBool::new(false),
        }
    }

    /// Checks the call and the clock. Call it before every directory and every large piece of a file.
    pub(super) fn look(&self) -> bool {
        if self.stop.check().is_err() {
            self.stopped.store(true, Ordering::Relaxed);
        } else if Instant::now() >= self.until {
            self.late.store(true, Ordering::Relaxed);
        }
        !self.is_over()
    }

    /// The result of the last check of any thread; cheap enough for every file.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.late.load(Ordering::Relaxed)
    }

    /// The stop sign of the call.
    pub(super) fn stop(&self) -> &'s StopSign {
        self.stop
    }

    /// Whether the time ended before the search did.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Fails if the call was canceled, because its hits are not needed any more.
    pub(super) fn check(&self) -> Result<(), CallStopError> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(CallStopError),
            false => Ok(()),
        }
    }
}

/// A tenth of the time, within limits. If a call has next to none, half of it is for the search.
fn time_to_tell(left: Duration) -> Duration {
    (left / 10)
        .clamp(LEAST_TIME_TO_TELL, TIME_TO_TELL)
        .min(left / 2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::time_to_tell;

    #[test]
    fn a_search_leaves_time_to_tell_what_it_found() {
        let all = [
            (60_000, 1_000),
            (5_000, 500),
            (400, 50),
            (100, 50),
            (60, 30),
            (0, 0),
        ];
        for (left, kept) in
            all.map(|(left, kept)| (Duration::from_millis(left), Duration::from_millis(kept)))
        {
            assert_eq!(time_to_tell(left), kept, "of {left:?}");
        }
    }
}
