//! The mark that a list is not what the server offers, while that is looked at.

use std::sync::atomic::{AtomicBool, Ordering};

/// The list is being compared. Given up before the end, it is as stale as before.
pub(super) struct Stale<'a> {
    mark: &'a AtomicBool,
    done: bool,
}

impl<'a> Stale<'a> {
    pub(super) fn begin(mark: &'a AtomicBool) -> Self {
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
