//! `GET /invocations/{id}` and `POST /invocations/{id}/cancel`.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use serde_json::{Value, json};
use toolpost_core::InvocationView;
use toolpost_model::{InvocationId, Principal};

use super::{HttpProblem, RouteParameter, RouteState, calls::seconds};

fn parse(id: &str) -> Result<InvocationId, HttpProblem> {
    id.parse().map_err(|_| {
        HttpProblem::bad_request(
            "bad_id",
            format!("`{}` is not an invocation id", id.escape_debug()),
        )
    })
}

fn unknown(id: InvocationId) -> HttpProblem {
    HttpProblem::not_found(
        "unknown_invocation",
        format!("the invocation `{id}` is unknown to this caller"),
    )
}

/// Proxies close connections after a longer silence.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowQuery {
    /// The time to wait for the end of the call, in seconds.
    wait: Option<f64>,
}

/// The state of a call, and its result once it has ended.
pub(super) async fn show(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
    query: Result<Query<ShowQuery>, QueryRejection>,
) -> Result<Json<InvocationView>, HttpProblem> {
    let id = parse(&id)?;
    let Query(query) =
        query.map_err(|error| HttpProblem::bad_request("bad_query", error.body_text()))?;
    let wait = query
        .wait
        .map(|given| seconds("wait", given))
        .transpose()?
        .unwrap_or_default();
    shared
        .host
        .wait(id, &principal, wait.min(LONGEST_WAIT))
        .await?
        .map(Json)
        .ok_or_else(|| unknown(id))
}

/// Cancels a call. The outcome follows in the call's own answer.
pub(super) async fn cancel(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
) -> Result<Json<Value>, HttpProblem> {
    let id = parse(&id)?;
    if shared.host.cancel(id, &principal) {
        return Ok(Json(json!({ "invocation_id": id, "cancel": "requested" })));
    }
    match shared.host.invocation(id, &principal).await? {
        Some(_) => Ok(Json(
            json!({ "invocation_id": id, "cancel": "already_ended" }),
        )),
        None => Err(unknown(id)),
    }
}
