//! A tool as models see it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool as models see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name for calls.
    pub name: String,
    /// The schema of its input. Empty: any object.
    pub parameters: Map<String, Value>,
    /// The description.
    #[serde(default)]
    pub description: Option<String>,
    /// Further members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolSpec {
    /// A tool of this name.
    pub fn new(name: impl Into<String>, parameters: Map<String, Value>) -> Self {
        Self {
            name: name.into(),
            parameters,
            description: None,
            extra: Map::new(),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}
