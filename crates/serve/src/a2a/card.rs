//! The agent card: what this agent is, and to callers who may know, every tool as a skill.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolpost_a2a::wire::{AgentCard, Extension as A2aExtension, Skill};
use toolpost_core::{Listing, ToolFilter};
use toolpost_model::Principal;

use super::Face;

/// As much of a tool's description as a list of skills shows.
const LONGEST_DESCRIPTION: usize = 1_000;
/// Proxies and clients may keep it so long, in seconds. Tools come and go.
const FRESH: &str = "max-age=60";

/// `GET /.well-known/agent-card.json`: without a token, what anybody may know.
pub(super) async fn public(
    State(face): State<Arc<Face>>,
    principal: Option<Extension<Principal>>,
    headers: HeaderMap,
) -> Response {
    let card = match &principal {
        Some(Extension(principal)) => extended(&face, principal, &headers).await,
        None => card(&face, &headers, vec![generic()], true),
    };
    let text = card.to_string();
    let digest = Sha256::digest(text.as_bytes());
    let tag = digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let tag = format!("\"{tag}\"");
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|known| known.trim() == tag));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
    };
    let told = response.headers_mut();
    let who = if principal.is_some() { "private" } else { "public" };
    for (name, value) in [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, format!("{who}, {FRESH}")),
        (header::VARY, "Authorization".to_owned()),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            told.insert(name, value);
        }
    }
    response
}

/// The card with the caller's tools.
pub(super) async fn extended(face: &Face, principal: &Principal, headers: &HeaderMap) -> Value {
    let session = face.host.default_session(principal);
    let filter = ToolFilter { include_deferred: true, ..ToolFilter::default() };
    let tools = face.host.list(&session, &filter).await;
    // Whoever is let in without one needs none.
    let needs_token = headers.contains_key(header::AUTHORIZATION);
    card(face, headers, tools.iter().map(skill).collect(), needs_token)
}

fn card(face: &Face, headers: &HeaderMap, skills: Vec<Skill>, needs_token: bool) -> Value {
    let config = &face.config;
    let url = config.url.clone().unwrap_or_else(|| {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or("localhost");
        format!("http://{host}/a2a")
    });
    let card = AgentCard {
        name: config.name.clone(),
        description: config.description.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url,
        skills,
        extensions: vec![A2aExtension::tool_events()],
        has_extended: true,
        needs_token,
    };
    card.to_value()
}

/// What is told to those who may not know the tools. Clients of 0.3 refuse a card without a skill.
fn generic() -> Skill {
    Skill {
        id: "tools".to_owned(),
        name: "Tools".to_owned(),
        description: "Runs tools. With a token, this card lists them.".to_owned(),
        tags: vec!["tools".to_owned()],
        examples: vec![example("NAME")],
    }
}

fn skill(tool: &Listing) -> Skill {
    let declaration = tool.entry.declaration();
    let described: String = declaration.description.chars().take(LONGEST_DESCRIPTION).collect();
    let mut tags = declaration.tags.clone();
    if tags.is_empty() {
        tags.push(declaration.kind.as_str().to_owned());
    }
    let name = tool.entry.name();
    Skill {
        id: name.to_owned(),
        name: declaration.title.clone().unwrap_or_else(|| name.to_owned()),
        description: if described.is_empty() { name.to_owned() } else { described },
        tags,
        examples: vec![example(name)],
    }
}

/// A data part that calls the tool.
fn example(tool: &str) -> String {
    json!({ "type": "tool-call", "toolCallId": "1", "toolName": tool, "input": {} }).to_string()
}
