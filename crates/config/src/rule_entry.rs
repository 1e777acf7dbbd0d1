//! One entry under `rules`: a line, or a table where a reason is to be given.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use toolpost_model::{Behavior, EffectClass};

use crate::Located;

/// A rule as written.
#[derive(Clone, Debug)]
pub enum RuleEntry {
    /// `ask class:write`
    Line(String),
    /// `{ effect: ask, class: write }`
    Table(RuleTable),
}

/// A rule with its parts spelled out. Names a tool or a class, never both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// What the rule says.
    pub effect: Behavior,
    /// Tools by name or id; a `*` at the end stands for any rest.
    #[serde(default)]
    pub tool: Option<Located<String>>,
    /// Calls by class.
    #[serde(default)]
    pub class: Option<Located<EffectClass>>,
    /// Why. The model is told.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Written by hand: serde's untagged enums forget places, and answer a slip in the table with "did not match".
impl<'de> Deserialize<'de> for RuleEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;

        impl<'de> Visitor<'de> for Entry {
            type Value = RuleEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rule such as `allow read_file`")
            }

            fn visit_str<E: Error>(self, line: &str) -> Result<Self::Value, E> {
                Ok(RuleEntry::Line(line.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                RuleTable::deserialize(MapAccessDeserializer::new(map)).map(RuleEntry::Table)
            }
        }

        deserializer.deserialize_any(Entry)
    }
}

impl JsonSchema for RuleEntry {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<RuleTable>();
        json_schema!({
            "description": "A rule: `allow|ask|deny` and then a tool or `class:NAME`, or the same as a table.",
            "anyOf": [
                { "type": "string", "pattern": "^\\s*(allow|ask|deny)\\s+\\S+\\s*$" },
                table,
            ],
        })
    }
}
