//! The room for blobs, shared by finished and unfinished ones.

use std::sync::Arc;

use parking_lot::Mutex;

/// The room of the smallest blob: a file has a name, a folder entry and a block of its own, however short it is.
/// Without this minimum, blobs of one byte each would fill a disk that is counted as empty.
const LEAST: u64 = 4 << 10;

/// The room that `size` bytes of content take.
pub(super) fn room_of(size: u64) -> u64 {
    size.max(LEAST)
}

pub(super) struct BlobQuota {
    limit: u64,
    used: Mutex<u64>,
}

impl BlobQuota {
    pub(super) fn new(limit: u64, used: u64) -> Self {
        Self {
            limit,
            used: Mutex::new(used),
        }
    }

    pub(super) fn used(&self) -> u64 {
        *self.used.lock()
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Reserves room for `bytes` more; false if there is too little.
    fn take(&self, bytes: u64) -> bool {
        let mut used = self.used.lock();
        let wanted = used.saturating_add(bytes);
        if wanted > self.limit {
            return false;
        }
        *used = wanted;
        true
    }

    pub(super) fn give_back(&self, bytes: u64) {
        let mut used = self.used.lock();
        *used = used.saturating_sub(bytes);
    }
}

/// The room that an unfinished blob takes. Given back on drop, unless the blob stays.
pub(super) struct QuotaReservation<Q: AsRef<BlobQuota>> {
    from: Arc<Q>,
    size: u64,
    /// The room reserved for it.
    room: u64,
}

impl<Q: AsRef<BlobQuota>> QuotaReservation<Q> {
    pub(super) fn nothing(from: Arc<Q>) -> Self {
        Self {
            from,
            size: 0,
            room: 0,
        }
    }

    /// Reserves room for `bytes` more.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let size = self.size.saturating_add(bytes);
        let room = room_of(size);
        let taken = (*self.from).as_ref().take(room - self.room);
        if taken {
            (self.size, self.room) = (size, room);
        }
        taken
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Keeps the room reserved, because the blob stays.
    pub(super) fn keep(mut self) {
        self.room = 0;
    }
}

impl<Q: AsRef<BlobQuota>> Drop for QuotaReservation<Q> {
    fn drop(&mut self) {
        (*self.from).as_ref().give_back(self.room);
    }
}
