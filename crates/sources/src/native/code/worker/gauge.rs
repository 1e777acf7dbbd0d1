//! How much memory the interpreter uses, told to it as it runs.
//!
//! The interpreter can count its own bytes only where its allocator is the whole program's, which would tax every
//! allocation of the host. It reads the count from two numbers, though, and this keeps them up to date from what
//! the system says. A run over its limit then ends with a traceback and leaves the worker alive; what grows too
//! fast to be seen here meets the process's own limit and ends the worker.

use std::{os::fd::OwnedFd, sync::atomic::Ordering};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};
use rustix::{
    fs::{Mode, OFlags, open},
    io::pread,
    param::page_size,
};

/// Looks at this process's size.
pub(super) struct Gauge {
    statm: Option<OwnedFd>,
}

impl Gauge {
    /// Opens what is needed, while that is still allowed.
    pub(super) fn new() -> Self {
        Self { statm: open("/proc/self/statm", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok() }
    }

    /// What the process has now does not count.
    pub(super) fn begin(&self) {
        let now = self.resident().unwrap_or(0);
        BASELINE_MEMORY.store(now, Ordering::Relaxed);
        LIVE_MEMORY.store(now, Ordering::Relaxed);
    }

    /// Tells the interpreter.
    pub(super) fn look(&self) {
        if let Some(now) = self.resident() {
            LIVE_MEMORY.store(now, Ordering::Relaxed);
        }
    }

    fn resident(&self) -> Option<usize> {
        let mut text = [0; 128];
        let count = pread(self.statm.as_ref()?, &mut text, 0).ok()?;
        let pages: usize = std::str::from_utf8(&text[..count]).ok()?.split(' ').nth(1)?.parse().ok()?;
        Some(pages * page_size())
    }
}
