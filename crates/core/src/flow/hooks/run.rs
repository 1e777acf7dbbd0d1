//! What is left on record of a hook's work.

use serde::{Deserialize, Serialize};
use toolpost_model::Behavior;

use super::{HookEvent, HookStanding};

/// One hook asked about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRun {
    /// Which hook.
    pub name: String,
    /// When.
    pub event: HookEvent,
    /// What its failure means.
    pub standing: HookStanding,
    /// How long it took.
    pub duration_us: u64,
    /// What it did. Nothing: it let the call pass.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub did: Vec<HookDeed>,
    /// Why, in its own words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// What it had to say to whoever watches.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// What a hook did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookDeed {
    /// It gave other arguments.
    ChangedArguments,
    /// It gave other output.
    ChangedOutput,
    /// It added text for the model.
    AddedContext,
    /// It voted to allow.
    Allowed,
    /// It voted to ask.
    Asked,
    /// It voted to deny.
    Denied,
    /// It stopped the call.
    Stopped,
    /// It kept the result from the caller.
    Withheld,
    /// It left a message.
    LeftMessage,
}

impl From<Behavior> for HookDeed {
    fn from(behavior: Behavior) -> Self {
        match behavior {
            Behavior::Allow => Self::Allowed,
            Behavior::Ask => Self::Asked,
            Behavior::Deny => Self::Denied,
        }
    }
}
