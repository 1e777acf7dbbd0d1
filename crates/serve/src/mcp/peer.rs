//! Who asks: the session its calls belong to, what it can be asked in return, and which revision it speaks.

use std::sync::Arc;

use toolpost_core::Session;
use toolpost_model::{Principal, PrincipalRole};

use super::{
    McpServerFace,
    meta::{McpClientCapabilities, McpLogLevel},
    sessions::McpSession,
    version::McpVersion,
};

/// Where calls over HTTP come from, for the record.
pub(super) const CAME_BY: &str = "mcp";

/// A client, as far as one request is concerned.
#[derive(Clone)]
pub(super) struct McpPeer {
    pub(super) face: Arc<McpServerFace>,
    pub(super) session: Arc<Session>,
    pub(super) version: McpVersion,
    pub(super) can: McpClientCapabilities,
    /// The least serious line it wants to hear. `None`: none at all.
    pub(super) level: Option<McpLogLevel>,
    /// Its session in the era that has them.
    pub(super) stay: Option<Arc<McpSession>>,
    /// Where it came in, for the record.
    pub(super) came_by: &'static str,
}

impl McpPeer {
    pub(super) fn principal(&self) -> &Principal {
        self.session.principal()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.version.is_modern()
    }

    /// Whether the person behind the client may be asked about its calls: only where the client came in as an operator's.
    pub(super) fn may_approve(&self) -> bool {
        self.principal().role == PrincipalRole::Operator && self.can.0.elicitation
    }
}
