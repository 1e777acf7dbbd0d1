//! The messages that all capabilities share.

use std::{borrow::Cow, fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use toolpost_model::SurfaceRequest;

use crate::lax;

/// `handshake/req`.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct HandshakeRequest {
    /// The agent's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// The requested capabilities, and further words of the agent about itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_caps: Vec<String>,
    /// The agent's token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub auth_token: String,
    /// The requested surface. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceRequest>,
    /// The extension messages that the agent asks for. An extension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

/// The token is left out, so that messages can be logged.
impl fmt::Debug for HandshakeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            agent_id,
            agent_caps,
            auth_token: _,
            surface,
            extensions,
        } = self;
        f.debug_struct("HandshakeRequest")
            .field("agent_id", agent_id)
            .field("agent_caps", agent_caps)
            .field("surface", surface)
            .field("extensions", extensions)
            .finish_non_exhaustive()
    }
}

/// `handshake/resp`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HandshakeResponse {
    /// The id of the request.
    #[serde(default)]
    pub req_id: String,
    /// The id of the new session.
    #[serde(default)]
    pub session_id: String,
    /// One entry for each requested capability that the host serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_caps: Vec<CapabilityEntry>,
    /// The number of calls that this session can run concurrently.
    #[serde(default = "four", deserialize_with = "lax::integer")]
    pub max_parallel: i64,
    /// Whether the host accepts the agent.
    #[serde(default = "yes", deserialize_with = "lax::flag")]
    pub ok: bool,
    /// The reason of a refusal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The id of the session in the host's record. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_session_id: Option<String>,
    /// The host's name, if its operator set one. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
}

impl Default for HandshakeResponse {
    fn default() -> Self {
        Self {
            req_id: String::new(),
            session_id: String::new(),
            accepted_caps: Vec::new(),
            max_parallel: four(),
            ok: yes(),
            reason: String::new(),
            host_session_id: None,
            host_id: None,
        }
    }
}

fn yes() -> bool {
    true
}

fn four() -> i64 {
    4
}

/// The reason why an agent is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The token is missing.
    TokenMissing,
    /// The token is unknown.
    AuthFailed,
    /// The agent uses another protocol version.
    VersionMismatch,
    /// The host cannot accept the agent now.
    ServerError,
    /// The `surface` of the handshake exceeds the limit of a session.
    SurfaceTooLarge,
}

impl RefusalReason {
    /// The text on the wire. Its first word names the kind of refusal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokenMissing => {
                "auth_failed: send the host's token as `auth_token` in `handshake/req`"
            }
            Self::AuthFailed => "auth_failed",
            Self::VersionMismatch => "version_mismatch",
            Self::ServerError => "server_error",
            Self::SurfaceTooLarge => {
                "server_error: `surface` in `handshake/req` is larger than 64 KiB"
            }
        }
    }
}

/// A capability in the answer to a handshake.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapabilityEntry {
    /// The capability.
    pub capability: CapabilityName,
    /// Whether the capability can be used.
    #[serde(default = "yes", deserialize_with = "lax::flag")]
    pub enabled: bool,
    /// Further data of the host about the capability.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

macro_rules! capability_names {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// A capability. Existing clients reject a whole handshake with a capability that the protocol does not define.
        /// The host therefore names other capabilities only to agents that requested them.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum CapabilityName {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
            /// A capability that the protocol does not define.
            #[serde(untagged)]
            Other(String),
        }

        impl CapabilityName {
            /// All capabilities that the protocol defines.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Other(word) => word,
                }
            }
        }
    };
}

capability_names! {
    /// Skills.
    Skill = "skill";
    /// Tools.
    Tools = "tools";
    /// Collections of tools.
    Toolkits = "toolkits";
    /// The environment.
    Env = "env";
    /// Processes.
    Proc = "proc";
    /// Memory.
    Memory = "memory";
    /// Learning.
    Learning = "learning";
    /// Chains.
    Chains = "chains";
    /// Several agents.
    MultiAgent = "multi_agent";
    /// Planning.
    Planning = "planning";
    /// MCP servers.
    Mcp = "mcp";
    /// For tests of clients.
    Test = "test";
}

