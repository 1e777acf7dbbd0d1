//! Batches: calls that a model made in one turn, their order, and the effect of one failure on the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call's place in its batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchPlace {
    /// The caller's id of the batch, unique within a session.
    pub id: String,
    /// The call's place, from 0.
    pub index: u32,
    /// The calls that must succeed before this one runs, by their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<u32>,
    /// The effect of this call's failure on the others.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// In which order the calls run and answer.
    #[serde(default)]
    pub ordering: BatchOrdering,
}

/// The effect of one call's failure on the rest of its batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing, but the calls that depend on it cannot run.
    #[default]
    Ignore,
    /// The others are canceled.
    CancelSiblings,
    /// The calls that depend on it, directly or through others, are canceled at once.
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
