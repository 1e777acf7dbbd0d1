//! Errors between an agent and its host. A failure of a tool is no error here: it is a
//! [`ToolResult`](crate::ToolResult) with `success` false.

use std::{fmt, io, process::ExitStatus, time::Duration};

use crate::{ErrorCode, ErrorMessage};

/// The reason why a connection failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    #[error(
        "the host's address cannot be used: {reason}\nhint: it looks like `http://127.0.0.1:8765`"
    )]
    Address {
        /// The problem. The address itself may hold a password and is left out.
        reason: String,
    },
    /// The HTTP client cannot be set up, for example because the system's certificates are missing.
    #[error("the HTTP client cannot be set up")]
    Setup {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No server answers at the address.
    #[error(
        "the host cannot be reached\n\
         hint: check that it is running and that the address is right"
    )]
    Unreachable {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server answers at the address, but not as an A2E host does.
    #[error(
        "the host answered {what} with status {status}\n\
         hint: check that the address belongs to an A2E host"
    )]
    Status {
        /// The request.
        what: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The program of the host cannot be started.
    #[error("`{program}` cannot be started")]
    Spawn {
        /// The program.
        program: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The host refused this agent.
    #[error("the host refused the handshake: {reason}{}", refusal_hint(.reason))]
    Refused {
        /// The host's reason, such as `auth_failed`.
        reason: String,
    },
    /// The host answered the handshake with an error.
    #[error("the host answered the handshake with an error: {0}")]
    Protocol(ProtocolError),
    /// The answer to the handshake cannot be read.
    #[error("the host's answer to the handshake cannot be read: {reason}")]
    Malformed {
        /// The problem.
        reason: String,
    },
    /// The host disconnected before it answered.
    #[error("the host disconnected during the handshake: {0}")]
    HostGone(HostDeparture),
    /// The host did not answer the handshake in time.
    #[error("the host did not answer the handshake within {after:?}")]
    Timeout {
        /// The time limit.
        after: Duration,
    },
}

fn refusal_hint(reason: &str) -> &'static str {
    match reason {
        "auth_failed" => "\nhint: use a valid token of the host",
        "version_mismatch" => "\nhint: use a host that supports version 1.0",
        _ => "",
    }
}

/// The reason why a request has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The host answered with an error of the protocol.
    #[error("the host answered with an error: {0}")]
    Protocol(ProtocolError),
    /// No answer came in time.
    #[error("no answer within {after:?}{}", if *.taken { "" } else { ": the host did not accept the request" })]
    Timeout {
        /// The time that the client waited.
        after: Duration,
        /// Whether the host has the request or may have it. If not, the request had no effect.
        taken: bool,
    },
    /// The host lost the session after it took the request. The outcome of the request is unknown.
    #[error("the host has lost the session; the outcome of the call is unknown")]
    SessionLost,
    /// The host disconnected. The outcome of the request is unknown.
    #[error("the host is gone: {0}")]
    HostGone(HostDeparture),
    /// The session was lost, and the host refused a new one.
    #[error("the host refused a new session: {reason}")]
    Refused {
        /// The host's reason.
        reason: String,
    },
    /// The host refused the request without reading it.
    #[error("the host refused the request with status {status}")]
    Status {
        /// The HTTP status.
        status: u16,
    },
    /// The answer cannot be read, or is of another kind than requested.
    #[error("the host's answer cannot be read: {reason}")]
    Malformed {
        /// The problem.
        reason: String,
    },
    /// The arguments cannot be sent.
    #[error("the arguments cannot be sent: {reason}")]
    Arguments {
        /// The problem.
        reason: &'static str,
    },
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
}

impl CallError {
    /// Whether the call may have run, so that sending it again may run it twice.
    pub fn outcome_is_unknown(&self) -> bool {
        match self {
            Self::Timeout { taken, .. } => *taken,
            Self::SessionLost | Self::HostGone(_) | Self::Malformed { .. } | Self::Closed => true,
            Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Status { .. }
            | Self::Arguments { .. } => false,
        }
    }
}

/// An `error` that answers a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolError {
    /// The kind of the error.
    pub code: ErrorCode,
    /// The host's message.
    pub message: String,
    /// Whether another try may help, according to the host.
    pub retryable: bool,
    /// Details for programs.
    pub detail: serde_json::Map<String, serde_json::Value>,
}

impl From<ErrorMessage> for ProtocolError {
    fn from(error: ErrorMessage) -> Self {
        let ErrorMessage {
            code,
            message,
            retryable,
            detail,
            req_id: _,
            capability_name: _,
        } = error;
        Self {
            code,
            message,
            retryable,
            detail: *detail,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}", self.code)
        } else {
            write!(f, "{} ({})", self.message, self.code)
        }
    }
}

/// The way in which a host disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDeparture {
    /// The host closed the connection.
    Ended,
    /// The process of the host exited.
    Exited(ExitStatus),
}

impl fmt::Display for HostDeparture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("it ended the connection"),
            Self::Exited(status) => write!(f, "its process ended with {status}"),
        }
    }
}
