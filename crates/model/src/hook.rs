//! Hooks as records and configuration name them: when they are asked, what their failure means, what they did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Behavior;

/// When a hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before the decision.
    Before,
    /// After a success, before it is recorded.
    After,
    /// After any other end, before it is recorded: also of a call that was denied or never started.
    Failure,
}

impl HookEvent {
    /// The word in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Failure => "failure",
        }
    }
}

/// What a hook's failure means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookStanding {
    /// Nothing passes a guard that fails: the call is not run, or its result is withheld.
    Guard,
    /// A call whose hook failed before it asks a person; a failure after it is noted.
    #[default]
    Ordinary,
    /// Looks only. Its failure is noted and changes nothing, and neither does anything it says beyond a message.
    Observer,
}

impl HookStanding {
    /// The word in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Ordinary => "ordinary",
            Self::Observer => "observer",
        }
    }
}

/// One hook asked about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// Which hook.
    pub name: String,
    /// When.
    pub event: HookEvent,
    /// What its failure means.
    pub standing: HookStanding,
    /// When it was asked, in microseconds from the request on.
    #[serde(default)]
    pub at_us: u64,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
