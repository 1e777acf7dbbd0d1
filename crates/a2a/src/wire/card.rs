//! The agent card: one text that peers of both dialects read.

use serde_json::{Map, Value, json};

use super::A2aDialect;
use super::members::JsonObjectWriter;
use crate::CANONICAL_URI;

/// The name of the one security scheme on the card.
const SCHEME: &str = "bearer";

/// An extension that the host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Which.
    pub uri: String,
    /// For people.
    pub description: String,
}

impl Extension {
    /// Tool events. Never marked as required: a peer that does not know them gets its result all the same.
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

/// Something the host can do: here, a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// What a peer names it by.
    pub id: String,
    /// For people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// To find it by.
    pub tags: Vec<String>,
    /// What a peer might send, as texts.
    pub examples: Vec<String>,
}

impl Skill {
    fn to_value(&self) -> Value {
        // `tags` is required in both dialects, even when there are none.
        JsonObjectWriter::default()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("description", self.description.as_str())
            .with("tags", self.tags.clone())
            .texts("examples", &self.examples)
            .done()
    }
}

/// What a host says of itself to peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard {
    /// For people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The host's own version.
    pub version: String,
    /// Where JSON-RPC and REST requests go.
    pub url: String,
    /// What it can do.
    pub skills: Vec<Skill>,
    /// The extensions it has.
    pub extensions: Vec<Extension>,
    /// Whether known callers can ask for a fuller card.
    pub has_extended: bool,
    /// Whether callers need a bearer token.
    pub needs_token: bool,
}

impl AgentCard {
    /// The card with the members of both dialects.
    ///
    /// Peers of 0.3 refuse one without `url`, peers of 1.0 one without `supportedInterfaces`; both pass over what they do
    /// not know. `a2a.capabilities.extensions` is where readers of Mentionable's cards look.
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

    /// In the order of preference.
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

/// Both spellings of one scheme in one object.
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
