//! `retention`: how long what was recorded and kept stays.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// How long what was recorded and kept stays.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSection {
    /// How long kept results stay after they were last written.
    pub artifacts: Option<LocatedValue<ConfigDuration>>,
    /// What is removed from the journal, oldest first.
    pub journal: JournalRetentionSection,
}

/// What is removed from the journal, oldest first. Without either, nothing is. Calls that have not ended, questions
/// that wait and sessions that may come back stay in any case.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JournalRetentionSection {
    /// Records older than this are removed.
    pub age: Option<LocatedValue<ConfigDuration>>,
    /// The oldest records are removed while the journal takes more room than this. It should be less than
    /// `limits.journal`, at which the host stops.
    pub size: Option<LocatedValue<ByteSize>>,
}
