//! An entry under `rules`: a line, or a table with further settings.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use toolpost_model::{RememberOffer, RuleTests};

use crate::LocatedValue;

/// A rule as written.
#[derive(Clone, Debug)]
pub enum RuleEntry {
    /// `ask class:write`
    Line(String),
    /// `{ rule: ask class:write, reason: … }`
    Table(RuleTable),
}

/// A rule with further settings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// The rule itself, as in a one-line entry.
    pub rule: LocatedValue<String>,
    /// Its name in records and messages.
    #[serde(default)]
    pub id: Option<LocatedValue<String>>,
    /// The reason, which the model gets.
    #[serde(default)]
    pub reason: Option<String>,
    /// The callers that the rule applies to: a name, with `*` for any characters. Without it: every caller.
    #[serde(default)]
    pub principal: Option<LocatedValue<String>>,
    /// When the rule expires: a day, which is still included (in UTC), or a time such as `2026-12-31T18:00:00Z`.
    #[serde(default)]
    pub expires: Option<LocatedValue<String>>,
    /// Whether an operator who approves one of its calls is offered to remember the answer.
    #[serde(default)]
    pub remember: Option<LocatedValue<RememberOffer>>,
    /// Calls that it must match and calls that it must not match. Checked when the file is read.
    #[serde(default)]
    pub tests: Option<LocatedValue<RuleTests>>,
}

/// Written by hand: serde's untagged enums lose places, and report any mistake in the table as "did not match".
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
            "description": "`allow`, `ask`, `deny` or `delegate AUTHORITY`, then the calls: a tool (`write_file`, `github.*`), a \
                tool with a command, path or URL (`shell(git push *)`, `http_request(POST https://*.example.com/*)`) \
                or with conditions on its arguments (`pay.*[/amount > 100]`), a path or URL for every tool \
                (`fs.read(**/.env*)`, `fs.write(src/**)`, `net(https://api.example.com/*)`), or a class \
                (`class:write`).",
            "anyOf": [
                { "type": "string", "pattern": "^\\s*(allow|ask|deny|delegate\\s+[A-Za-z][A-Za-z0-9_-]*)\\s+\\S.*$" },
                table,
            ],
        })
    }
}
