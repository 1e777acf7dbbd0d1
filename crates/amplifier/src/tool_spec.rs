//! A tool as a model is told of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name that it is called by.
    pub name: String,
    /// The schema of its input. Empty: any object.
    pub parameters: Map<String, Value>,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// What else is said of it.
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

    /// Says what it does.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}
