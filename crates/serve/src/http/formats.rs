//! Tool lists in the forms of model providers and protocols.

use std::str::FromStr;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;
use toolpost_core::{Surface, SurfaceEntry};
use toolpost_model::{
    ClassFact, Declaration, EffectClass, HiddenReason, PersistStrategy, SourceProblem, ToolId,
    Visibility,
};

use crate::a2e;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolListFormat {
    Toolpost,
    OpenAi,
    Anthropic,
    Gemini,
    Mcp,
    A2e,
}

/// A word that is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format; the formats are toolpost, openai, anthropic, gemini, mcp, a2e")]
pub(crate) struct UnknownFormat(String);

impl FromStr for ToolListFormat {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        match word {
            "toolpost" => Ok(Self::Toolpost),
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            "gemini" => Ok(Self::Gemini),
            "mcp" => Ok(Self::Mcp),
            "a2e" => Ok(Self::A2e),
            other => Err(UnknownFormat(other.escape_debug().to_string())),
        }
    }
}

/// A list of tools in one form, serialized directly from the catalog without copies.
pub(crate) struct FormattedToolList<'a> {
    pub(crate) format: ToolListFormat,
    pub(crate) tools: &'a [SurfaceEntry],
    pub(crate) hidden: Option<HiddenTools<'a>>,
    /// Sources, and parts of sources, that are configured and not available.
    pub(crate) unavailable: &'a [SourceProblem],
    /// Notices for operators about names, rules and settings.
    pub(crate) notices: &'a [String],
}

/// The hidden tools of a surface, with the reasons.
pub(crate) struct HiddenTools<'a>(pub(crate) &'a Surface);

impl Serialize for FormattedToolList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools = FormattedTools(self.format, self.tools);
        match self.format {
            ToolListFormat::OpenAi | ToolListFormat::Anthropic | ToolListFormat::A2e => {
                tools.serialize(serializer)
            }
            ToolListFormat::Gemini => {
                let mut list = serializer.serialize_seq(Some(1))?;
                list.serialize_element(&SingleEntryMap("functionDeclarations", &tools))?;
                list.end()
            }
            ToolListFormat::Toolpost | ToolListFormat::Mcp => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("tools", &tools)?;
                if self.format == ToolListFormat::Toolpost && !self.unavailable.is_empty() {
                    map.serialize_entry("unavailable", self.unavailable)?;
                }
                if self.format == ToolListFormat::Toolpost && !self.notices.is_empty() {
                    map.serialize_entry("notices", self.notices)?;
                }
                if let Some(hidden) = &self.hidden {
                    map.serialize_entry("hidden", hidden)?;
                    map.serialize_entry("surface", hidden.0.id())?;
                }
                map.end()
            }
        }
    }
}

impl Serialize for HiddenTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hidden = self.0.all().filter_map(|(entry, visibility)| {
            let reason = match visibility {
                Visibility::Loaded => return None,
                Visibility::Deferred => HiddenReason::Deferred,
                Visibility::Unlisted => HiddenReason::Companion,
                Visibility::Blocked(reason) => reason,
            };
            Some(HiddenTool {
                name: entry.name(),
                tool_id: entry.id(),
                reason,
                explanation: reason.explain(),
            })
        });
        serializer.collect_seq(hidden)
    }
}

#[derive(Serialize)]
struct HiddenTool<'a> {
    name: &'a str,
    tool_id: &'a ToolId,
    reason: HiddenReason,
    explanation: &'static str,
}

struct SingleEntryMap<'a, T>(&'static str, &'a T);

impl<T: Serialize> Serialize for SingleEntryMap<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.0, self.1)])
    }
}

struct FormattedTools<'a>(ToolListFormat, &'a [SurfaceEntry]);

impl Serialize for FormattedTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|tool| FormattedTool(self.0, tool)))
    }
}

pub(crate) struct FormattedTool<'a>(pub(crate) ToolListFormat, pub(crate) &'a SurfaceEntry);

