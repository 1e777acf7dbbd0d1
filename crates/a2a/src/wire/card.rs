//! The agent card: one text for peers of both dialects.

use serde_json::{Map, Value, json};

use super::A2aDialect;
use super::members::JsonObjectWriter;
use crate::CANONICAL_URI;

/// The name of the card's only security scheme.
const SCHEME: &str = "bearer";

/// An extension of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The URI of the extension.
    pub uri: String,
    /// A text for people.
    pub description: String,
}

impl Extension {
    /// The tool events extension. It is never required: a peer without it still gets its result.
    pub fn tool_events() -> Self {
        Self {
            uri: CANONICAL_URI.to_owned(),
            description: "Visible tool execution events carried as A2A DataParts.".to_owned(),
        }
    }

    fn to_value(&self) -> Value {
        json!({ "uri": self.uri, "description": self.description })
    }
}

/// A skill of the host: here, a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The id of the skill.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// A description of the skill.
    pub description: String,
    /// Words for searching.
    pub tags: Vec<String>,
    /// Texts that a peer might send.
    pub examples: Vec<String>,
}

impl Skill {
    fn to_value(&self) -> Value {
        // Both dialects require `tags`, even if it is empty.
        JsonObjectWriter::default()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("tags", self.tags.clone())
            .texts("examples", &self.examples)
            .done()
    }
}

/// The description of a host for its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// The purpose of the host.
    pub description: String,
    /// The host's version.
    pub version: String,
    /// The address of JSON-RPC and REST requests.
    pub url: String,
    /// The skills of the host.
    pub skills: Vec<Skill>,
    /// The extensions of the host.
    pub extensions: Vec<Extension>,
    /// Whether authenticated callers can ask for a fuller card.
    pub has_extended: bool,
    /// Whether callers need a bearer token.
    pub needs_token: bool,
}

impl AgentCard {
    /// The card with the members of both dialects.
    ///
    /// Peers of 0.3 refuse a card without `url`, peers of 1.0 one without `supportedInterfaces`; both ignore members
    /// that they do not know. Readers of Mentionable's cards look at `a2a.capabilities.extensions`.
    pub fn to_value(&self) -> Value {
        let extensions: Vec<Value> = self.extensions.iter().map(Extension::to_value).collect();
        let mut card = JsonObjectWriter::default()
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("version", self.version.as_str())
            .with("url", self.url.as_str())
            .with("protocolVersion", "0.3.0")
            .with("preferredTransport", "JSONRPC")
            .with(
                "additionalInterfaces",
                json!([{ "url": self.url, "transport": "JSONRPC" }]),
            )
            .with("supportedInterfaces", self.interfaces())
            .with("capabilities", self.capabilities(&extensions))
            .with(
                "a2a",
                json!({ "capabilities": { "extensions": extensions } }),
            )
            .with(
                "defaultInputModes",
                json!(["application/json", "text/plain"]),
            )
            .with(
                "defaultOutputModes",
                json!(["application/json", "text/plain"]),
            )
            .with(
                "skills",
                self.skills.iter().map(Skill::to_value).collect::<Vec<_>>(),
            )
            .flag("supportsAuthenticatedExtendedCard", self.has_extended);
        if self.needs_token {
            card = card
                .with("securitySchemes", one(SCHEME, security_scheme()))
                .with("security", json!([one(SCHEME, json!([]))]))
                .with(
                    "securityRequirements",
                    json!([{ "schemes": one(SCHEME, json!({ "list": [] })) }]),
                );
        }
        card.done()
    }

    /// The interfaces in the order of preference.
    fn interfaces(&self) -> Value {
        let at = |binding: &str, dialect: A2aDialect| json!({ "url": self.url, "protocolBinding": binding, "protocolVersion": dialect.version() });
        json!([
            at("JSONRPC", A2aDialect::V1_0),
            at("HTTP+JSON", A2aDialect::V1_0),
            at("JSONRPC", A2aDialect::V0_3)
        ])
    }

    fn capabilities(&self, extensions: &[Value]) -> Value {
        JsonObjectWriter::default()
            .with("streaming", true)
            .with("pushNotifications", false)
            .with("stateTransitionHistory", false)
            .list("extensions", extensions.to_vec())
            .flag("extendedAgentCard", self.has_extended)
            .done()
    }
}

/// The security scheme, with the members of both dialects in one object.
fn security_scheme() -> Value {
    let description = "A token of this host.";
    json!({
        "type": "http",
        "scheme": "bearer",
        "description": description,
        "httpAuthSecurityScheme": { "scheme": "Bearer", "description": description },
    })
}

fn one(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}
