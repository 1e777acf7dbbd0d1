//! `_meta`: what a request says beside its parameters. In the stateless era that is who asks and what they can do.

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
/// Names the stream a notification belongs to.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The most that is passed on to a tool, in bytes of JSON.
const LARGEST: usize = 64 << 10;

/// What `_meta` says.
#[derive(Debug, Default)]
pub(super) struct RequestMeta {
    pub(super) version: Option<String>,
    /// `None`: not said, or not in a form that can be read.
    pub(super) capabilities: Option<McpClientCapabilities>,
    pub(super) log_level: Option<McpLogLevel>,
    pub(super) progress_token: Option<Value>,
    /// The span that is said here, and the request's own id, which [`RequestMeta::note_request_id`] adds.
    pub(super) identity: RequestIdentity,
    /// What is no business of ours, for tools that speak the same.
    pub(super) rest: Map<String, Value>,
}

/// What a client can do for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct McpClientCapabilities(pub(super) ConsultKinds);

impl McpClientCapabilities {
    /// From the `capabilities` that a client announces.
    pub(super) fn of(announced: &Value) -> Option<Self> {
        let announced = announced.as_object()?;
        let elicitation = announced.get("elicitation").and_then(Value::as_object);
        // An empty object has meant forms since before there was anything else.
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

/// How serious a line must be to be passed on, in MCP's eight words.
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
    /// What every request of the stateless era must say and this one does not.
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

    /// Adds the id of the request for the record. MCP's ids start anew with each connection, so they find no earlier
    /// answer.
    pub(super) fn note_request_id(&mut self, id: String) {
        self.identity.native_call_id = NativeCallId::bounded(&id);
        self.identity.correlation_id = Some(id);
    }

    /// What is passed on to the tool.
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

/// A token is echoed with every notification, so it must be one.
fn token(value: Value) -> Option<Value> {
    match &value {
        Value::String(text) if text.len() <= 512 => Some(value),
        Value::Number(_) => Some(value),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}
