//! The streams that every face holds open, counted together and divided among callers.
//!
//! Only streams that outlive their request's work count: of sessions, of all calls, of tasks, and of clients that wait for
//! news. The stream of one call ends with the call, which has its own limits.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use toolpost_model::{DividedLimit, Principal, ShareRefusal, ShareTable};

/// When a caller without room may try again: a stream ends whenever its reader likes.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// No more streams for this caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.told("open streams", "limits.streams"))]
pub(crate) struct StreamsFull(ShareRefusal);

/// Who has how many streams open. Cheap to clone; all clones are one table.
#[derive(Clone)]
pub(crate) struct OpenStreams(Arc<Mutex<ShareTable>>);

/// One stream's place. Dropping it gives the place back.
pub(crate) struct StreamPlace {
    streams: OpenStreams,
    principal: Principal,
}

impl OpenStreams {
    pub(crate) fn new(limit: DividedLimit) -> Self {
        Self(Arc::new(Mutex::new(ShareTable::new(limit))))
    }

    /// A place for one more stream of a caller.
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
