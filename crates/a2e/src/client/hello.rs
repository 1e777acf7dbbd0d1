//! The options of an agent for its handshake.

use std::time::Duration;

use toolpost_model::SurfaceRequest;

use super::{
    error::{CallError, ConnectError},
    token::AuthToken,
};
use crate::{Body, HandshakeRequest, HandshakeResponse};

/// The agent's handshake, and the bounds of its client.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    agent_id: String,
    caps: Vec<String>,
    token: AuthToken,
    surface: Option<SurfaceRequest>,
    extensions: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) in_flight: usize,
    pub(super) message_limit: usize,
}

impl ConnectOptions {
    /// The default time in which a host must answer the handshake.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// The default number of concurrent requests. Further requests wait.
    pub const IN_FLIGHT: usize = 1_024;
    /// The default limit of a received message, in bytes.
    pub const MESSAGE_LIMIT: usize = 64 << 20;

    /// An agent with this name that uses tools and asks for notices of changed tool lists.
    pub fn new(agent_id: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            caps: vec!["tools".to_owned()],
            token: AuthToken::default(),
            surface: None,
            extensions: vec!["tool/list/changed".to_owned()],
            timeout: Self::TIMEOUT,
            in_flight: Self::IN_FLIGHT,
            message_limit: Self::MESSAGE_LIMIT,
        }
    }

    /// The token of the agent.
    #[must_use]
    pub fn token(mut self, token: impl Into<AuthToken>) -> Self {
        self.token = token.into();
        self
    }

    /// The requested capabilities, in place of `tools`.
    #[must_use]
    pub fn capabilities(mut self, caps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.caps = caps.into_iter().map(Into::into).collect();
        self
    }

    /// The requested surface. Hosts without this extension ignore it.
    #[must_use]
    pub fn surface(mut self, surface: SurfaceRequest) -> Self {
        self.surface = Some(surface);
        self
    }

    /// The extension messages that the agent asks for, in place of `tool/list/changed`.
    #[must_use]
    pub fn extensions(mut self, extensions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.extensions = extensions.into_iter().map(Into::into).collect();
        self
    }

    /// The time in which the host must answer the handshake.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The number of concurrent requests.
    #[must_use]
    pub fn in_flight(mut self, count: usize) -> Self {
        self.in_flight = count;
        self
    }

    /// The limit of a received message, in bytes.
    #[must_use]
    pub fn message_limit(mut self, bytes: usize) -> Self {
        self.message_limit = bytes;
        self
    }

    pub(super) fn request(&self) -> HandshakeRequest {
        HandshakeRequest {
            agent_id: self.agent_id.clone(),
            agent_caps: self.caps.clone(),
            auth_token: self.token.reveal().to_owned(),
            surface: self.surface.clone(),
            extensions: self.extensions.clone(),
        }
    }
}

/// Interprets the answer to a handshake.
pub(super) fn accepted(
    outcome: Result<Body, CallError>,
) -> Result<HandshakeResponse, ConnectError> {
    match outcome {
        Ok(Body::HandshakeResponse(welcome)) if welcome.ok => Ok(welcome),
        Ok(Body::HandshakeResponse(refusal)) => Err(ConnectError::Refused {
            reason: refusal.reason,
        }),
        Ok(other) => Err(ConnectError::Malformed {
            reason: format!("it is a `{}`", other.kind()),
        }),
        Err(CallError::Protocol(error)) => Err(ConnectError::Protocol(error)),
        Err(CallError::Timeout { after, .. }) => Err(ConnectError::Timeout { after }),
        Err(CallError::HostGone(gone)) => Err(ConnectError::HostGone(gone)),
        Err(error) => Err(ConnectError::Malformed {
            reason: error.to_string(),
        }),
    }
}
