//! The A2E description of a tool: parameters by name, each with one type.
//!
//! The protocol's parameters express less than JSON Schema, so a definition also carries the schema if the parameters
//! do not cover all of it. Clients without this extension ignore the field.

mod parameter;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolpost_model::{Declaration, ToolKind};

pub use parameter::ToolParameter;

use crate::lax;

/// A tool in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The tool's name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The parameters of the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_parameters: Vec<ToolParameter>,
    /// The parameters of the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_parameters: Vec<ToolParameter>,
    /// Whether the tool reports events while it runs.
    #[serde(
        default = "yes",
        deserialize_with = "lax::flag",
        skip_serializing_if = "Clone::clone"
    )]
    pub streaming: bool,
    /// Whether the tool is safe to repeat.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub idempotent: bool,
    /// Classification words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The tool's version.
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    pub version: String,
    /// The collection that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<String>,
    /// Whether the tool is left out of lists until it is asked for.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub defer_loading: bool,
    /// The kind of the tool. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The schema of the arguments, if the parameters do not cover all of it. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The schema of the output, if the parameters do not cover all of it. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

fn yes() -> bool {
    true
}

fn first_version() -> String {
    "1.0.0".to_owned()
}

fn is_first_version(version: &str) -> bool {
    version == "1.0.0"
}

impl ToolDefinition {
    /// The definition of a declared tool under its wire name.
    pub fn of(name: &str, declaration: &Declaration, deferred: bool) -> Self {
        let input = &declaration.input.schema;
        let output = declaration.output.schema.as_deref();
        let lossy = |schema: &&Value| !parameter::tells_all_of(schema);
        let version = &declaration.version;
        Self {
            name: name.to_owned(),
            description: declaration.description.clone(),
            input_parameters: parameter::of_schema(input),
            output_parameters: output.map(parameter::of_schema).unwrap_or_default(),
            streaming: declaration.interface.execution.streaming,
            idempotent: declaration.interface.execution.idempotent,
            tags: declaration.tags.clone(),
            version: if version.is_empty() {
                first_version()
            } else {
                version.clone()
            },
            toolkit: Some(declaration.toolkit.clone()).filter(|toolkit| !toolkit.is_empty()),
            defer_loading: deferred,
            kind: (declaration.kind != ToolKind::Function)
                .then(|| declaration.kind.as_str().to_owned()),
            input_schema: Some(&**input).filter(lossy).cloned(),
            output_schema: output.filter(lossy).cloned(),
        }
    }

    /// The schema of the output, if the definition describes it.
    pub fn result_schema(&self) -> Option<Value> {
        match &self.output_schema {
            Some(schema) => Some(schema.clone()),
            None if self.output_parameters.is_empty() => None,
            None => Some(parameter::to_schema(self.output_parameters.iter())),
        }
    }

    /// The schema of the arguments: the host's own, or one built from the parameters.
    pub fn schema(&self) -> Cow<'_, Value> {
        match &self.input_schema {
            Some(schema) => Cow::Borrowed(schema),
            None if self.input_parameters.is_empty() => Cow::Owned(json!({ "type": "object" })),
            None => Cow::Owned(parameter::to_schema(self.input_parameters.iter())),
        }
    }
}
