//! Newtype ids. One macro, so that every id prints, parses and serialises the same way.

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The id's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A session: its discovered tools, limits and grants belong to one agent.
    SessionId
}
text_id! {
    /// The caller's name; the token of the request determines it.
    PrincipalName
}
text_id! {
    /// The caller's own id of a request: an `Idempotency-Key`, an A2E message id, a JSON-RPC id.
    RequestId
}
text_id! {
    /// The caller's own id of a call: a provider's `call_…` or `toolu_…`, a JSON-RPC id, an A2A `toolCallId`. It is kept
    /// for the record and identifies nothing within the host: two calls may have the same one, and neither is a repeat.
    NativeCallId
}
text_id! {
    /// Names one surface: the tools visible to one kind of request at one state of the catalog.
    SurfaceId
}

impl NativeCallId {
    /// The longest id that is kept, in bytes.
    pub const LONGEST: usize = 256;

    /// Reads an id of a protocol that allows any text. `None` for an empty id and for one that is too long to store: a
    /// part of an id would name another call.
    pub fn bounded(text: &str) -> Option<Self> {
        (1..=Self::LONGEST)
            .contains(&text.len())
            .then(|| Self::new(text))
    }

    /// From a header: visible ASCII without blanks.
    pub fn visible(text: &str) -> Option<Self> {
        Self::bounded(text).filter(|_| text.bytes().all(|byte| byte.is_ascii_graphic()))
    }
}

/// One call, from the moment it was asked for. Version 7, so that ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InvocationId(Uuid);

impl InvocationId {
    /// A new id for a call that begins now.
    #[expect(
        clippy::new_without_default,
        reason = "a default id would hide that each one is different"
    )]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The sixteen bytes the journal keeps.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// When the call was asked for, in milliseconds since 1970: a version 7 id begins with it.
    pub fn unix_millis(&self) -> u64 {
        self.0.as_bytes()[..6]
            .iter()
            .fold(0, |millis, byte| millis << 8 | u64::from(*byte))
    }

    /// The 32 hex digits without hyphens.
    pub fn to_hex(&self) -> String {
        self.0.simple().to_string()
    }

    /// The reverse of [`as_bytes`](Self::as_bytes).
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for InvocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for InvocationId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

impl JsonSchema for InvocationId {
    fn schema_name() -> Cow<'static, str> {
        "InvocationId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "uuid" })
    }
}

/// Namespaces of the host's own tools and of declared commands. An outside source with such a namespace would match
/// rules about the host's own tools, so the catalog refuses them to every other source.
pub const NATIVE_NAMESPACES: [&str; 10] = [
    "files", "search", "shell", "http", "code", "results", "calls", "commands", "host", "native",
];

/// The stable, portable name of a declaration: `namespace.name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolId(Arc<str>);

/// Why a text is not a [`ToolId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolIdError {
    /// No dot, or nothing on one side of it.
    #[error("tool id `{0}` is not of the form `namespace.name`")]
    Form(String),
    /// A character that could not travel through every face and file.
    #[error(
        "tool id `{id}` holds `{character}`; letters, digits, `_`, `-`, `.`, `/` and `:` are allowed"
    )]
    Character {
        /// The id as given.
        id: String,
        /// The first character that is not allowed, escaped.
        character: String,
    },
    /// Longer than any upstream name seen in the wild.
    #[error("tool id of {0} bytes is longer than the limit of 256")]
    Length(usize),
}

impl ToolId {
    /// Joins and checks the two halves.
    pub fn new(namespace: &str, name: &str) -> Result<Self, ToolIdError> {
        format!("{namespace}.{name}").parse()
    }

    /// The part before the first dot.
    pub fn namespace(&self) -> &str {
        self.0
            .split_once('.')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The part after the first dot.
    pub fn name(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, name)| name)
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text that names this tool and no other in a rule: the id, except for ids that begin with `fs.`, because a
    /// rule reads that as a rule about paths.
    pub fn rule_form(&self) -> Cow<'_, str> {
        match self.namespace() {
            "fs" => Cow::Owned(self.wire_form()),
            _ => Cow::Borrowed(self.as_str()),
        }
    }

    /// The key of one of the tool's settings, as messages write it: `tools."files.read_file".timeout`.
    pub fn setting_key(&self, setting: &str) -> String {
        format!("tools.\"{self}\".{setting}")
    }

    /// `namespace__name`: the id without the dot, which many models do not take in a name.
    pub fn wire_form(&self) -> String {
        format!("{}__{}", self.namespace(), self.name())
    }
}

impl FromStr for ToolId {
    type Err = ToolIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > 256 {
            return Err(ToolIdError::Length(text.len()));
        }
        match text.split_once('.') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {}
            _ => return Err(ToolIdError::Form(text.escape_default().to_string())),
        }
        let allowed =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        match text.chars().find(|&c| !allowed(c)) {
            None => Ok(Self(text.into())),
            Some(bad) => Err(ToolIdError::Character {
                id: text.escape_default().to_string(),
                character: bad.escape_default().to_string(),
            }),
        }
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolId;

    #[test]
    fn tool_ids_split_at_the_first_dot_and_refuse_odd_texts() {
        let id: ToolId = "github.repos.list".parse().unwrap();
        assert_eq!((id.namespace(), id.name()), ("github", "repos.list"));
        for bad in ["", "name", ".x", "x.", "a.b c", "a.b\u{202e}", "a.b\n"] {
            assert!(bad.parse::<ToolId>().is_err(), "{bad:?} must be refused");
        }
    }
}
