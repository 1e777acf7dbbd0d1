//! Calls that a model made in one turn: their order, and what the failure of one means for the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call's place among the calls of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchPlace {
    /// The caller's word for the batch; its own within a session.
    pub id: String,
    /// The call's place, from 0.
    pub index: u32,
    /// The calls that must have succeeded before this one runs, by their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<u32>,
    /// What this call's failure means for the others.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// In which order the calls run and answer.
    #[serde(default)]
    pub ordering: BatchOrdering,
}

/// What the failure of one call means for the others of its batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing; those that depend on it cannot run, though.
    #[default]
    Ignore,
    /// The others are canceled.
    CancelSiblings,
    /// Those that depend on it, also by way of others, are canceled at once.
    CancelDependent,
}

/// In which order the calls of a batch run and answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Ordering")]
pub enum BatchOrdering {
    /// They run as they can; their answers come in the order of their places.
    #[default]
    PreserveTerminalOrder,
    /// They run and answer as they can.
    AllowUnordered,
    /// One after the other, in the order of their places.
    Serial,
}
