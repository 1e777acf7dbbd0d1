//! Measures the memory of the interpreter while it runs.
//!
//! The interpreter can count its own bytes only if its allocator is the global one, which would slow down every
//! allocation of the host. It reads the count from two numbers, and this module updates them from the size of the
//! process. A run over its limit then ends with a traceback and leaves the worker alive. Memory that grows too fast to
//! be measured here meets the process's own limit and ends the worker.

use std::{os::fd::OwnedFd, sync::atomic::Ordering};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};
use rustix::{
    fs::{Mode, OFlags, SeekFrom, open, seek},
    io::read,
    param::page_size,
};

pub(super) struct MemoryGauge {
    statm: Option<OwnedFd>,
    /// The size of the process at its start.
    at_first: usize,
}

impl MemoryGauge {
    /// Opens the file that it reads, while that is still allowed.
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

    /// Starts to count from the present size.
    pub(super) fn begin(&self) {
        let now = self.resident().unwrap_or(0);
        BASELINE_MEMORY.store(now, Ordering::Relaxed);
        LIVE_MEMORY.store(now, Ordering::Relaxed);
    }

    /// Updates the interpreter's count.
    pub(super) fn look(&self) {
        if let Some(now) = self.resident() {
            LIVE_MEMORY.store(now, Ordering::Relaxed);
        }
    }

    /// The growth of the process since its start. The first run loads code and tables that stay, some ten megabytes.
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
