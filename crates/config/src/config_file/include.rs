//! `include`: files of other programs.

use std::{borrow::Cow, fmt, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

/// An included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeEntry {
    /// A mount plan or bundle.
    Plan(PathBuf),
    /// A list of MCP servers, as `{mcp: FILE}`.
    Mcp(PathBuf),
    /// The file of an A2E host, as `{a2e: FILE}`.
    A2e(PathBuf),
}

impl IncludeEntry {
    /// The file.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Plan(path) | Self::Mcp(path) | Self::A2e(path) => path,
        }
    }
}

/// Written by hand: serde's untagged enums report any mistake as "did not match".
impl<'de> Deserialize<'de> for IncludeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathOrTable;

        impl<'de> Visitor<'de> for PathOrTable {
            type Value = IncludeEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a plan, or a table with `mcp` or `a2e`")
            }

            fn visit_str<E: Error>(self, path: &str) -> Result<IncludeEntry, E> {
                Ok(IncludeEntry::Plan(path.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IncludeEntry, A::Error> {
                let entry = map.next_entry::<String, PathBuf>()?;
                match (entry, map.next_key::<String>()?) {
                    (Some((key, path)), None) if key == "mcp" => Ok(IncludeEntry::Mcp(path)),
                    (Some((key, path)), None) if key == "a2e" => Ok(IncludeEntry::A2e(path)),
                    _ => Err(A::Error::custom(
                        "expected `mcp` or `a2e`, and nothing else",
                    )),
                }
            }
        }

        deserializer.deserialize_any(PathOrTable)
    }
}

impl JsonSchema for IncludeEntry {
    fn schema_name() -> Cow<'static, str> {
        "IncludeEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The path of a mount plan or bundle, `{mcp: FILE}` for a list of MCP servers as other \
                programs have it, or `{a2e: FILE}` for the file of an A2E host.",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "mcp": { "type": "string" } },
                    "required": ["mcp"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": { "a2e": { "type": "string" } },
                    "required": ["a2e"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
