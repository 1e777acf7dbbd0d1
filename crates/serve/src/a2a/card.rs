//! The agent card: a description of the host, and for authenticated callers every tool as a skill.

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
use toolpost_core::{SurfaceEntry, ToolFilter};
use toolpost_model::{InputContract, Principal};

use super::A2aServerFace;
use crate::http::header_text;

/// The part of a tool's description that the card shows.
const LONGEST_DESCRIPTION: usize = 1_000;
/// The most arguments of an example, and the longest of them.
const MOST_PLACEHOLDERS: usize = 16;
const LONGEST_PLACEHOLDER: usize = 100;
/// The time in seconds for which proxies and clients may keep the card. Tools change.
const FRESH: &str = "max-age=60";

/// `GET /.well-known/agent-card.json`: the card that needs no token.
pub(super) async fn public(
    State(face): State<Arc<A2aServerFace>>,
    principal: Option<Extension<Principal>>,
    headers: HeaderMap,
) -> Response {
    let card = match &principal {
        Some(Extension(principal)) => extended(&face, principal, &headers).await,
        None => card(&face, &headers, vec![generic()], true),
    };
    let text = card.to_string();
    let digest = Sha256::digest(text.as_bytes());
    let tag = format!("\"{}\"", const_hex::encode(&digest[..8]));
    let known = header_text(&headers, header::IF_NONE_MATCH);
    let is_same = |known: &str| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag;
    let is_known = known.is_some_and(|known| known.split(',').map(str::trim).any(is_same));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
    };
    let told = response.headers_mut();
    let who = if principal.is_some() {
        "private"
    } else {
        "public"
    };
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
pub(super) async fn extended(
    face: &A2aServerFace,
    principal: &Principal,
    headers: &HeaderMap,
) -> Value {
    let session = face.host.default_session(principal);
    let filter = ToolFilter {
        include_deferred: true,
        ..ToolFilter::default()
    };
    let tools = face.host.list(&session, &filter).await;
    // A caller without a token was admitted without one, so the card requires none.
    let needs_token = headers.contains_key(header::AUTHORIZATION);
    card(
        face,
        headers,
        tools.iter().map(skill).collect(),
        needs_token,
    )
}

fn card(face: &A2aServerFace, headers: &HeaderMap, skills: Vec<Skill>, needs_token: bool) -> Value {
    let config = &face.config;
    let url = config.url.clone().unwrap_or_else(|| {
        let host = header_text(headers, header::HOST).unwrap_or("localhost");
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

/// The skill on the card for callers without a token. Every client that reaches the host can read that card, and the
/// names of tools would tell a stranger about the systems of the operator. Clients of 0.3 refuse a card without skills,
/// so there is a general one.
fn generic() -> Skill {
    Skill {
        id: "tools".to_owned(),
        name: "Tools".to_owned(),
        description: "Runs tools. With a token, this card lists them.".to_owned(),
        tags: vec!["tools".to_owned()],
        examples: vec![example("NAME", &json!({}))],
    }
}

fn skill(tool: &SurfaceEntry) -> Skill {
    let declaration = tool.entry.declaration();
    let described: String = declaration
        .description
        .chars()
        .take(LONGEST_DESCRIPTION)
        .collect();
    let mut tags = declaration.tags.clone();
    if tags.is_empty() {
        tags.push(declaration.kind.as_str().to_owned());
    }
    let name = tool.entry.name();
    Skill {
        id: name.to_owned(),
        name: declaration.title.clone().unwrap_or_else(|| name.to_owned()),
        description: if described.is_empty() {
            name.to_owned()
        } else {
            described
        },
        tags,
        examples: vec![example(name, &arguments(&declaration.input))],
    }
}

/// An example: a data part that calls the tool.
fn example(tool: &str, input: &Value) -> String {
    json!({ "type": "tool-call", "toolCallId": "1", "toolName": tool, "input": input }).to_string()
}

/// Example arguments: the tool's own example, or a placeholder for each required argument.
fn arguments(input: &InputContract) -> Value {
    if let Some(own) = input
        .examples
        .iter()
        .find(|own| own.to_string().len() <= LONGEST_DESCRIPTION)
    {
        return own.clone();
    }
    let schema = &*input.schema;
    let required = schema["required"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let names = required
        .iter()
        .filter_map(Value::as_str)
        .take(MOST_PLACEHOLDERS);
    Value::Object(
        names
            .map(|name| (name.to_owned(), placeholder(&schema["properties"][name])))
            .collect(),
    )
}

/// A value that fits a schema. Values from the schema itself come first, unless they are long.
fn placeholder(schema: &Value) -> Value {
    let offered = [
        &schema["const"],
        &schema["default"],
        &schema["examples"][0],
        &schema["enum"][0],
    ];
    let is_short =
        |value: &&&Value| !value.is_null() && value.to_string().len() <= LONGEST_PLACEHOLDER;
    if let Some(offered) = offered.iter().find(is_short) {
        return (*offered).clone();
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str());
    match kind {
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        Some(_) | None => json!("…"),
    }
}
