//! The request of a joining process, and its refusal. Both ends of the socket use these types.

use serde::{Deserialize, Serialize};
use toolpost_config::HostConfig;
use toolpost_model::PrincipalRole;

use super::settings::{SettingsDigests, StartSettings, digest};

/// The route on the unix socket. Network listeners do not have it.
pub(super) const ROUTE: &str = "/join";
/// The protocol of the upgraded connection.
pub(super) const PROTOCOL: &str = "toolpost-stdio";
const LONGEST_SESSION: usize = 64;

/// A protocol over standard input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdioFace {
    /// A2E, one message a line.
    A2e,
    /// MCP, one message a line.
    Mcp,
}

/// The request of a joining process: its agent, and the settings that the process was started with.
#[derive(Clone, Serialize, Deserialize)]
pub struct JoinTicket {
    pub(super) version: String,
    pub(super) face: StdioFace,
    pub(super) role: PrincipalRole,
    /// The A2E session to continue, if the agent had one with an earlier host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// A digest of the token that the agent must show, if one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    pub(super) settings: SettingsDigests,
}

impl JoinTicket {
    pub(crate) fn new(
        face: StdioFace,
        role: PrincipalRole,
        token: Option<&str>,
        settings: &StartSettings,
        config: &HostConfig,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            face,
            role,
            session: None,
            token: token.map(|token| digest(&token)),
            settings: settings.digests(config),
        }
    }

    pub(super) fn has_plain_session(&self) -> bool {
        self.session.as_ref().is_none_or(|id| {
            (1..=LONGEST_SESSION).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    }
}

/// The answer to a process whose settings differ from those of the host.
#[derive(Serialize, Deserialize)]
pub(super) struct SettingsRefusal {
    pub(super) differing: Vec<String>,
}
