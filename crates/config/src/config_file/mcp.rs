//! `mcp`: servers of the Model Context Protocol whose tools are taken in.

use std::{borrow::Cow, collections::BTreeMap, fmt, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use toolpost_model::SandboxProfile;

use crate::{
    ByteSize, ConfigDuration, LocatedValue, McpEra, McpNaming, McpNewTools, McpShare, McpStart,
};

/// The Model Context Protocol.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpSection {
    /// How long an agent's call over MCP waits for an approval before it is told to come again. Clients give up after a
    /// minute or so.
    pub approval_wait: Option<LocatedValue<ConfigDuration>>,
    /// Servers whose tools are taken in, by the names that their tools' ids begin with. Only in a file that is trusted.
    pub servers: BTreeMap<String, LocatedValue<McpServerEntry>>,
}

/// One server. It has a `command` or a `url`; without either, the entry says more of a server that an included file names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServerEntry {
    /// How it is spoken with: `stdio`, `http` or `streamable-http`. It follows from `command` or `url`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["stdio", "http", "streamable-http", null]))]
    pub transport: Option<LocatedValue<String>>,
    /// A program that is started: a name that is found in `PATH`, a whole path, or `./FILE` beside this file.
    pub command: Option<LocatedValue<String>>,
    /// Its arguments, as they are. No shell reads them.
    pub args: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Variables that it gets with these values. A value may refer to where a secret is kept.
    pub env: BTreeMap<String, LocatedValue<McpValue>>,
    /// The folder it begins in, relative to this file. Without it: the workspace.
    pub cwd: Option<LocatedValue<PathBuf>>,
    /// The endpoint of a server that is reached over streamable HTTP.
    pub url: Option<LocatedValue<String>>,
    /// Headers that every request carries. A value may refer to where a secret is kept.
    pub headers: BTreeMap<String, LocatedValue<McpValue>>,
    /// Whether it is left out.
    pub disabled: Option<LocatedValue<bool>>,
    /// Whether the host does not start without it.
    pub required: Option<LocatedValue<bool>>,
    /// Which revision of the protocol is spoken.
    pub era: Option<LocatedValue<McpEra>>,
    /// How its tools are named towards agents.
    pub naming: Option<LocatedValue<McpNaming>>,
    /// Who shares one connection or process.
    pub share: Option<LocatedValue<McpShare>>,
    /// When it is started.
    pub start: Option<LocatedValue<McpStart>>,
    /// What becomes of definitions that were never seen before. Changed ones are always kept back.
    pub new_tools: Option<LocatedValue<McpNewTools>>,
    /// Which of its tools are taken in.
    pub tools: McpToolsEntry,
    /// How long a call of one of its tools may run. `tools` may say otherwise of single ones.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long a first connection and its handshake may take.
    pub connect_timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long it is kept without a call. Without it: until the host ends.
    pub idle_stop: Option<LocatedValue<ConfigDuration>>,
    /// The longest message that is read from it.
    pub max_message: Option<LocatedValue<ByteSize>>,
    /// What its process may do. Without it: what `sandbox.profile` says, which is no network unless you opened it.
    pub sandbox: Option<LocatedValue<SandboxProfile>>,
    /// Variables that it gets from the host's environment.
    pub pass: Vec<LocatedValue<String>>,
    /// Files and folders outside of the roots that it may read, relative to this file.
    pub readable: Vec<LocatedValue<PathBuf>>,
    /// Folders outside of the roots that it may write, relative to this file.
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// The only files and folders of the workspace and the other roots that its process sees, relative to this file.
    /// Without it: all that rules do not keep.
    pub reads: Option<LocatedValue<Vec<LocatedValue<PathBuf>>>>,
}

/// Which of a server's tools are taken in, by their names there, with `*` for any characters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpToolsEntry {
    /// Only these. Without it: all.
    pub allow: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Not these, whatever `allow` says.
    pub deny: Vec<LocatedValue<String>>,
}

/// A value that may be a secret. It does not print itself.
#[derive(Clone)]
pub enum McpValue {
    /// A text, in which `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:PATH}` stand for what is kept elsewhere.
    Text(String),
    /// What a file holds.
    File(PathBuf),
    /// What a variable of the host's environment holds.
    Variable(String),
}

impl fmt::Debug for McpValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
        }
    }
}

/// Written by hand: serde's untagged enums answer a slip with "did not match".
impl<'de> Deserialize<'de> for McpValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrPlace;

        impl<'de> Visitor<'de> for TextOrPlace {
            type Value = McpValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a table with `file` or `env`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<McpValue, E> {
                Ok(McpValue::Text(text.to_owned()))
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<McpValue, E> {
                Ok(McpValue::Text(flag.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<McpValue, E> {
                Ok(McpValue::Text(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<McpValue, E> {
                Ok(McpValue::Text(number.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<McpValue, A::Error> {
                let place = map.next_entry::<String, String>()?;
                let value = match place {
                    Some((key, path)) if key == "file" => McpValue::File(path.into()),
                    Some((key, name)) if key == "env" => McpValue::Variable(name),
                    Some(_) | None => return Err(A::Error::custom("expected `file` or `env`")),
                };
                match map.next_key::<String>()? {
                    None => Ok(value),
                    Some(_) => Err(A::Error::custom(
                        "expected `file` or `env`, and nothing else",
                    )),
                }
            }
        }

        deserializer.deserialize_any(TextOrPlace)
    }
}

impl JsonSchema for McpValue {
    fn schema_name() -> Cow<'static, str> {
        "McpValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let place = |key: &str| {
            let mut properties = serde_json::Map::new();
            properties.insert(key.to_owned(), serde_json::json!({ "type": "string" }));
            serde_json::json!({
                "type": "object", "properties": properties, "required": [key], "additionalProperties": false,
            })
        };
        json_schema!({
            "description": "A text, in which `${NAME}` and `${env:NAME}` stand for a variable of the host's environment, \
                `${NAME:-default}` for one that may be missing, `${file:PATH}` for what a file holds, and `$${` for `${` \
                itself. Or a table with a `file` or an `env` alone. Files are relative to the one that names them, and \
                only their owner may be able to read them.",
            "anyOf": [{ "type": ["string", "integer", "boolean"] }, place("file"), place("env")],
        })
    }
}
