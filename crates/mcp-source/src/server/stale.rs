//! The mark of an outdated listing during a comparison.

use std::sync::atomic::{AtomicBool, Ordering};

/// A running comparison. If it is dropped before `done`, the listing is marked as outdated again.
pub(super) struct Stale<'a> {
    mark: &'a AtomicBool,
    done: bool,
}

impl<'a> Stale<'a> {
    pub(super) fn begin(mark: &'a AtomicBool) -> Self {
        // The mark is cleared before the fetch, not after it. A change that the server announces during the fetch sets
        // the mark again, and the next call compares once more; a mark cleared at the end would lose that change.
        mark.store(false, Ordering::Release);
        Self { mark, done: false }
    }

    pub(super) fn done(&mut self) {
        self.done = true;
    }
}

impl Drop for Stale<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.mark.store(true, Ordering::Release);
        }
    }
}
