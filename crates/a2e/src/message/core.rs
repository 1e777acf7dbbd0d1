//! The messages every capability shares.

use std::{borrow::Cow, fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use toolpost_model::SurfaceRequest;

use crate::lax;

/// `handshake/req`.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct HandshakeRequest {
    /// What the agent calls itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// The capabilities it would use, and whatever else it wants to say of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_caps: Vec<String>,
    /// The token that lets it in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub auth_token: String,
    /// What its surface is for. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceRequest>,
    /// Extension messages it wants to be sent. An extension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

/// The token is left out, so that a message can be printed.
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
    /// The request.
    #[serde(default)]
    pub req_id: String,
    /// The session from now on.
    #[serde(default)]
    pub session_id: String,
    /// One entry per capability that was asked for and is served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_caps: Vec<CapabilityEntry>,
    /// Calls of this session that run at the same time.
    #[serde(default = "four", deserialize_with = "lax::integer")]
    pub max_parallel: i64,
    /// Whether the agent is in.
    #[serde(default = "yes", deserialize_with = "lax::flag")]
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The session's name in the host's records. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_session_id: Option<String>,
    /// The host, where its operator named it. An extension.
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

/// Why an agent is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// There is no token.
    TokenMissing,
    /// The token is not known.
    AuthFailed,
    /// It speaks another protocol version.
    VersionMismatch,
    /// The host cannot take it now.
    ServerError,
    /// The `surface` of its handshake is larger than a session may hold.
    SurfaceTooLarge,
}

impl RefusalReason {
    /// The text on the wire. It begins with one word for each kind of refusal.
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

/// A capability in the host's answer to a handshake.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapabilityEntry {
    /// Which.
    pub capability: CapabilityName,
    /// Whether it can be used.
    #[serde(default = "yes", deserialize_with = "lax::flag")]
    pub enabled: bool,
    /// What the host says of it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

macro_rules! capability_names {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// A capability. The clients in the field know those of the protocol, and drop a whole handshake that names
        /// another one; so another one is named only to an agent that asked for it by its name.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum CapabilityName {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
            /// One that the protocol does not define.
            #[serde(untagged)]
            Other(String),
        }

        impl CapabilityName {
            /// Every one that the protocol defines.
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
    /// The capability a word means. Knows the plural and short forms that agents and host files in the field use.
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
    /// The ping.
    #[serde(default)]
    pub req_id: String,
    /// Age of the session.
    #[serde(default, deserialize_with = "lax::number")]
    pub uptime_seconds: f64,
}

/// `shutdown`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Shutdown {
    /// How long running calls get to finish.
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
    /// The message that could not be answered; empty where nobody knows which.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub req_id: String,
    /// What kind of trouble.
    pub code: ErrorCode,
    /// In words.
    #[serde(default)]
    pub message: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "no_detail")]
    pub detail: Box<Map<String, Value>>,
    /// Whether sending it again may help.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub retryable: bool,
    /// The capability that could not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub capability_name: String,
}

#[expect(clippy::borrowed_box, reason = "serde hands over what the field is")]
fn no_detail(detail: &Box<Map<String, Value>>) -> bool {
    detail.is_empty()
}

impl ErrorMessage {
    /// An error that answers nothing in particular yet.
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

    /// Says which message it answers.
    #[must_use]
    pub fn to(mut self, req_id: impl Into<String>) -> Self {
        self.req_id = req_id.into();
        self
    }

    /// Says that sending it again may help.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// What kind of trouble an `error` tells of.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
            /// A word this crate does not know.
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
    /// It is not JSON that can be read.
    ParseError = "parse_error";
    /// The host could not do its work.
    RuntimeError = "runtime_error";
    /// It is no message the host can make sense of.
    InvalidMessage = "invalid_message";
    /// Another protocol version.
    VersionMismatch = "version_mismatch";
    /// No handshake yet, or somebody else's session.
    Unauthorized = "unauthorized";
    /// A field is missing or of the wrong type.
    SchemaViolation = "schema_violation";
    /// It took too long.
    Timeout = "timeout";
    /// The capability was not negotiated.
    CapabilityMissing = "capability_missing";
    /// It is longer than the host reads.
    MessageTooLarge = "message_too_large";
    /// The session's stream is not being read.
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

/// `invoke/event`, and the shape of every other event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeEvent {
    /// Progress, status, log, artifact, or a word of the capability's own.
    #[serde(default = "status")]
    pub kind: String,
    /// The request it belongs to.
    #[serde(default)]
    pub req_id: String,
    /// What happened.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Counts up within the request. A hole means that events were lost.
    #[serde(default, deserialize_with = "lax::count")]
    pub seq: u64,
    /// When, in Unix seconds. Stands in the envelope.
    #[serde(skip)]
    pub at: Option<f64>,
}

impl InvokeEvent {
    /// The id of the message that carries it: its place in its request.
    pub fn message_id(&self) -> String {
        format!("{}-{}", self.req_id, self.seq)
    }
}

fn status() -> String {
    "status".to_owned()
}
