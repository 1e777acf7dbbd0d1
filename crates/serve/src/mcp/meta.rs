//! `_meta`: the data of a request besides its parameters. In the stateless era it includes the client and its
//! capabilities.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use toolpost_core::RequestIdentity;
use toolpost_model::{ConsultKinds, LogLevel, NativeCallId, TraceContext};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The member that names the stream of a notification.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The limit of the members that are passed on to a tool, in bytes of JSON.
const LARGEST: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct RequestMeta {
    pub(super) version: Option<String>,
    /// `None`: absent or not readable.
    pub(super) capabilities: Option<McpClientCapabilities>,
    pub(super) log_level: Option<McpLogLevel>,
    pub(super) progress_token: Option<Value>,
    /// The span in `_meta`, and the request's own id, which [`RequestMeta::note_request_id`] adds.
    pub(super) identity: RequestIdentity,
    /// All other members, for tools that also use MCP.
    pub(super) rest: Map<String, Value>,
}

/// The kinds of questions that a client can answer for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct McpClientCapabilities(pub(super) ConsultKinds);

impl McpClientCapabilities {
    /// Reads the `capabilities` that a client announces.
    pub(super) fn of(announced: &Value) -> Option<Self> {
        let announced = announced.as_object()?;
        let elicitation = announced.get("elicitation").and_then(Value::as_object);
        // An empty object stands for forms, as in the first revision with elicitation.
        let forms = elicitation
            .is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"));
        let urls = elicitation.is_some_and(|modes| modes.contains_key("url"));
        Some(Self(ConsultKinds {
            elicitation: forms,
            url_elicitation: urls,
            sampling: announced.contains_key("sampling"),
            roots: announced.contains_key("roots"),
        }))
    }
}

/// The severity of log lines, in the eight levels of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum McpLogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl McpLogLevel {
    pub(super) fn of(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warn => Self::Warning,
            LogLevel::Error => Self::Error,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl RequestMeta {
    /// The members that every request of the stateless era requires and this one lacks.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.version.is_none() {
            missing.push(VERSION);
        }
        if self.capabilities.is_none() {
            missing.push(CAPABILITIES);
        }
        missing
    }

    /// Adds the id of the request for the record. It is the correlation id and not the request id: the ids of an MCP
    /// client start again with each connection, so as request ids they would find the answers of earlier calls.
    pub(super) fn note_request_id(&mut self, id: String) {
        self.identity.native_call_id = NativeCallId::bounded(&id);
        self.identity.correlation_id = Some(id);
    }

    /// The members that are passed on to the tool.
    pub(super) fn for_the_tool(&mut self) -> Option<Box<Map<String, Value>>> {
        let rest = std::mem::take(&mut self.rest);
        let is_small = || serde_json::to_string(&rest).is_ok_and(|text| text.len() <= LARGEST);
        (!rest.is_empty() && is_small()).then(|| Box::new(rest))
    }
}

impl<'de> Deserialize<'de> for RequestMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = RequestMeta;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RequestMeta, A::Error> {
                let mut meta = RequestMeta::default();
                let mut parent = None;
                let mut state = None;
                while let Some(key) = entries.next_key::<std::borrow::Cow<'de, str>>()? {
                    match key.as_ref() {
                        VERSION => meta.version = text(&entries.next_value::<Value>()?),
                        CAPABILITIES => {
                            meta.capabilities = McpClientCapabilities::of(&entries.next_value()?);
                        }
                        LOG_LEVEL => {
                            meta.log_level =
                                McpLogLevel::deserialize(entries.next_value::<Value>()?).ok();
                        }
                        CLIENT => {
                            entries.next_value::<IgnoredAny>()?;
                        }
                        "traceparent" => parent = text(&entries.next_value::<Value>()?),
                        "tracestate" => state = text(&entries.next_value::<Value>()?),
                        "progressToken" => meta.progress_token = token(entries.next_value()?),
                        _ => {
                            meta.rest.insert(key.into_owned(), entries.next_value()?);
                        }
                    }
                }
                let span = parent.and_then(|parent| TraceContext::parse(&parent, state.as_deref()));
                meta.identity.trace = span.map(Box::new);
                Ok(meta)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Accepts a progress token only in its defined form, because every notification repeats it.
fn token(value: Value) -> Option<Value> {
    match &value {
        Value::String(text) if text.len() <= 512 => Some(value),
        Value::Number(_) => Some(value),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}
