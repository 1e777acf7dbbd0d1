//! How long what was recorded and kept stays.

use std::time::Duration;

/// How long what was recorded and kept stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// How long kept results stay after they were last written.
    pub artifacts: Duration,
    /// What is removed from the journal.
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

/// What is removed from the journal. By default nothing: a record that goes away by itself is not what somebody
/// who reads it a year later expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalRetention {
    /// Records older than this are removed.
    pub age: Option<Duration>,
    /// The oldest records are removed while the journal takes more bytes than this.
    pub size: Option<u64>,
}
