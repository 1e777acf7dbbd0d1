//! A service's description of its tool, as a declaration. Everything in it is a stranger's word.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_amplifier::ModuleId;
use toolpost_core::Schema;
use toolpost_model::{Declaration, ExecutionKind, ExternalMapping, InputContract, ToolId, ToolIdError};

use super::{message::Spec, status::shortened};

/// The longest description of a tool.
const LONGEST_DESCRIPTION: usize = 16 * 1024;
/// The longest schema of a tool's input.
const LONGEST_SCHEMA: usize = 256 * 1024;

/// A tool that can be listed, with what was mended about it.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) declaration: Declaration,
    /// What is wrong with its schema, so that any object is taken.
    pub(super) broken_schema: Option<String>,
}

/// Why there is no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Undeclarable {
    #[error("the service gives its tool no name")]
    NoName,
    #[error("the service's tool cannot be listed: {0}")]
    Name(#[from] ToolIdError),
}

pub(super) fn declare(module: &ModuleId, spec: Spec, kind: ExecutionKind) -> Result<Declared, Undeclarable> {
    let name = spec.name.trim();
    if name.is_empty() {
        return Err(Undeclarable::NoName);
    }
    let tool_id = ToolId::new(&speakable(module.as_str()).replace('.', "_"), &speakable(name))?;
    let mut declaration = Declaration::new(tool_id, cut(spec.description, LONGEST_DESCRIPTION));
    if declaration.tool_id.name() != name {
        declaration.title = Some(shortened(name));
    }
    declaration.toolkit = module.as_str().to_owned();
    let native_id = name.to_owned();
    declaration.external_mappings = vec![ExternalMapping { system: "amplifier".to_owned(), native_id }];
    declaration.interface.execution.kind = kind;
    let broken_schema = match schema(&spec.parameters_json) {
        Ok(schema) => {
            declaration.input = InputContract { schema: Arc::new(schema), examples: Vec::new() };
            None
        }
        Err(why) => Some(why),
    };
    Ok(Declared { declaration, broken_schema })
}

/// A name without the characters that no tool id has.
fn speakable(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

fn cut(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        let mut end = longest;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The schema of the input: none, or an empty one, takes any object.
fn schema(text: &str) -> Result<Value, String> {
    if text.len() > LONGEST_SCHEMA {
        return Err(format!("it is longer than {} KiB", LONGEST_SCHEMA / 1024));
    }
    if text.trim().is_empty() {
        return Ok(json!({ "type": "object" }));
    }
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    match &schema {
        Value::Object(keywords) if keywords.is_empty() => Ok(json!({ "type": "object" })),
        Value::Object(_) => {
            let check = Schema::new(Arc::new(schema.clone())).and_then(|schema| schema.check());
            check.map(|()| schema).map_err(|error| error.to_string())
        }
        Value::Null => Ok(json!({ "type": "object" })),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("it is not an object".to_owned())
        }
    }
}
