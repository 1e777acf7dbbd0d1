//! A module's tool as a declaration in the catalog. Tools of modules in every language get their ids and limits here.

use std::sync::Arc;

use serde_json::Value;
use toolpost_model::{Declaration, ExternalMapping, ToolId, ToolIdError};

use crate::{ModuleId, ToolSpec};

/// The system of the native names in declarations of modules' tools.
pub const SYSTEM: &str = "amplifier";
/// The most tools of a module.
pub const MAX_TOOLS: usize = 256;
/// The largest description, in bytes; more is cut.
pub const MAX_DESCRIPTION: usize = 16 << 10;
/// The largest schema, in bytes of its JSON; a larger one is replaced by any object.
pub const MAX_SCHEMA: usize = 256 << 10;

/// A declaration with notes for the operator.
#[derive(Clone, Debug)]
pub struct AnnotatedDeclaration {
    /// The declaration: effects unknown, the module as its toolkit.
    pub declaration: Declaration,
    /// The parts of the tool's own description that were changed.
    pub notes: Vec<String>,
}

impl ToolSpec {
    /// The declaration of a module's tool. Its id is `<module>.<name>`, with `_` for characters that ids cannot have;
    /// the original name is kept among the [external mappings](ToolSpec::native_name).
    pub fn declare(&self, module: &ModuleId) -> Result<AnnotatedDeclaration, ToolIdError> {
        let id = ToolId::new(&plain(module.as_str(), &['.']), &plain(&self.name, &[]))?;
        let mut notes = Vec::new();
        let mut description = self.description.clone().unwrap_or_default();
        if description.len() > MAX_DESCRIPTION {
            notes.push(format!(
                "the description of `{}` has {} bytes and was cut at {MAX_DESCRIPTION}",
                self.name,
                description.len()
            ));
            description.truncate(description.floor_char_boundary(MAX_DESCRIPTION));
        }
        let mut declaration = Declaration::new(id, description);
        declaration.toolkit = module.to_string();
        declaration.external_mappings = vec![ExternalMapping::new(SYSTEM, self.name.clone())];
        if declaration.tool_id.name() != self.name {
            declaration.title = Some(self.name.clone());
        }
        if !self.parameters.is_empty() {
            let schema = Value::Object(self.parameters.clone());
            let size = schema.to_string().len();
            match size > MAX_SCHEMA {
                true => notes.push(format!(
                    "the schema of `{}` has {size} bytes, the limit is {MAX_SCHEMA}; any object is accepted",
                    self.name
                )),
                false => declaration.input.schema = Arc::new(schema),
            }
        }
        Ok(AnnotatedDeclaration { declaration, notes })
    }

    /// The module's own name for the tool of a declaration; for any other tool, the name in its id.
    pub fn native_name(declaration: &Declaration) -> &str {
        let own = declaration
            .external_mappings
            .iter()
            .find(|mapping| mapping.system == SYSTEM);
        own.map_or_else(|| declaration.tool_id.name(), |mapping| &mapping.native_id)
    }
}

/// A text with `_` for each character that an id cannot have, and for those in `also`.
fn plain(text: &str, also: &[char]) -> String {
    let fits = |c: char| {
        c.is_ascii_alphanumeric()
            || (matches!(c, '_' | '-' | '.' | '/' | ':') && !also.contains(&c))
    };
    text.chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}
