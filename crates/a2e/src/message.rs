//! Every message, as a type. Field names and defaults are the wire's; `core` and `tools` are the two families.

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
    /// Unique per message; answers name it as `req_id`. Empty where the sender gave none.
    pub id: String,
    /// The protocol version the sender speaks, where it said.
    pub version: Option<String>,
    /// When it was sent, in Unix seconds. Left out where nobody needs it.
    pub ts: Option<f64>,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// A message with an id of its own.
    pub fn new(body: Body) -> Self {
        Self {
            id: Uuid::new_v4().simple().to_string(),
            version: None,
            ts: None,
            body,
        }
    }

    /// A message without an id: the reader makes one up. For events, which nobody answers.
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
        /// What a message says.
        #[derive(Clone, Debug)]
        pub enum Body {
            $($(#[$doc])* $name($body),)*
            /// A message of a type this crate does not know, for capabilities of others.
            Other(OtherBody),
        }

        impl Body {
            /// The word on the wire.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$name(_) => $kind,)*
                    Self::Other(other) => &other.kind,
                }
            }

            /// Whether a type is one of this crate's own.
            pub(crate) fn is_known(kind: &str) -> bool {
                matches!(kind, $($kind)|*)
            }

            /// Reads the fields of a message of a known type. `None`: the type is not known.
            pub(crate) fn read(kind: &str, text: &str) -> Option<Result<Self, serde_path_to_error::Error<serde_json::Error>>> {
                match kind {
                    $($kind => Some(crate::codec::fields::<$body>(text).map(Self::$name)),)*
                    _ => None,
                }
            }

            /// Writes the fields, after the envelope's.
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
    /// An agent introduces itself.
    HandshakeRequest(HandshakeRequest) = "handshake/req";
    /// The host lets it in, or not.
    HandshakeResponse(HandshakeResponse) = "handshake/resp";
    /// Is somebody there?
    Ping(core::Ping) = "ping";
    /// Yes.
    Pong(Pong) = "pong";
    /// The agent leaves.
    Shutdown(Shutdown) = "shutdown";
    /// A message could not be answered as it wished.
    Error(ErrorMessage) = "error";
    /// Something happened, whatever the capability.
    InvokeEvent(InvokeEvent) = "invoke/event";
    /// Which tools are there?
    ToolListRequest(ToolListRequest) = "tool/list/req";
    /// These.
    ToolListResponse(ToolListResponse) = "tool/list/resp";
    /// Call a tool.
    ToolCallRequest(ToolCallRequest) = "tool/call/req";
    /// How the call ended.
    ToolCallResponse(ToolCallResponse) = "tool/call/resp";
    /// Something happened on the way of a call.
    ToolEvent(ToolEventMessage) = "tool/event";
    /// Stop a call. An extension, announced in the handshake.
    ToolCancelRequest(ToolCancelRequest) = "tool/cancel/req";
    /// Whether there was a call to stop.
    ToolCancelResponse(ToolCancelResponse) = "tool/cancel/resp";
    /// The list of tools is another one now. An extension, sent to whoever asked for it in the handshake.
    ToolListChanged(core::ToolListChanged) = "tool/list/changed";
}

/// A message of a type this crate does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherBody {
    /// The word on the wire.
    pub kind: String,
    /// Everything but the envelope.
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

    /// Whether a type is one that agents send.
    pub(crate) fn is_request(kind: &str) -> bool {
        matches!(kind, "ping" | "shutdown") || kind.ends_with("/req")
    }

    /// The message this one belongs to, where it belongs to one.
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

    /// Names the message this one answers, unless it says so itself.
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
