//! How much memory the interpreter uses, told to it as it runs.
//!
//! The interpreter can count its own bytes only where its allocator is the whole program's, which would tax every
//! allocation of the host. It reads the count from two numbers, though, and this keeps them up to date from what
//! the system says. A run over its limit then ends with a traceback and leaves the worker alive; what grows too
//! fast to be seen here meets the process's own limit and ends the worker.

use std::{os::fd::OwnedFd, sync::atomic::Ordering};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};
use rustix::{
    fs::{Mode, OFlags, SeekFrom, open, seek},
    io::read,
    param::page_size,
};

/// Looks at this process's size.
pub(super) struct MemoryGauge {
    statm: Option<OwnedFd>,
    /// How large the process was when it began.
    at_first: usize,
}

impl MemoryGauge {
    /// Opens what is needed, while that is still allowed.
    pub(super) fn new() -> Self {
        let statm = open(
            "/proc/self/statm",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok();
        let gauge = Self { statm, at_first: 0 };
        Self {
            at_first: gauge.resident().unwrap_or(0),
            ..gauge
        }
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

    /// How much larger the process is than it was at first. The first run brings in code and tables that stay, some
    /// ten megabytes.
    pub(super) fn grown(&self) -> usize {
        self.resident().unwrap_or(0).saturating_sub(self.at_first)
    }

    fn resident(&self) -> Option<usize> {
        let mut text = [0; 128];
        let statm = self.statm.as_ref()?;
        seek(statm, SeekFrom::Start(0)).ok()?;
        let count = read(statm, &mut text).ok()?;
        let pages: usize = std::str::from_utf8(&text[..count])
            .ok()?
            .split(' ')
            .nth(1)?
            .parse()
            .ok()?;
        Some(pages * page_size())
    }
}
