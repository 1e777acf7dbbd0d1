//! `GET /tools` and `GET /tools/{name}`: what can be called, in the form the caller's framework wants.

use std::str::FromStr;

use axum::{
    Extension, Json,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::HeaderMap,
};
use serde::Deserialize;
use serde_json::{Value, json};
use toolpost_core::{Entry, Host, Session, ToolFilter};
use toolpost_model::{HiddenReason, Principal, Visibility};

use super::{
    Problem,
    formats::{Format, UnknownFormat},
    session_of,
};
use crate::server::Shared;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListQuery {
    format: Option<String>,
    query: String,
    kind: Option<String>,
    /// Separated by commas; a tool must have all of them.
    tags: Option<String>,
    include_deferred: bool,
    /// Also name what is hidden, and why.
    hidden: bool,
    limit: Option<usize>,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    query: Result<Query<ListQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let Query(query) = query.map_err(|error| Problem::bad_request("bad_query", error.body_text()))?;
    let session = session_of(&shared.host, &principal, &headers).await?;
    let filter = ToolFilter {
        query: query.query,
        kind: query.kind,
        tags: query.tags.iter().flat_map(|tags| tags.split(',')).map(|tag| tag.trim().to_owned()).collect(),
        include_deferred: query.include_deferred,
        limit: query.limit,
    };
    let format = query.format.as_deref().unwrap_or("toolpost");
    Ok(Json(list_tools(&shared.host, &session, &filter, format, query.hidden).await?))
}

/// The list of tools a session may see, in one of the formats; `hidden` adds what it may not, and why.
pub async fn list_tools(
    host: &Host,
    session: &Session,
    filter: &ToolFilter,
    format: &str,
    hidden: bool,
) -> Result<Value, UnknownFormat> {
    let format = Format::from_str(format)?;
    let listed = host.list(session, filter).await;
    let mut body = format.render(listed.iter().map(|tool| (&*tool.entry, tool.visibility)));
    if hidden && format == Format::Toolpost {
        let surface = host.surface(session);
        body["hidden"] = surface.all().filter_map(|(entry, visibility)| hidden_tool(entry, visibility)).collect();
        body["surface"] = json!(surface.id());
    }
    Ok(body)
}

fn hidden_tool(entry: &Entry, visibility: Visibility) -> Option<Value> {
    let reason = match visibility {
        Visibility::Loaded => return None,
        Visibility::Deferred => HiddenReason::Deferred,
        Visibility::Blocked(reason) => reason,
    };
    Some(json!({ "name": entry.name(), "tool_id": entry.id(), "reason": reason, "explanation": reason.explain() }))
}

/// Everything about one tool. A deferred tool that was looked at may be called.
pub(super) async fn show(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let session = session_of(&shared.host, &principal, &headers).await?;
    match shared.host.show(&session, &name) {
        Some(tool) => Ok(Json(json!({ "name": tool.entry.name(), "visibility": tool.visibility, "declaration": tool.entry.declaration() }))),
        None => Err(Problem::not_found("unknown_tool", format!("no tool is called `{}` here", name.escape_debug()))),
    }
}
