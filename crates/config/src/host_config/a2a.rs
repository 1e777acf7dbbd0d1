//! Other agents and chat clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Other agents and chat clients that speak A2A.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aConfig {
    /// Whether the host is an A2A agent.
    pub enabled: bool,
    /// Who is sent tool events.
    pub events: A2aEvents,
    /// Where others reach it, where that is not the address they asked.
    pub url: Option<String>,
    /// The agent's name on its card.
    pub name: String,
    /// What the card says it does.
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

/// Who is sent tool events over A2A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum A2aEvents {
    /// Whoever names the extension, or asks for a tool with a `tool-call` data part.
    #[default]
    Auto,
    /// Everybody, also clients that name no extension.
    Always,
}
