//! The type of every message. Field names and defaults are those of the wire; the messages are in `core` and `tools`.

mod core;
mod tools;

use serde_json::{Map, Value};
use uuid::Uuid;

pub use self::core::{
    CapabilityEntry, CapabilityName, ErrorCode, ErrorMessage, HandshakeRequest, HandshakeResponse,
    InvokeEvent, Pong, RefusalReason, Shutdown,
};
pub use tools::{
    ToolCallRequest, ToolCallResponse, ToolCancelRequest, ToolCancelResponse, ToolEventMessage,
    ToolListRequest, ToolListResponse, ToolResult,
};

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Unique per message; answers repeat it as `req_id`. Empty if the sender gave none.
    pub id: String,
    /// The protocol version of the sender, if the sender gave it.
    pub version: Option<String>,
    /// The time of sending, in Unix seconds. Left out if no reader needs it.
    pub ts: Option<f64>,
    /// The content.
    pub body: Body,
}

impl Message {
    /// A message with a new id.
    pub fn new(body: Body) -> Self {
        Self {
            id: Uuid::new_v4().simple().to_string(),
            version: None,
            ts: None,
            body,
        }
    }

    /// A message without an id: the reader makes one up. For events, which are never answered.
    pub fn unnamed(body: Body) -> Self {
        Self {
            id: String::new(),
            version: None,
            ts: None,
            body,
        }
    }
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident($body:ty) = $kind:literal;)*) => {
        /// The content of a message, by its type.
        #[derive(Clone, Debug)]
        pub enum Body {
            $($(#[$doc])* $name($body),)*
            /// A message of a type unknown to this crate, for other capabilities.
            Other(OtherBody),
        }

        impl Body {
            /// The message type on the wire.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$name(_) => $kind,)*
                    Self::Other(other) => &other.kind,
                }
            }

            /// Whether this crate defines a message type.
            pub(crate) fn is_known(kind: &str) -> bool {
                matches!(kind, $($kind)|*)
            }

            /// Reads the fields of a message. `None`: the type is unknown.
            pub(crate) fn read(kind: &str, text: &str) -> Option<Result<Self, serde_path_to_error::Error<serde_json::Error>>> {
                match kind {
                    $($kind => Some(crate::codec::fields::<$body>(text).map(Self::$name)),)*
                    _ => None,
                }
            }

            /// Writes the fields, after the fields of the envelope.
            pub(crate) fn write<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::Serialize as _;
                match self {
                    $(Self::$name(body) => body.serialize(serializer),)*
                    Self::Other(other) => other.fields.serialize(serializer),
                }
            }
        }
    };
}

bodies! {
    /// The agent introduces itself.
    HandshakeRequest(HandshakeRequest) = "handshake/req";
    /// The host accepts or refuses the agent.
    HandshakeResponse(HandshakeResponse) = "handshake/resp";
    /// Checks that the peer answers.
    Ping(core::Ping) = "ping";
    /// Answers a ping.
    Pong(Pong) = "pong";
    /// The agent disconnects.
    Shutdown(Shutdown) = "shutdown";
    /// The request failed with an error of the protocol.
    Error(ErrorMessage) = "error";
    /// An event of any capability.
    InvokeEvent(InvokeEvent) = "invoke/event";
    /// Asks for the list of tools.
    ToolListRequest(ToolListRequest) = "tool/list/req";
    /// The list of tools.
    ToolListResponse(ToolListResponse) = "tool/list/resp";
    /// Calls a tool.
    ToolCallRequest(ToolCallRequest) = "tool/call/req";
    /// The result of a call.
    ToolCallResponse(ToolCallResponse) = "tool/call/resp";
    /// An event of a running call.
    ToolEvent(ToolEventMessage) = "tool/event";
    /// Stops a call. An extension, announced in the handshake.
    ToolCancelRequest(ToolCancelRequest) = "tool/cancel/req";
    /// Whether the call was running.
    ToolCancelResponse(ToolCancelResponse) = "tool/cancel/resp";
    /// The list of tools changed. An extension, sent to agents that requested it in the handshake.
    ToolListChanged(core::ToolListChanged) = "tool/list/changed";
}

/// A message of a type unknown to this crate.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherBody {
    /// The message type on the wire.
    pub kind: String,
    /// All fields except those of the envelope.
    pub fields: Map<String, Value>,
}

impl Body {
    /// `ping`, which has no fields.
    pub fn ping() -> Self {
        Self::Ping(core::Ping {})
    }

    /// `tool/list/changed`, which has no fields.
    pub fn tool_list_changed() -> Self {
        Self::ToolListChanged(core::ToolListChanged {})
    }

    /// Whether agents send messages of this type.
    pub(crate) fn is_request(kind: &str) -> bool {
        matches!(kind, "ping" | "shutdown") || kind.ends_with("/req")
    }

    /// The message that this one belongs to, if any.
    pub fn req_id(&self) -> Option<&str> {
        match self {
            Self::HandshakeResponse(body) => Some(&body.req_id),
            Self::Pong(body) => Some(&body.req_id),
            Self::Error(body) => Some(&body.req_id),
            Self::InvokeEvent(body) | Self::ToolEvent(body) => Some(&body.req_id),
            Self::ToolListResponse(body) => Some(&body.req_id),
            Self::ToolCallResponse(body) => Some(&body.req_id),
            Self::ToolCancelResponse(body) => Some(&body.req_id),
            Self::Other(body) => body.fields.get("req_id").and_then(Value::as_str),
            Self::HandshakeRequest(_)
            | Self::Ping(_)
            | Self::Shutdown(_)
            | Self::ToolListRequest(_)
            | Self::ToolCallRequest(_)
            | Self::ToolCancelRequest(_)
            | Self::ToolListChanged(_) => None,
        }
    }

    /// Sets the message that this one answers, unless it is set.
    pub fn answer_to(&mut self, id: &str) {
        let req_id = match self {
            Self::HandshakeResponse(body) => &mut body.req_id,
            Self::Pong(body) => &mut body.req_id,
            Self::Error(body) => &mut body.req_id,
            Self::InvokeEvent(body) | Self::ToolEvent(body) => &mut body.req_id,
            Self::ToolListResponse(body) => &mut body.req_id,
            Self::ToolCallResponse(body) => &mut body.req_id,
            Self::ToolCancelResponse(body) => &mut body.req_id,
            Self::Other(body) => {
                let given = body
                    .fields
                    .get("req_id")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if given.is_empty() {
                    body.fields.insert("req_id".to_owned(), Value::from(id));
                }
                return;
            }
            Self::HandshakeRequest(_)
            | Self::Ping(_)
            | Self::Shutdown(_)
            | Self::ToolListRequest(_)
            | Self::ToolCallRequest(_)
            | Self::ToolCancelRequest(_)
            | Self::ToolListChanged(_) => return,
        };
        if req_id.is_empty() {
            id.clone_into(req_id);
        }
    }
}
