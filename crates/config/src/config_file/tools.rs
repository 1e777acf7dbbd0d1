//! `tools` and `sources`: an operator's settings for tools of any source.

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

/// Settings of one tool, or of all tools with a name or id that matches a pattern. Missing settings stay as the tool
/// declares them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolEntry {
    /// Whether the tool can be used at all.
    pub enabled: Option<LocatedValue<bool>>,
    /// Whether the tool is hidden from agents: only operators see and call it.
    pub hidden: Option<LocatedValue<bool>>,
    /// The tool's name for callers: letters, digits, `_` and `-`. Not for patterns.
    #[schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,64}$"))]
    pub name: Option<LocatedValue<String>>,
    /// Whether the tool stays out of lists until a search shows it.
    pub deferred: Option<LocatedValue<bool>>,
    /// How long one call may run. Without a `ceiling`, callers cannot set a longer deadline.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// The longest deadline that a caller may set.
    pub ceiling: Option<LocatedValue<ConfigDuration>>,
    /// The effect class of the tool's calls, for rules and modes.
    pub class: Option<LocatedValue<EffectClass>>,
    /// Whether running it twice has the same effect as running it once.
    pub idempotent: Option<LocatedValue<bool>>,
    /// Calls of it that run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<LocatedValue<usize>>,
    /// Whether no other call of the session runs beside it.
    pub exclusive: Option<LocatedValue<bool>>,
    /// The treatment of a running call when other calls of its batch are canceled.
    pub interrupt: Option<LocatedValue<Interrupt>>,
    /// The longest text that is shown whole, in characters.
    #[schemars(range(min = 1))]
    pub max_inline_chars: Option<LocatedValue<usize>>,
    /// The treatment of a result that is too long to be shown whole.
    pub keep: Option<LocatedValue<ResultKeeping>>,
    /// The largest arguments of a call.
    pub argument_bytes: Option<LocatedValue<ByteSize>>,
    /// Whether its calls need an approval even if the mode would allow them.
    pub approval_required: Option<LocatedValue<bool>>,
    /// The features that a caller must have to see the tool. Replaces the tool's own list.
    pub requires: Option<LocatedValue<Requirements>>,
    /// The sandbox profile of its processes, if it is stricter than the one in force.
    pub sandbox: Option<LocatedValue<SandboxProfile>>,
    /// Arguments that are kept out of every record, as JSON pointers such as `/login/pin`, beside those that the tool
    /// marks.
    pub sensitive: Vec<LocatedValue<String>>,
    /// Default values of arguments.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub defaults: Option<LocatedValue<Map<String, Value>>>,
    /// The meaning of arguments for rules, by JSON pointers such as `/path`; for a list, of each of its elements.
    pub arguments: BTreeMap<String, LocatedValue<ArgumentKinds>>,
}

/// The treatment of a result that is too long to be shown whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Keep")]
pub enum ResultKeeping {
    /// Show it whole in spite of its length.
    Inline,
    /// Show a part, and keep the whole.
    Preview,
    /// Keep it and show only a reference with a description, even for a short result.
    RefOnly,
    /// Neither show nor keep it, even if it is short.
    Redact,
    /// Show a part, and drop the rest.
    Drop,
    /// Show a part; a further call of the tool can get the rest.
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

/// The meaning of an argument for rules: one word, or several if it is read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentKinds(pub Vec<ArgumentKind>);

/// Written by hand: serde's untagged enums do not report the value that was found.
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
    /// The trust in the source's statements about its tools. By default only code that is compiled into the host is
    /// trusted.
    pub trust: Option<LocatedValue<SourceTrustLevel>>,
    /// Calls of its tools that run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<LocatedValue<usize>>,
    /// Settings for the tools of a well-known module, shipped with the host. Entries under `tools` override them.
    pub profile: Option<LocatedValue<String>>,
}

/// The trust in a source's statements about its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceTrust")]
pub enum SourceTrustLevel {
    /// Its statements are ignored.
    None,
    /// Its statements can only make a call look more dangerous, never less.
    Claims,
    /// Its statements count like those of code that is compiled into the host.
    Full,
}
