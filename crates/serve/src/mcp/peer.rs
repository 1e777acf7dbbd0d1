//! The caller of a request: its session, the questions that it can answer, and its revision of the protocol.

use std::sync::Arc;

use toolpost_core::Session;
use toolpost_model::{Principal, PrincipalRole};

use super::{
    McpServerFace,
    meta::{McpClientCapabilities, McpLogLevel},
    sessions::McpSession,
    version::McpVersion,
};

/// The face name of calls over HTTP on record.
pub(super) const CAME_BY: &str = "mcp";

/// A client, as far as one request is concerned.
#[derive(Clone)]
pub(super) struct McpPeer {
    pub(super) face: Arc<McpServerFace>,
    pub(super) session: Arc<Session>,
    pub(super) version: McpVersion,
    pub(super) can: McpClientCapabilities,
    /// The lowest level of log lines that it requests. `None`: no log lines.
    pub(super) level: Option<McpLogLevel>,
    /// Its session, in the era with sessions.
    pub(super) stay: Option<Arc<McpSession>>,
    /// The face name on record.
    pub(super) came_by: &'static str,
}

impl McpPeer {
    pub(super) fn principal(&self) -> &Principal {
        self.session.principal()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.version.is_modern()
    }

    /// Whether the client may be asked to approve its own calls. This requires an operator as principal and a client
    /// that supports forms.
    pub(super) fn may_approve(&self) -> bool {
        self.principal().role == PrincipalRole::Operator && self.can.0.elicitation
    }
}
