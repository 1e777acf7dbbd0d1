//! The time limits of approvals, and where they are asked.

use std::time::Duration;

/// Approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalsConfig {
    /// How long a question waits for an answer.
    pub timeout: Duration,
    /// How long an approval stays valid for a call after its caller stopped waiting.
    pub grant_for: Duration,
    /// The most calls that wait for an approval at the same time.
    pub waiting: usize,
    /// Whether `serve` also asks on its terminal.
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
