//! The stages of a call.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stage of a call. The host's loop steps from one to the next; the journal keeps the time of each.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Find the tool and check that it may be called here.
    Resolve,
    /// Read the arguments.
    Parse,
    /// Check them against the schema and the tool's own rules, before any I/O.
    Validate,
    /// Prepare the observable input.
    Observe,
    /// Let hooks look, rewrite or stop.
    PreHooks,
    /// Allowed, denied or asked?
    Decide,
    /// Wait for a person.
    AwaitApproval,
    /// Wait for a slot and for the resources.
    Admit,
    /// Run.
    Execute,
    /// Turn the output into a result, once.
    Map,
    /// Let hooks see the result.
    PostHooks,
    /// Commit the end.
    Persist,
    /// Send the answer to the caller.
    Emit,
}

impl Stage {
    /// The name in records, events and docs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Parse => "parse",
            Self::Validate => "validate",
            Self::Observe => "observe",
            Self::PreHooks => "pre_hooks",
            Self::Decide => "decide",
            Self::AwaitApproval => "await_approval",
            Self::Admit => "admit",
            Self::Execute => "execute",
            Self::Map => "map",
            Self::PostHooks => "post_hooks",
            Self::Persist => "persist",
            Self::Emit => "emit",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a call reached a stage. Written as `["decide", 153]`: every record of a call carries a dozen of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The stage reached.
    pub stage: Stage,
    /// Microseconds since the call began.
    pub at_us: u64,
}

impl Serialize for Transition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.stage, self.at_us).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Transition {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (stage, at_us) = Deserialize::deserialize(deserializer)?;
        Ok(Self { stage, at_us })
    }
}
