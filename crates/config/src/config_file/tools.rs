//! `tools` and `sources`: what an operator sets for tools, whoever offers them.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IntoDeserializer, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use toolpost_model::{
    ArgumentKind, EffectClass, Interrupt, PersistStrategy, Requirements, SandboxProfile,
};

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// Settings of one tool, or of all whose name or id fits a pattern. What is left out stays as the tool declares it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolEntry {
    /// Whether the tool can be used at all.
    pub enabled: Option<LocatedValue<bool>>,
    /// Whether it is kept from agents: only operators see and call it.
    pub hidden: Option<LocatedValue<bool>>,
    /// The name callers use: letters, digits, `_` and `-`. Not for patterns.
    #[schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,64}$"))]
    pub name: Option<LocatedValue<String>>,
    /// Whether the tool stays out of lists until a search shows it.
    pub deferred: Option<LocatedValue<bool>>,
    /// How long one call may run; without a `ceiling`, also the most a caller may ask for.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// The most a caller may ask for.
    pub ceiling: Option<LocatedValue<ConfigDuration>>,
    /// What the tool's calls count as, for rules and modes.
    pub class: Option<LocatedValue<EffectClass>>,
    /// Whether running it twice equals running it once.
    pub idempotent: Option<LocatedValue<bool>>,
    /// How many of its calls run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<LocatedValue<usize>>,
    /// Whether it runs alone in its session.
    pub exclusive: Option<LocatedValue<bool>>,
    /// What becomes of a running call when others of its batch are canceled.
    pub interrupt: Option<LocatedValue<Interrupt>>,
    /// The longest text shown whole, in characters.
    #[schemars(range(min = 1))]
    pub max_inline_chars: Option<LocatedValue<usize>>,
    /// What becomes of a result that is too long to be shown whole.
    pub keep: Option<LocatedValue<ResultKeeping>>,
    /// The largest arguments of one call.
    pub argument_bytes: Option<LocatedValue<ByteSize>>,
    /// Ask a person even where the mode would allow.
    pub approval_required: Option<LocatedValue<bool>>,
    /// What a caller must offer before it sees the tool. Takes the place of what the tool itself asks for.
    pub requires: Option<LocatedValue<Requirements>>,
    /// What confines its processes, where that is stricter than what confines them anyway.
    pub sandbox: Option<LocatedValue<SandboxProfile>>,
    /// Arguments kept out of every record, as JSON pointers such as `/login/pin`, beside those the tool marks.
    pub sensitive: Vec<LocatedValue<String>>,
    /// Arguments that are filled in where a call leaves them out.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub defaults: Option<LocatedValue<Map<String, Value>>>,
    /// What arguments mean to rules, by JSON pointers such as `/path`; where the argument is a list, each of its elements.
    pub arguments: BTreeMap<String, LocatedValue<ArgumentKinds>>,
}

/// What becomes of a result that is too long to be shown whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Keep")]
pub enum ResultKeeping {
    /// It is shown whole all the same.
    Inline,
    /// A part is shown, and the whole is kept.
    Preview,
    /// It is kept, and only what it is and where is shown, also of a short one.
    RefOnly,
    /// It is neither shown nor kept, also a short one.
    Redact,
    /// A part is shown, the rest is dropped.
    Drop,
    /// A part is shown; the tool can be asked for the rest.
    Never,
}

impl From<ResultKeeping> for PersistStrategy {
    fn from(word: ResultKeeping) -> Self {
        match word {
            ResultKeeping::Inline => Self::Inline,
            ResultKeeping::Preview => Self::PreviewAndPersist,
            ResultKeeping::RefOnly => Self::RefOnly,
            ResultKeeping::Redact => Self::Redact,
            ResultKeeping::Drop => Self::DropWithReason,
            ResultKeeping::Never => Self::NeverPersist,
        }
    }
}

/// What an argument is to rules: one word, or several where it is read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentKinds(pub Vec<ArgumentKind>);

/// Written by hand: serde's untagged enums forget what was found instead.
impl<'de> Deserialize<'de> for ArgumentKinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kinds;

        impl<'de> Visitor<'de> for Kinds {
            type Value = ArgumentKinds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word such as `read_path`, or a list of them")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
                Ok(ArgumentKinds(vec![ArgumentKind::deserialize(
                    word.into_deserializer(),
                )?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut kinds = Vec::new();
                while let Some(kind) = list.next_element()? {
                    kinds.push(kind);
                }
                Ok(ArgumentKinds(kinds))
            }
        }

        deserializer.deserialize_any(Kinds)
    }
}

impl JsonSchema for ArgumentKinds {
    fn schema_name() -> Cow<'static, str> {
        "ArgumentKinds".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<ArgumentKind>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

/// Settings of one source of tools, such as an MCP server or a module.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourceEntry {
    /// How far what it says of its tools counts. Without it, code compiled into the host is trusted and nothing else.
    pub trust: Option<LocatedValue<SourceTrustLevel>>,
    /// How many calls of its tools run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<LocatedValue<usize>>,
    /// Settings for the tools of a well-known module, shipped with the host. What stands under `tools` counts before
    /// them.
    pub profile: Option<LocatedValue<String>>,
}

/// How far the word of a source counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceTrust")]
pub enum SourceTrustLevel {
    /// Nothing that it says of how its tools behave.
    None,
    /// What it says may make a call look worse, never better.
    Claims,
    /// Its word is as good as that of code compiled into the host.
    Full,
}
