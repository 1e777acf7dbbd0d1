//! `GET /sources` and `POST /sources/{name}/accept`: the state of sources, and the acceptance of blocked definitions.
//! For operators.

use axum::{Extension, Json, body::Body, extract::State};
use serde::Deserialize;
use serde_json::{Value, json};
use toolpost_model::{Principal, ToolId};

use super::{HttpProblem, RouteParameter, RouteState, operators_only, read_body};

/// The definitions to accept. Without a tool: all blocked definitions of the source.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AcceptanceSelection {
    tool: Option<ToolId>,
    /// The digest of the definition that the operator has seen, if only that one is accepted.
    digest: Option<String>,
}

/// The state of every source.
pub(super) async fn list(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<Value>, HttpProblem> {
    operators_only(&principal)?;
    Ok(Json(json!({ "sources": shared.host.sources() })))
}

/// Accepts blocked definitions of a source.
pub(super) async fn accept(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(name): RouteParameter,
    body: Body,
) -> Result<Json<Value>, HttpProblem> {
    operators_only(&principal)?;
    let body = read_body(body, shared.limits.body).await?;
    let asked: AcceptanceSelection = match body.trim_ascii() {
        [] => AcceptanceSelection::default(),
        text => serde_json::from_slice(text).map_err(|error| {
            HttpProblem::bad_request("bad_body", format!("the body cannot be read: {error}"))
                .hint("send `{\"tool\": \"server.tool\"}`, or nothing for all")
        })?,
    };
    if !shared
        .host
        .sources()
        .iter()
        .any(|source| source.name == name)
    {
        let message = format!("there is no source `{}`", name.escape_debug());
        return Err(
            HttpProblem::not_found("unknown_source", message).hint("`GET /sources` lists them")
        );
    }
    let accepted = shared
        .host
        .accept(&name, asked.tool.as_ref(), asked.digest.as_deref())
        .await;
    let accepted = accepted.map_err(|error| HttpProblem::conflict("not_accepted", error.reason))?;
    Ok(Json(json!({ "source": name, "accepted": accepted })))
}

/// The number of sources in each state, for callers without a token. Built-in sources are left out.
pub(super) fn counted(shared: &RouteState) -> (bool, Value) {
    let mut states = serde_json::Map::new();
    let mut failing = false;
    let mut quarantined = 0;
    for report in shared.host.sources() {
        let state = report.health.state;
        failing |= state == toolpost_model::SourceState::Failing;
        quarantined += report.health.quarantined.len();
        let count = states.entry(state.as_str()).or_insert_with(|| json!(0));
        *count = json!(count.as_u64().unwrap_or_default() + 1);
    }
    (
        failing,
        json!({ "states": states, "quarantined": quarantined }),
    )
}
