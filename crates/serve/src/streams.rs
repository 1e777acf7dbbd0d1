//! The open streams of all faces, counted together and divided among callers.
//!
//! Only streams without a natural end count: those of sessions, of all calls, of tasks, and of clients that wait for
//! notifications. The stream of one call ends with the call, which has its own limits.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use toolpost_model::{DividedLimit, Principal, ShareRefusal, ShareTable};

/// The time after which a refused caller may try again. Readers can close streams at any time.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The caller has too many open streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.told("open streams", "limits.streams"))]
pub(crate) struct StreamsFull(ShareRefusal);

/// The number of open streams of each caller. All clones share one table.
#[derive(Clone)]
pub(crate) struct OpenStreams(Arc<Mutex<ShareTable>>);

/// The place of one stream. Dropping it returns the place.
pub(crate) struct StreamPlace {
    streams: OpenStreams,
    principal: Principal,
}

impl OpenStreams {
    pub(crate) fn new(limit: DividedLimit) -> Self {
        Self(Arc::new(Mutex::new(ShareTable::new(limit))))
    }

    /// Takes a place for one more stream of a caller.
    pub(crate) fn take(&self, principal: &Principal) -> Result<StreamPlace, StreamsFull> {
        self.0.lock().take(principal).map_err(StreamsFull)?;
        Ok(StreamPlace {
            streams: self.clone(),
            principal: principal.clone(),
        })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.streams.0.lock().give_back(&self.principal);
    }
}