impl Serialize for FormattedTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(format, SurfaceEntry { entry, visibility }) = self;
        let declaration = entry.declaration();
        if *format == ToolListFormat::A2e {
            return a2e::definition(self.1).serialize(serializer);
        }
        let name = entry.name();
        let description = &declaration.description;
        let schema = &declaration.input.schema;
        let mut map = serializer.serialize_map(None)?;
        if *format == ToolListFormat::OpenAi {
            map.serialize_entry("type", "function")?;
            map.serialize_entry(
                "function",
                &OpenAiFunction {
                    name,
                    description,
                    parameters: schema,
                },
            )?;
            return map.end();
        }
        map.serialize_entry("name", name)?;
        map.serialize_entry("description", description)?;
        match format {
            ToolListFormat::OpenAi | ToolListFormat::Anthropic | ToolListFormat::A2e => {
                map.serialize_entry("input_schema", schema)?;
            }
            ToolListFormat::Gemini => map.serialize_entry("parametersJsonSchema", schema)?,
            ToolListFormat::Toolpost => {
                map.serialize_entry("tool_id", entry.id())?;
                map.serialize_entry("title", &declaration.title)?;
                map.serialize_entry("kind", &declaration.kind)?;
                map.serialize_entry("tags", &declaration.tags)?;
                map.serialize_entry("class", &entry.listed_class())?;
                map.serialize_entry("deferred", &(*visibility == Visibility::Deferred))?;
                map.serialize_entry("input_schema", schema)?;
            }
            ToolListFormat::Mcp => {
                map.serialize_entry("inputSchema", &ObjectRootSchema(schema))?;
                if let Some(title) = &declaration.title {
                    map.serialize_entry("title", title)?;
                }
                if let Some(schema) = promised_output(declaration) {
                    map.serialize_entry("outputSchema", schema)?;
                }
                map.serialize_entry("annotations", &McpAnnotations::of(declaration))?;
                for key in ["icons", "_meta"] {
                    if let Some(value) = declaration.annotations.get(key) {
                        map.serialize_entry(key, value)?;
                    }
                }
            }
        }
        map.end()
    }
}

/// The output schema for MCP clients. Clients treat a result that does not match it as an error, so the schema is left
/// out if the operator's settings may withhold the result. Many clients accept only object schemas, and refuse the
/// whole list otherwise.
pub(crate) fn promised_output(declaration: &Declaration) -> Option<&Value> {
    let is_shown = match declaration.interface.persistence.strategy {
        PersistStrategy::Inline
        | PersistStrategy::PreviewAndPersist
        | PersistStrategy::NeverPersist => true,
        PersistStrategy::RefOnly | PersistStrategy::Redact | PersistStrategy::DropWithReason => {
            false
        }
    };
    declaration
        .output
        .schema
        .as_deref()
        .filter(|schema| is_shown && schema["type"] == "object")
}

#[derive(Serialize)]
struct OpenAiFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// A schema of arguments with `type: object` at its root.
struct ObjectRootSchema<'a>(&'a Value);

impl Serialize for ObjectRootSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(schema) = self
            .0
            .as_object()
            .filter(|schema| !schema.contains_key("type"))
        else {
            return self.0.serialize(serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "object")?;
        for (key, value) in schema {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpAnnotations {
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

impl McpAnnotations {
    fn of(declaration: &Declaration) -> Self {
        let interface = &declaration.interface;
        let read_only = interface.safety.class == ClassFact::Always(EffectClass::Read);
        // An unclassified tool counts as one that can do anything.
        let (destroys, reaches_out) = match interface.safety.class.worst() {
            EffectClass::Read | EffectClass::Write => (false, false),
            EffectClass::Network => (false, true),
            EffectClass::Execute | EffectClass::Unknown => (true, true),
        };
        Self {
            read_only_hint: read_only,
            destructive_hint: interface.safety.destructive || destroys,
            idempotent_hint: read_only || interface.execution.idempotent,
            open_world_hint: reaches_out,
        }
    }
}
