//! Why a request is not done, in A2A's own words.

use serde_json::{Map, Value, json};

use super::members::PeerMessageError;
use super::{A2aDialect, UnsupportedVersion};

/// Whose reasons they are, as the typed details of 1.0 say.
const DOMAIN: &str = "a2a-protocol.org";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $grpc:literal, $reason:literal;)*) => {
        /// The kind of a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code in JSON-RPC.
            pub fn number(self) -> i32 {
                match self { $(Self::$name => $code,)* }
            }

            /// The status of an answer to a REST request.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The status that gRPC would give, which REST answers name.
            pub fn grpc_status(self) -> &'static str {
                match self { $(Self::$name => $grpc,)* }
            }

            /// The reason in the typed details of 1.0.
            pub fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    ParseError = -32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR";
    /// It is JSON and no request.
    InvalidRequest = -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST";
    /// There is no such method.
    MethodNotFound = -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND";
    /// The method takes something else.
    InvalidParams = -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS";
    /// The host's own fault.
    Internal = -32603, 500, "INTERNAL", "INTERNAL_ERROR";
    /// There is no such task, or it is not the caller's.
    TaskNotFound = -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND";
    /// The task has ended already.
    TaskNotCancelable = -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE";
    /// Peers are not called back.
    PushNotificationNotSupported = -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED";
    /// Not with this task, or not in its state.
    UnsupportedOperation = -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION";
    /// A kind of part that is not taken.
    ContentTypeNotSupported = -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED";
    /// The agent behind it answered nonsense.
    InvalidAgentResponse = -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE";
    /// There is no fuller card.
    ExtendedCardNotConfigured = -32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
    /// An extension must be used. New in 1.0.
    ExtensionSupportRequired = -32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED";
    /// The version is not spoken here. New in 1.0.
    VersionNotSupported = -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED";
    /// The caller has as much as it may have for now. This host's own: the protocol has no code for it.
    RateLimited = -32029, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED";
}

/// A request that is not done, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct A2aRefusal {
    /// The kind.
    pub code: ErrorCode,
    /// For whoever wrote the peer.
    pub message: String,
    /// Facts for programs, such as the id of the task. Texts alone: protocol buffers allow nothing else.
    pub facts: Vec<(&'static str, String)>,
}

impl A2aRefusal {
    /// One without facts.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            facts: Vec::new(),
        }
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// The `error` of a JSON-RPC answer. In 1.0 with typed details, in 0.3 with the facts as they are.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        let mut error = json!({ "code": self.code.number(), "message": self.message });
        let data = match dialect {
            A2aDialect::V1_0 => Some(self.details()),
            A2aDialect::V0_3 => (!self.facts.is_empty()).then(|| Value::Object(self.metadata())),
        };
        if let Some(data) = data {
            error["data"] = data;
        }
        error
    }

    /// The body of a REST answer, whose status is [`ErrorCode::http_status`].
    pub fn to_rest(&self) -> Value {
        json!({
            "error": {
                "code": self.code.http_status(),
                "status": self.code.grpc_status(),
                "message": self.message,
                "details": self.details(),
            }
        })
    }

    fn details(&self) -> Value {
        json!([{
            "@type": ERROR_INFO,
            "reason": self.code.reason(),
            "domain": DOMAIN,
            "metadata": self.metadata(),
        }])
    }

    fn metadata(&self) -> Map<String, Value> {
        self.facts
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
            .collect()
    }
}

impl From<PeerMessageError> for A2aRefusal {
    fn from(misread: PeerMessageError) -> Self {
        Self::new(ErrorCode::InvalidParams, misread.to_string())
    }
}

impl From<UnsupportedVersion> for A2aRefusal {
    fn from(unsupported: UnsupportedVersion) -> Self {
        Self::new(ErrorCode::VersionNotSupported, unsupported.to_string())
            .fact("supported", "0.3, 1.0")
    }
}
