//! How long questions to people wait, and where they are asked.

use std::time::Duration;

/// Questions to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalsConfig {
    /// How long a question waits for an answer.
    pub timeout: Duration,
    /// How long a yes stays good for a call whose caller had stopped waiting.
    pub grant_for: Duration,
    /// Calls that wait for an answer at the same time.
    pub waiting: usize,
    /// Whether the terminal of `serve` is asked.
    pub prompt: bool,
}

impl Default for ApprovalsConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10 * 60),
            grant_for: Duration::from_secs(60 * 60),
            waiting: 256,
            prompt: true,
        }
    }
}
