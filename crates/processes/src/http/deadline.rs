//! When an exchange has to be over, and how many redirects it may lead through.

use std::time::Duration;

use tokio::time::Instant;

use super::error::HttpError;

/// Most redirects followed.
pub const MAX_REDIRECTS: usize = 5;

/// When the whole exchange has to be over.
#[derive(Clone, Copy)]
pub struct HttpExchangeDeadline {
    /// The moment.
    pub at: Instant,
    /// The time that the exchange had.
    pub after: Duration,
}

impl HttpExchangeDeadline {
    /// After the time the caller gives, or when the host stops the call.
    pub fn new(wish: Duration, host: std::time::Instant) -> Self {
        let now = Instant::now();
        let after = wish.min(Instant::from_std(host).saturating_duration_since(now));
        Self {
            at: now + after,
            after,
        }
    }

    /// Waits for the next piece of a body; `None` where the deadline passed.
    ///
    /// Pieces of a compressed body come out of memory: 8 KiB from the network unpack to 8 MiB, and the future of each piece
    /// is ready at once. A timer is never polled in such a loop, and the loop never returns to the runtime, so that a few
    /// hostile bodies would occupy all worker threads. The budget makes the loop pause as a socket would.
    pub async fn hold<T>(self, piece: impl Future<Output = T>) -> Option<T> {
        tokio::task::consume_budget().await;
        if Instant::now() >= self.at {
            return None;
        }
        tokio::time::timeout_at(self.at, piece).await.ok()
    }

    /// The error of an exchange that was not over in time.
    pub fn missed(self, host: String, received: u64) -> HttpError {
        HttpError::Deadline {
            host,
            after: self.after,
            received,
        }
    }
}
