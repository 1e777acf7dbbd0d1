//! A call as a model asks for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A call as a model asks for it. Nothing is converted: arguments that are a text with JSON in it are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id for it, by which the answer is told apart.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
    /// What else came along.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolCall {
    /// A call with nothing else along.
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
