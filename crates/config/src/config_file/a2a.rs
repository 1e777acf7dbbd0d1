//! `a2a`: other agents and chat clients.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{A2aEvents, LocatedValue};

/// Other agents and chat clients that speak A2A.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2aSection {
    /// Whether the host is an A2A agent at all, with `/a2a` and the card at `/.well-known/agent-card.json`.
    pub enabled: Option<LocatedValue<bool>>,
    /// Who is sent tool events.
    pub events: Option<LocatedValue<A2aEvents>>,
    /// Where others reach `/a2a`, where that is not the address they asked: such as `https://tools.example.org/a2a`,
    /// behind a proxy.
    pub url: Option<LocatedValue<String>>,
    /// The agent's name on its card: up to 64 printable characters.
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<LocatedValue<String>>,
    /// What the card says the agent does: up to 1,000 printable characters.
    #[schemars(length(min = 1, max = 1000))]
    pub description: Option<LocatedValue<String>>,
}
