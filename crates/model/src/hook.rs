//! Hooks as records and configuration name them: when they run, the meaning of their failure, and their actions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Behavior;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before the decision.
    Before,
    /// After a success, before it is recorded.
    After,
    /// After any other end, before it is recorded: also after a denial, and for a call that never started.
    Failure,
}

impl HookEvent {
    /// The name in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Failure => "failure",
        }
    }
}

/// The meaning of a hook's failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookStanding {
    /// A call does not pass a guard that fails: it is not run, or its result is withheld.
    Guard,
    /// If the hook fails before the call, a person is asked; a failure after the call is noted.
    #[default]
    Ordinary,
    /// It only observes. Its failure and its actions other than a message are noted and change nothing.
    Observer,
}

impl HookStanding {
    /// The name in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Ordinary => "ordinary",
            Self::Observer => "observer",
        }
    }
}

/// One run of one hook for one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// The hook's name.
    pub name: String,
    /// When in the call it ran.
    pub event: HookEvent,
    /// The meaning of its failure.
    pub standing: HookStanding,
    /// When it started, in microseconds after the request.
    #[serde(default)]
    pub at_us: u64,
    /// The duration of the run, in microseconds.
    pub duration_us: u64,
    /// Its actions. Empty: it let the call pass.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub did: Vec<HookDeed>,
    /// Why, in its own words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// Its message for the call's listeners.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// An action of a hook.
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
    /// It withheld the result from the caller.
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
