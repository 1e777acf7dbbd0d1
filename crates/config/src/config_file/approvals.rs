//! `approvals`: how long questions to people wait, and where they are asked.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ConfigDuration, LocatedValue};

/// Questions to people, where a rule or the mode asks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalsSection {
    /// How long a question waits for an answer. No answer is a no.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long a yes stays good for a call whose caller had stopped waiting: it may send the same call once more.
    pub grant_for: Option<LocatedValue<ConfigDuration>>,
    /// Calls that wait for an answer at the same time; further ones are refused. One caller may take half of it.
    #[schemars(range(min = 1))]
    pub waiting: Option<LocatedValue<usize>>,
    /// Whether `toolpost serve` asks on the terminal it was started from. `toolpost approvals` and HTTP always work.
    pub prompt: Option<LocatedValue<bool>>,
}
