//! `GET /invocations/{id}` and `POST /invocations/{id}/cancel`.

use axum::{Extension, Json, extract::State};
use serde_json::{Value, json};
use toolpost_core::InvocationView;
use toolpost_model::{InvocationId, Principal};

use super::{Named, Problem, Shared};

fn parse(id: &str) -> Result<InvocationId, Problem> {
    id.parse().map_err(|_| {
        Problem::bad_request("bad_id", format!("`{}` is not an invocation id", id.escape_debug()))
    })
}

fn unknown(id: InvocationId) -> Problem {
    Problem::not_found("unknown_invocation", format!("no invocation `{id}` is known to this caller"))
}

/// Where a call stands, and its result once it has ended.
pub(super) async fn show(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    Named(id): Named,
) -> Result<Json<InvocationView>, Problem> {
    let id = parse(&id)?;
    shared.host.invocation(id, &principal).await?.map(Json).ok_or_else(|| unknown(id))
}

/// Tells a call to stop. The call's own answer says what came of it.
pub(super) async fn cancel(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    Named(id): Named,
) -> Result<Json<Value>, Problem> {
    let id = parse(&id)?;
    if shared.host.cancel(id, &principal) {
        return Ok(Json(json!({ "invocation_id": id, "cancel": "requested" })));
    }
    match shared.host.invocation(id, &principal).await? {
        Some(_) => Ok(Json(json!({ "invocation_id": id, "cancel": "already_ended" }))),
        None => Err(unknown(id)),
    }
}
