//! `GET /tools` and `GET /tools/{name}`: the tools of a surface, in the form of the caller's framework.

use std::{borrow::Cow, str::FromStr};

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, header},
    response::IntoResponse,
};
use serde::Deserialize;
use serde_json::{Value, json};
use toolpost_core::{CatalogNotice, Host, Session, ToolFilter};
use toolpost_model::{Declaration, Principal, PrincipalRole};

use super::{
    HttpProblem, RouteParameter, RouteState,
    formats::{FormattedToolList, HiddenTools, ToolListFormat},
    operators_only, session_of,
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListQuery {
    format: Option<String>,
    query: String,
    kind: Option<String>,
    /// Separated by commas; a tool must have all of them.
    tags: Option<String>,
    include_deferred: bool,
    /// Whether to list the hidden tools with the reasons. For operators.
    hidden: bool,
    limit: Option<usize>,
}

pub(super) async fn list(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    query: Result<Query<ListQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, HttpProblem> {
    let Query(query) =
        query.map_err(|error| HttpProblem::bad_request("bad_query", error.body_text()))?;
    if query.hidden {
        operators_only(&principal)?;
    }
    let session = session_of(&shared.host, &principal, &headers).await?;
    let tags = query.tags.iter().flat_map(|tags| tags.split(','));
    let filter = ToolFilter {
        query: query.query,
        kind: query.kind,
        tags: tags
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect(),
        include_deferred: query.include_deferred,
        limit: query.limit,
    };
    let format = ToolListFormat::from_str(query.format.as_deref().unwrap_or("toolpost"))?;
    let tools = shared.host.list(&session, &filter).await;
    let surface = shared.host.surface(&session);
    let hidden =
        (query.hidden && format == ToolListFormat::Toolpost).then_some(HiddenTools(&surface));
    // A declaration consists of names, texts and schemas, so its serialization cannot fail.
    let list = serde_json::to_string(&FormattedToolList {
        format,
        tools: &tools,
        hidden,
        unavailable: surface.catalog().unavailable(),
        notices: &notices_for(&shared.host, &session),
    })
    .unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/json")], list))
}

/// The notices for operators about names, rules and settings. Agents get none.
fn notices_for(host: &Host, session: &Session) -> Vec<String> {
    match session.principal().role {
        PrincipalRole::Agent => Vec::new(),
        PrincipalRole::Operator => {
            let of_catalog =
                |notice: &CatalogNotice| !matches!(notice, CatalogNotice::Unavailable(_));
            let notices = host.notices();
            let told = notices.iter().filter(|notice| of_catalog(notice));
            told.map(|notice| host.redacted(&notice.to_string()).into_owned())
                .collect()
        }
    }
}

/// Removes the command lines of declared commands, which may contain hosts and paths of the operator. The record keeps
/// them.
fn without_templates(declaration: &mut Cow<'_, Declaration>) {
    if declaration
        .external_mappings
        .iter()
        .any(|mapping| !mapping.template.is_empty())
    {
        let mappings = &mut declaration.to_mut().external_mappings;
        mappings
            .iter_mut()
            .for_each(|mapping| mapping.template.clear());
    }
}

/// Everything about one tool. Reading a deferred tool discovers it, so that it may be called.
pub(super) async fn show(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(name): RouteParameter,
    headers: HeaderMap,
) -> Result<Json<Value>, HttpProblem> {
    let session = session_of(&shared.host, &principal, &headers).await?;
    match shared.host.show(&session, &name).await {
        Some(tool) => {
            let mut declaration = Cow::Borrowed(tool.entry.declaration());
            if principal.role == PrincipalRole::Agent {
                without_templates(&mut declaration);
            }
            Ok(Json(
                json!({ "name": tool.entry.name(), "visibility": tool.visibility, "declaration": declaration }),
            ))
        }
        None => Err(HttpProblem::not_found(
            "unknown_tool",
            format!("no tool is called `{}` here", name.escape_debug()),
        )),
    }
}
