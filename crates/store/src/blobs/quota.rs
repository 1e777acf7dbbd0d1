//! How much room there is, shared by everything that is kept and being written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Quota {
    limit: u64,
    used: Mutex<u64>,
}

impl Quota {
    pub(super) fn new(limit: u64, used: u64) -> Self {
        Self { limit, used: Mutex::new(used) }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn used(&self) -> u64 {
        *self.lock()
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Takes room for so many bytes, where there is so much.
    fn take(&self, bytes: u64) -> bool {
        let mut used = self.lock();
        let wanted = used.saturating_add(bytes);
        if wanted > self.limit {
            return false;
        }
        *used = wanted;
        true
    }

    pub(super) fn give_back(&self, bytes: u64) {
        let mut used = self.lock();
        *used = used.saturating_sub(bytes);
    }
}

/// Room that a content takes while it is written. Given back when dropped, unless the content stays.
pub(super) struct Taken<Q: AsRef<Quota>> {
    from: Arc<Q>,
    bytes: u64,
}

impl<Q: AsRef<Quota>> Taken<Q> {
    pub(super) fn nothing(from: Arc<Q>) -> Self {
        Self { from, bytes: 0 }
    }

    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let taken = (*self.from).as_ref().take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The content stays, and with it the room.
    pub(super) fn keep(mut self) {
        self.bytes = 0;
    }
}

impl<Q: AsRef<Quota>> Drop for Taken<Q> {
    fn drop(&mut self) {
        (*self.from).as_ref().give_back(self.bytes);
    }
}
