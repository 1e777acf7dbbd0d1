//! The work that the threads of a walk share. Depth first, so that few directories are pending at a time.

use std::{
    ffi::CString,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::{Condvar, Mutex};
use rustix::fd::OwnedFd;

use super::rules::IgnoreRules;
use crate::search::watch::SearchStopSignal;

/// The most memory of directories that are pending.
const PENDING_BYTES: usize = 64 << 20;
/// The memory of one of them without its path.
const JOB_BYTES: usize = 96;

/// A directory to enter.
pub(super) struct PendingDirectory {
    /// Relative to the workspace's root.
    pub(super) place: Vec<u8>,
    /// The number of levels beneath the start.
    pub(super) depth: usize,
    /// The rules for it and its entries, without its own ignore files.
    pub(super) rules: Option<Arc<IgnoreRules>>,
}

/// One piece of work.
pub(super) enum WalkJob {
    Enter(PendingDirectory),
    /// Files of a large directory, so that other threads can share the work.
    Files {
        dir: Arc<OwnedFd>,
        place: Arc<[u8]>,
        names: Vec<CString>,
    },
}

impl WalkJob {
    fn bytes(&self) -> usize {
        match self {
            Self::Enter(pending) => pending.place.len() + JOB_BYTES,
            Self::Files { .. } => JOB_BYTES,
        }
    }
}

pub(super) struct WalkQueue<'w> {
    watch: &'w SearchStopSignal<'w>,
    state: Mutex<WalkQueueState>,
    changed: Condvar,
    /// Threads that wait for work.
    idle: AtomicUsize,
}

#[derive(Default)]
struct WalkQueueState {
    jobs: Vec<WalkJob>,
    bytes: usize,
    /// Threads at work; each may add jobs.
    busy: usize,
}

impl<'w> WalkQueue<'w> {
    pub(super) fn new(watch: &'w SearchStopSignal<'w>) -> Self {
        Self {
            watch,
            state: Mutex::default(),
            changed: Condvar::new(),
            idle: AtomicUsize::new(0),
        }
    }

    /// Whether some thread has nothing to do.
    pub(super) fn somebody_waits(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
    }

    /// Adds work. Returns the number of directories that there was no room for.
    pub(super) fn add(&self, jobs: impl IntoIterator<Item = WalkJob>) -> u64 {
        let mut dropped = 0;
        let mut state = self.state.lock();
        let before = state.jobs.len();
        for job in jobs {
            let bytes = job.bytes();
            if state.bytes + bytes > PENDING_BYTES && matches!(job, WalkJob::Enter(_)) {
                dropped += 1;
                continue;
            }
            state.bytes += bytes;
            state.jobs.push(job);
        }
        let added = state.jobs.len() - before;
        drop(state);
        for _ in 0..added.min(self.idle.load(Ordering::Relaxed)) {
            self.changed.notify_one();
        }
        dropped
    }

    /// The next piece of work; `None` when everything is done or the search is over.
    pub(super) fn take(&self) -> Option<(WalkJob, WalkJobGuard<'_, 'w>)> {
        let mut state = self.state.lock();
        loop {
            if self.watch.is_over() {
                return None;
            }
            if let Some(job) = state.jobs.pop() {
                state.bytes -= job.bytes();
                state.busy += 1;
                return Some((job, WalkJobGuard(self)));
            }
            if state.busy == 0 {
                return None;
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            self.changed.wait(&mut state);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A thread at work. It ends on drop, also by a panic: a thread that is gone must not keep the count of busy threads
/// up, because the others wait for it to become zero.
pub(super) struct WalkJobGuard<'q, 'w>(&'q WalkQueue<'w>);

impl Drop for WalkJobGuard<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy -= 1;
        if self.0.watch.is_over() || state.busy == 0 && state.jobs.is_empty() {
            self.0.changed.notify_all();
        }
    }
}
