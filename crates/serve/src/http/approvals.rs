//! `GET /approvals`, `GET` and `POST /approvals/{id}`: the open questions and their answers. For operators: an agent
//! never decides about a call.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
};

use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Interval};
use tokio_util::sync::CancellationToken;
use toolpost_core::{ApprovalError, Host, QuestionClosure};
use toolpost_model::{InvocationId, PermissionRequest, Principal, Verdict};

use super::{
    EVENTS, HttpProblem, RouteParameter, RouteState, STILL_HERE, accepts_events, event_stream,
    keep_alive, operators_only, read_body,
};

/// The open questions; as a stream, also their changes from now on.
pub(super) async fn list(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    operators_only(&principal)?;
    if !accepts_events(&headers) {
        return Ok(Json(json!({ "approvals": shared.host.approvals() })).into_response());
    }
    let feed = ApprovalFeed::open(shared.host.clone(), shared.closing);
    Ok(event_stream(EVENTS, "no-store", feed.frames()))
}

pub(super) async fn show(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
) -> Result<Json<PermissionRequest>, HttpProblem> {
    operators_only(&principal)?;
    let id = parse(&id)?;
    match shared.host.approval(id) {
        Some(question) => Ok(Json(question)),
        None => {
            let closed = shared.host.closed_approval(id).map(ApprovalError::from);
            Err(closed.unwrap_or(ApprovalError::Unknown(id)).into())
        }
    }
}

/// Answers a question. The decision consists of the body alone.
pub(super) async fn answer(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
    body: Body,
) -> Result<Json<Value>, HttpProblem> {
    operators_only(&principal)?;
    let id = parse(&id)?;
    let body = read_body(body, shared.limits.body).await?;
    let verdict: Verdict = serde_json::from_slice(&body).map_err(|error| {
        HttpProblem::bad_request("bad_verdict", format!("the answer cannot be read: {error}"))
            .hint(r#"send {"decision":"allow"} or {"decision":"deny","feedback":"why"}"#)
    })?;
    let decided = shared.host.decide(id, verdict, &principal).await?;
    Ok(Json(json!({ "decided": decided })))
}

fn parse(id: &str) -> Result<InvocationId, HttpProblem> {
    let bad = |_| {
        HttpProblem::bad_request(
            "bad_id",
            format!("`{}` is not the id of a question", id.escape_debug()),
        )
    };
    id.parse().map_err(bad)
}

/// The open questions and their changes as events: `asked` with the whole question, then `decided` or `withdrawn`.
struct ApprovalFeed {
    host: Host,
    changes: watch::Receiver<u64>,
    /// The questions that were sent, with the number of waiting calls at that time.
    known: BTreeMap<InvocationId, usize>,
    untold: VecDeque<Bytes>,
    alive: Interval,
    closing: CancellationToken,
}

impl ApprovalFeed {
    fn open(host: Host, closing: CancellationToken) -> Self {
        let mut changes = host.approval_changes();
        // The open questions are sent first.
        changes.mark_changed();
        Self {
            host,
            changes,
            known: BTreeMap::new(),
            untold: VecDeque::new(),
            alive: keep_alive(),
            closing,
        }
    }

    fn frames(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures_util::stream::unfold(self, |mut feed| async move {
            loop {
                if let Some(frame) = feed.untold.pop_front() {
                    return Some((Ok(frame), feed));
                }
                tokio::select! {
                    biased;
                    () = feed.closing.cancelled() => return None,
                    changed = feed.changes.changed() => {
                        changed.ok()?;
                        feed.look();
                    }
                    _ = feed.alive.tick() => return Some((Ok(STILL_HERE), feed)),
                }
            }
        })
    }

    /// Compares the open questions with those that were sent.
    fn look(&mut self) {
        let open = self.host.approvals();
        for question in &open {
            if self.known.insert(question.ask_id, question.waiting) != Some(question.waiting) {
                self.untold.push_back(frame("asked", question));
            }
        }
        let is_open = |id: &InvocationId| open.iter().any(|question| question.ask_id == *id);
        let gone: Vec<InvocationId> = self
            .known
            .keys()
            .copied()
            .filter(|id| !is_open(id))
            .collect();
        for ask_id in gone {
            self.known.remove(&ask_id);
            self.untold
                .push_back(match self.host.closed_approval(ask_id) {
                    Some(QuestionClosure::Decided { by, at, allowed }) => {
                        let decision = if allowed { "allow" } else { "deny" };
                        frame(
                            "decided",
                            &json!({ "ask_id": ask_id, "decision": decision, "by": by, "at": at }),
                        )
                    }
                    Some(QuestionClosure::Expired) => frame(
                        "withdrawn",
                        &json!({ "ask_id": ask_id, "reason": "expired" }),
                    ),
                    Some(QuestionClosure::Withdrawn) | None => frame(
                        "withdrawn",
                        &json!({ "ask_id": ask_id, "reason": "canceled" }),
                    ),
                });
        }
    }
}

fn frame(event: &str, data: &impl serde::Serialize) -> Bytes {
    // JSON never holds a raw line break, so one data line is enough.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}
