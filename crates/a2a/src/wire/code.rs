//! Error codes and refusals of A2A.

use serde_json::{Map, Value, json};

use super::members::PeerMessageError;
use super::{A2aDialect, UnsupportedVersion};

/// The domain of the reasons in the typed details of 1.0.
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

            /// The HTTP status of a refused REST request.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The corresponding status of gRPC, which REST answers name.
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
    /// The body is JSON, but not a request.
    InvalidRequest = -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST";
    /// The method does not exist.
    MethodNotFound = -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND";
    /// The parameters do not fit the method.
    InvalidParams = -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS";
    /// An error of the host.
    Internal = -32603, 500, "INTERNAL", "INTERNAL_ERROR";
    /// The task does not exist, or it belongs to another caller.
    TaskNotFound = -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND";
    /// The task has ended already.
    TaskNotCancelable = -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE";
    /// The host sends no push notifications.
    PushNotificationNotSupported = -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED";
    /// The operation is not possible with this task or in its state.
    UnsupportedOperation = -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION";
    /// The host does not accept this kind of part.
    ContentTypeNotSupported = -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED";
    /// The agent behind the host gave an invalid answer.
    InvalidAgentResponse = -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE";
    /// The host has no fuller card.
    ExtendedCardNotConfigured = -32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
    /// The request must use an extension. New in 1.0.
    ExtensionSupportRequired = -32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED";
    /// The host does not support the version. New in 1.0.
    VersionNotSupported = -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED";
    /// The caller has used up its share for now. A code of this host: the protocol has none.
    RateLimited = -32029, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED";
}

/// The reason why a request was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct A2aRefusal {
    /// The kind.
    pub code: ErrorCode,
    /// A text for the author of the peer.
    pub message: String,
    /// Facts for programs, such as the id of the task. They are texts, because protocol buffers allow nothing else.
    pub facts: Vec<(&'static str, String)>,
}

impl A2aRefusal {
    /// A refusal without facts.
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

    /// The `error` of a JSON-RPC answer: with typed details in 1.0, with the plain facts in 0.3.
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

    /// The body of a REST answer; its status is [`ErrorCode::http_status`].
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
