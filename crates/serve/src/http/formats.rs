//! Tool lists in the forms model providers and protocols take.

use std::str::FromStr;

use serde_json::{Value, json};
use toolpost_core::Entry;
use toolpost_model::{ClassFact, EffectClass, Visibility};

/// The form of a tool list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Toolpost,
    OpenAi,
    Anthropic,
    Gemini,
    Mcp,
}

/// A word that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format; the formats are toolpost, openai, anthropic, gemini, mcp")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        match word {
            "toolpost" => Ok(Self::Toolpost),
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            "gemini" => Ok(Self::Gemini),
            "mcp" => Ok(Self::Mcp),
            other => Err(UnknownFormat(other.escape_debug().to_string())),
        }
    }
}

impl Format {
    /// The whole list: ready to be put into a request to the model.
    pub(crate) fn render<'a>(self, tools: impl Iterator<Item = (&'a Entry, Visibility)>) -> Value {
        let list: Vec<Value> = tools.map(|(entry, visibility)| self.tool(entry, visibility)).collect();
        match self {
            Self::Toolpost | Self::Mcp => json!({ "tools": list }),
            Self::OpenAi | Self::Anthropic => Value::Array(list),
            Self::Gemini => json!([{ "functionDeclarations": list }]),
        }
    }

    fn tool(self, entry: &Entry, visibility: Visibility) -> Value {
        let declaration = entry.declaration();
        let (name, description, schema) = (entry.name(), &declaration.description, &declaration.input.schema);
        match self {
            Self::Toolpost => json!({
                "name": name,
                "tool_id": entry.id(),
                "title": declaration.title,
                "description": description,
                "kind": declaration.kind,
                "tags": declaration.tags,
                "class": declaration.interface.safety.class.worst(),
                "deferred": visibility == Visibility::Deferred,
                "input_schema": schema,
            }),
            Self::OpenAi => json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": schema },
            }),
            Self::Anthropic => json!({ "name": name, "description": description, "input_schema": schema }),
            Self::Gemini => json!({ "name": name, "description": description, "parametersJsonSchema": schema }),
            Self::Mcp => {
                let read_only = declaration.interface.safety.class == ClassFact::Always(EffectClass::Read);
                let mut tool = json!({
                    "name": name,
                    "description": description,
                    "inputSchema": schema,
                    "annotations": {
                        "readOnlyHint": read_only,
                        "destructiveHint": declaration.interface.safety.destructive,
                        "idempotentHint": read_only || declaration.interface.execution.idempotent,
                    },
                });
                if let Some(title) = &declaration.title {
                    tool["title"] = json!(title);
                }
                if let Some(schema) = &declaration.output.schema {
                    tool["outputSchema"] = json!(schema);
                }
                tool
            }
        }
    }
}
