//! Tells all threads of a search when to end: the call was told to stop, or its time is nearly over.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::native::files::worker::{StopSign, Stopped};

/// The most that is kept back of a call's time to tell what was found so far.
const TIME_TO_TELL: Duration = Duration::from_secs(1);

/// Shared by the threads of one search.
pub(super) struct Watch<'s> {
    stop: &'s StopSign,
    until: Instant,
    stopped: AtomicBool,
    late: AtomicBool,
}

impl<'s> Watch<'s> {
    pub(super) fn new(stop: &'s StopSign) -> Self {
        let left = stop.deadline().saturating_duration_since(Instant::now());
        let until = Instant::now() + left.saturating_sub(TIME_TO_TELL.min(left / 10));
        Self { stop, until, stopped: AtomicBool::new(false), late: AtomicBool::new(false) }
    }

    /// Looks at the call and at the clock. Ask before every directory and every large piece of a file.
    pub(super) fn look(&self) -> bool {
        if self.stop.check().is_err() {
            self.stopped.store(true, Ordering::Relaxed);
        } else if Instant::now() >= self.until {
            self.late.store(true, Ordering::Relaxed);
        }
        !self.is_over()
    }

    /// What the last look of any thread said; cheap enough for every file.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.late.load(Ordering::Relaxed)
    }

    /// Who is searched for.
    pub(super) fn stop(&self) -> &'s StopSign {
        self.stop
    }

    /// Whether the time ran out before all was searched.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Fails if the call was told to stop: then nobody wants to hear what was found.
    pub(super) fn check(&self) -> Result<(), Stopped> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(Stopped),
            false => Ok(()),
        }
    }
}
