//! `retention`: how long the journal and kept results stay.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// How long the journal and kept results stay.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSection {
    /// How long kept results stay after they were last written.
    pub artifacts: Option<LocatedValue<ConfigDuration>>,
    /// The removal of journal records, oldest first.
    pub journal: JournalRetentionSection,
}

/// The removal of journal records, oldest first. By default none are removed. Calls that have not ended, open
/// questions and sessions that may come back always stay.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JournalRetentionSection {
    /// Records older than this are removed.
    pub age: Option<LocatedValue<ConfigDuration>>,
    /// The size above which the oldest records are removed. It should be less than `limits.journal`, at which the host
    /// stops.
    pub size: Option<LocatedValue<ByteSize>>,
}
