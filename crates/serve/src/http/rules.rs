//! `GET /rules` and `DELETE /rules/{id}`: the remembered rules. For operators.

use axum::{Extension, Json, extract::State};
use serde_json::{Value, json};
use toolpost_model::Principal;

use super::{HttpProblem, RouteParameter, RouteState, operators_only};

pub(super) async fn list(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<Value>, HttpProblem> {
    operators_only(&principal)?;
    Ok(Json(json!({ "rules": shared.host.remembered() })))
}

/// Removes a rule, for calls from now on.
pub(super) async fn forget(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
) -> Result<Json<Value>, HttpProblem> {
    operators_only(&principal)?;
    if shared.host.forget(&id).await? {
        return Ok(Json(json!({ "forgotten": id })));
    }
    let message = format!("there is no remembered rule `{}`", id.escape_debug());
    Err(HttpProblem::not_found("unknown_rule", message).hint("`GET /rules` lists them"))
}
