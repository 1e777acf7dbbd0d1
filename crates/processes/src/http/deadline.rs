//! The deadline of an exchange, and its limit on redirects.

use std::time::Duration;

use tokio::time::Instant;

use super::error::HttpError;

/// The most redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;

/// The deadline of a whole exchange.
#[derive(Clone, Copy)]
pub struct HttpExchangeDeadline {
    /// The moment.
    pub at: Instant,
    /// The duration that led to it.
    pub after: Duration,
}

impl HttpExchangeDeadline {
    /// The earlier of the caller's time limit and the host's deadline of the call.
    pub fn new(wish: Duration, host: std::time::Instant) -> Self {
        let now = Instant::now();
        let after = wish.min(Instant::from_std(host).saturating_duration_since(now));
        Self {
            at: now + after,
            after,
        }
    }

    /// Waits for the next piece of a body; `None` after the deadline.
    ///
    /// Pieces of a compressed body come from memory: 8 KiB from the network unpack to 8 MiB, and the future of each
    /// piece is ready at once. A loop over such futures never returns to the runtime and never polls a timer, so that a
    /// few hostile bodies could occupy all worker threads. The budget makes the loop pause as a socket would.
    pub async fn hold<T>(self, piece: impl Future<Output = T>) -> Option<T> {
        tokio::task::consume_budget().await;
        if Instant::now() >= self.at {
            return None;
        }
        tokio::time::timeout_at(self.at, piece).await.ok()
    }

    /// The error of an exchange that missed its deadline.
    pub fn missed(self, host: String, received: u64) -> HttpError {
        HttpError::Deadline {
            host,
            after: self.after,
            received,
        }
    }
}
