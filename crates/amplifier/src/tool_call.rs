//! A call, as a model requests it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A call, as a model requests it. Values are not converted: arguments in the form of a JSON text are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call, which its answer repeats.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Further members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolCall {
    /// A call without further members.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Map<String, Value>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
            extra: Map::new(),
        }
    }
}