impl CapabilityName {
    /// The capability for a word. Accepts the plural and short forms that existing agents and host files use.
    pub fn from_word(word: &str) -> Self {
        let word = match word {
            "procs" => "proc",
            "learn" => "learning",
            "skills" => "skill",
            other => other,
        };
        let known = Self::ALL.iter().find(|name| name.as_str() == word);
        known
            .cloned()
            .unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

/// `ping`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ping {}

/// `tool/list/changed`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ToolListChanged {}

/// `pong`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pong {
    /// The id of the ping.
    #[serde(default)]
    pub req_id: String,
    /// The age of the session.
    #[serde(default, deserialize_with = "lax::number")]
    pub uptime_seconds: f64,
}

/// `shutdown`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Shutdown {
    /// The time that running calls get to finish.
    #[serde(
        default = "ten_seconds",
        deserialize_with = "lax::patience",
        serialize_with = "lax::whole_seconds"
    )]
    pub timeout: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            timeout: ten_seconds(),
        }
    }
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

/// `error`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// The message that failed; empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub req_id: String,
    /// The kind of the error.
    pub code: ErrorCode,
    /// A text for people.
    #[serde(default)]
    pub message: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "no_detail")]
    pub detail: Box<Map<String, Value>>,
    /// Whether sending the message again may help.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub retryable: bool,
    /// The capability that failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub capability_name: String,
}

#[expect(clippy::borrowed_box, reason = "serde hands over what the field is")]
fn no_detail(detail: &Box<Map<String, Value>>) -> bool {
    detail.is_empty()
}

impl ErrorMessage {
    /// An error that is not related to a message yet.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            req_id: String::new(),
            code,
            message: message.into(),
            detail: Box::default(),
            retryable: false,
            capability_name: String::new(),
        }
    }

    /// Sets the message that the error answers.
    #[must_use]
    pub fn to(mut self, req_id: impl Into<String>) -> Self {
        self.req_id = req_id.into();
        self
    }

    /// Marks the error as retryable.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// The kind of an error.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
            /// A code unknown to this crate.
            Other(Box<str>),
        }

        impl ErrorCode {
            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Other(word) => word,
                }
            }

            fn from_word(word: &str) -> Self {
                match word {
                    $($word => Self::$name,)*
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

error_codes! {
    /// The message is not readable JSON.
    ParseError = "parse_error";
    /// The host failed.
    RuntimeError = "runtime_error";
    /// The message is not valid.
    InvalidMessage = "invalid_message";
    /// The protocol version is not supported.
    VersionMismatch = "version_mismatch";
    /// The handshake is missing, or the session belongs to another agent.
    Unauthorized = "unauthorized";
    /// A field is missing or of the wrong type.
    SchemaViolation = "schema_violation";
    /// The time limit was exceeded.
    Timeout = "timeout";
    /// The capability was not negotiated.
    CapabilityMissing = "capability_missing";
    /// The message exceeds the host's limit.
    MessageTooLarge = "message_too_large";
    /// The agent does not read the session's stream.
    SlowReader = "slow_reader";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'_, str>::deserialize(deserializer).map(|word| Self::from_word(&word))
    }
}

/// `invoke/event`, and the shape of all other events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeEvent {
    /// Progress, status, log, artifact, or a word that the capability defines.
    #[serde(default = "status")]
    pub kind: String,
    /// The request that the event belongs to.
    #[serde(default)]
    pub req_id: String,
    /// The content of the event.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// A number that counts up within the request. A gap means that events were lost.
    #[serde(default, deserialize_with = "lax::count")]
    pub seq: u64,
    /// The time, in Unix seconds. Part of the envelope.
    #[serde(skip)]
    pub at: Option<f64>,
}

impl InvokeEvent {
    /// The id of the event's message, built from its request and its number.
    pub fn message_id(&self) -> String {
        format!("{}-{}", self.req_id, self.seq)
    }
}

fn status() -> String {
    "status".to_owned()
}
