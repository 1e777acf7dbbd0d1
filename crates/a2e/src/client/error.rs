//! What can go wrong between an agent and its host. How a tool fails is no error: that is a
//! [`ToolResult`](crate::ToolResult) with `success` false.

use std::{fmt, io, process::ExitStatus, time::Duration};

use crate::{ErrorCode, ErrorMessage};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    #[error(
        "the host's address cannot be used: {reason}\nhint: it looks like `http://127.0.0.1:8765`"
    )]
    Address {
        /// What is wrong with it. The address itself may hold a password and is left out.
        reason: String,
    },
    /// The system's certificates, or whatever else the HTTP client needs, cannot be had.
    #[error("the HTTP client cannot be set up")]
    Setup {
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nobody answers there.
    #[error(
        "the host cannot be reached\nhint: see that it is running and that the address is right"
    )]
    Unreachable {
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody answers there, but not as an A2E host does.
    #[error(
        "the host answered {what} with status {status}\nhint: see that the address is one of an A2E host"
    )]
    Status {
        /// The request.
        what: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The host's program cannot be started.
    #[error("`{program}` cannot be started")]
    Spawn {
        /// The program.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The host does not let this agent in.
    #[error("the host refused the handshake: {reason}{}", refusal_hint(.reason))]
    Refused {
        /// The host's word for why, such as `auth_failed`.
        reason: String,
    },
    /// The handshake was answered with an error.
    #[error("the host answered the handshake with an error: {0}")]
    Protocol(ProtocolError),
    /// The handshake's answer cannot be read.
    #[error("the host's answer to the handshake cannot be read: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// The host went away before it had answered.
    #[error("the host went away during the handshake: {0}")]
    HostGone(HostDeparture),
    /// The handshake was not answered in time.
    #[error("the host did not answer the handshake within {after:?}")]
    Timeout {
        /// How long it had.
        after: Duration,
    },
}

fn refusal_hint(reason: &str) -> &'static str {
    match reason {
        "auth_failed" => "\nhint: give a token that the host knows",
        "version_mismatch" => "\nhint: this client speaks version 1.0",
        _ => "",
    }
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The host answered with an error of the protocol.
    #[error("the host answered with an error: {0}")]
    Protocol(ProtocolError),
    /// No answer came in time.
    #[error("no answer within {after:?}{}", if *.taken { "" } else { ": the host never took the request" })]
    Timeout {
        /// How long it was waited for.
        after: Duration,
        /// Whether the host has the request, or may have it. If not, nothing can have happened.
        taken: bool,
    },
    /// The host forgot the session while the request was with it. Nobody knows what became of it.
    #[error("the host no longer knows the session; what became of the call is not known")]
    SessionLost,
    /// The host went away. What became of the request is not known.
    #[error("the host is gone: {0}")]
    HostGone(HostDeparture),
    /// The session was lost, and the host does not let this agent in again.
    #[error("the host refused a new session: {reason}")]
    Refused {
        /// The host's word for why.
        reason: String,
    },
    /// The host turned the request away before it looked at it.
    #[error("the host turned the request away with status {status}")]
    Status {
        /// The HTTP status.
        status: u16,
    },
    /// An answer came that cannot be read, or one of another kind than was asked for.
    #[error("the host's answer cannot be read: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// The arguments cannot be sent.
    #[error("the arguments cannot be sent: {reason}")]
    Arguments {
        /// Why not.
        reason: &'static str,
    },
    /// This client was closed.
    #[error("the client is closed")]
    Closed,
}

impl CallError {
    /// Whether the call may have been run all the same, so that sending it again may run it twice.
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
    /// Which kind.
    pub code: ErrorCode,
    /// What the host says.
    pub message: String,
    /// Whether the host thinks that another try may help.
    pub retryable: bool,
    /// More, for programs.
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

/// How a host went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDeparture {
    /// It ended the connection.
    Ended,
    /// Its process ended.
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
