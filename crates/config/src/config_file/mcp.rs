//! `mcp`: servers of the Model Context Protocol as sources of tools.

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
    /// How long an agent's call over MCP waits for an approval before the agent is asked to retry later. Clients give
    /// up after about a minute.
    pub approval_wait: Option<LocatedValue<ConfigDuration>>,
    /// MCP servers, by the names that their tools' ids begin with. Only in a trusted file.
    pub servers: BTreeMap<String, LocatedValue<McpServerEntry>>,
}

/// A server. It has a `command` or a `url`; without either, the entry changes a server of an included file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServerEntry {
    /// The transport: `stdio`, `http` or `streamable-http`. It follows from `command` or `url`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["stdio", "http", "streamable-http", null]))]
    pub transport: Option<LocatedValue<String>>,
    /// The program to start: a name in `PATH`, an absolute path, or `./FILE` beside this file.
    pub command: Option<LocatedValue<String>>,
    /// Its arguments, passed unchanged without a shell.
    pub args: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Variables with fixed values for the server. A value may refer to a secret elsewhere.
    pub env: BTreeMap<String, LocatedValue<McpValue>>,
    /// The folder that it starts in, relative to this file. Without it: the workspace.
    pub cwd: Option<LocatedValue<PathBuf>>,
    /// The endpoint of a server over streamable HTTP.
    pub url: Option<LocatedValue<String>>,
    /// Headers of every request. A value may refer to a secret elsewhere.
    pub headers: BTreeMap<String, LocatedValue<McpValue>>,
    /// Whether the server is left out.
    pub disabled: Option<LocatedValue<bool>>,
    /// Whether the host refuses to start without the server.
    pub required: Option<LocatedValue<bool>>,
    /// The revision of the protocol.
    pub era: Option<LocatedValue<McpEra>>,
    /// The names of its tools for agents.
    pub naming: Option<LocatedValue<McpNaming>>,
    /// The sharing of one connection or process between sessions.
    pub share: Option<LocatedValue<McpShare>>,
    /// When the server is started.
    pub start: Option<LocatedValue<McpStart>>,
    /// The treatment of new tool definitions. Changed ones are always held back until you accept them.
    pub new_tools: Option<LocatedValue<McpNewTools>>,
    /// The tools of the server that are offered.
    pub tools: McpToolsEntry,
    /// How long a call of one of its tools may run. `tools` can set it for a single tool.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// The time limit of the first connection and its handshake.
    pub connect_timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long an unused server keeps running. Without it: until the host ends.
    pub idle_stop: Option<LocatedValue<ConfigDuration>>,
    /// The longest message that the host accepts from it.
    pub max_message: Option<LocatedValue<ByteSize>>,
    /// The sandbox profile of its process. Without it: `sandbox.profile`, which has no network unless you opened it.
    pub sandbox: Option<LocatedValue<SandboxProfile>>,
    /// Variables of the host's environment for the server.
    pub pass: Vec<LocatedValue<String>>,
    /// Files and folders outside of the roots that it may read, relative to this file.
    pub readable: Vec<LocatedValue<PathBuf>>,
    /// Folders outside of the roots that it may write, relative to this file.
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// The only files and folders of the workspace and the other roots that its process can read, relative to this
    /// file. Without it: all except those that rules deny.
    pub reads: Option<LocatedValue<Vec<LocatedValue<PathBuf>>>>,
}

/// The offered tools of a server, by their names there, with `*` for any characters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpToolsEntry {
    /// Only these tools. Without it: all.
    pub allow: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Not these tools, even if `allow` matches.
    pub deny: Vec<LocatedValue<String>>,
}

/// A value that may be a secret. It cannot be printed.
#[derive(Clone)]
pub enum McpValue {
    /// A text, with references `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:PATH}` to values elsewhere.
    Text(String),
    /// The content of a file.
    File(PathBuf),
    /// A variable of the host's environment.
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

/// Written by hand: serde's untagged enums report any mistake as "did not match".
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
                `${NAME:-default}` for one that may be missing, `${file:PATH}` for the content of a file, and `$${` for `${` \
                itself. Or a table with a `file` or an `env` alone. Files are relative to the one that names them, and \
                only their owner may be able to read them.",
            "anyOf": [{ "type": ["string", "integer", "boolean"] }, place("file"), place("env")],
        })
    }
}
