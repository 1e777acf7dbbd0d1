//! `approvals`: the time limits of approvals, and where they are asked.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ConfigDuration, LocatedValue};

/// Approvals, when a rule or the mode asks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalsSection {
    /// How long a question waits for an answer. Without an answer by then the call is denied.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long an approval stays valid for a call after its caller stopped waiting: the caller may send the same call
    /// once more.
    pub grant_for: Option<LocatedValue<ConfigDuration>>,
    /// Calls that wait for an approval at the same time; further ones are refused. One caller may have half of them.
    #[schemars(range(min = 1))]
    pub waiting: Option<LocatedValue<usize>>,
    /// Whether `toolpost serve` also asks on its own terminal. `toolpost approvals` and HTTP always work.
    pub prompt: Option<LocatedValue<bool>>,
}
