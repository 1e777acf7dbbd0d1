//! Other agents and chat clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A2A, for other agents and chat clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aConfig {
    /// Whether the host is an A2A agent.
    pub enabled: bool,
    /// The clients that get tool events.
    pub events: A2aEvents,
    /// The public address, if it differs from the requested one.
    pub url: Option<String>,
    /// The agent's name on its card.
    pub name: String,
    /// The description on the card.
    pub description: String,
}

impl Default for A2aConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            events: A2aEvents::Auto,
            url: None,
            name: "Toolpost".to_owned(),
            description:
                "Runs the tools of this host: send a message with a `tool-call` data part."
                    .to_owned(),
        }
    }
}

/// The clients that get tool events over A2A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum A2aEvents {
    /// Clients that name the extension, or request a tool with a `tool-call` data part.
    #[default]
    Auto,
    /// All clients, even those that name no extension.
    Always,
}
