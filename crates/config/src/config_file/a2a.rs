//! `a2a`: other agents and chat clients.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{A2aEvents, LocatedValue};

/// A2A, for other agents and chat clients.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2aSection {
    /// Whether the host is an A2A agent, with `/a2a` and the card at `/.well-known/agent-card.json`.
    pub enabled: Option<LocatedValue<bool>>,
    /// The clients that get tool events.
    pub events: Option<LocatedValue<A2aEvents>>,
    /// The public URL of `/a2a` if it differs from the requested address, for example behind a proxy:
    /// `https://tools.example.org/a2a`.
    pub url: Option<LocatedValue<String>>,
    /// The agent's name on its card: up to 64 printable characters.
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<LocatedValue<String>>,
    /// The description on the agent's card: up to 1,000 printable characters.
    #[schemars(length(min = 1, max = 1000))]
    pub description: Option<LocatedValue<String>>,
}
