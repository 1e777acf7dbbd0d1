//! How long the journal and kept results stay.

use std::time::Duration;

/// How long the journal and kept results stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// How long kept results stay after they were last written.
    pub artifacts: Duration,
    /// The removal of journal records.
    pub journal: JournalRetention,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        let month = Duration::from_secs(30 * 24 * 60 * 60);
        Self {
            artifacts: month,
            journal: JournalRetention::default(),
        }
    }
}

/// The removal of journal records. By default none are removed: an operator who reads the journal a year later expects
/// it to be complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalRetention {
    /// Records older than this are removed.
    pub age: Option<Duration>,
    /// The oldest records are removed while the journal takes more bytes than this.
    pub size: Option<u64>,
}
