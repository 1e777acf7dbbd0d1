//! The tasks in memory, and their creation from messages or records.

mod beginning;
mod restoring;
mod shelf;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use toolpost_a2a::wire::{A2aRefusal, ListParams};
use toolpost_core::{CallOnRecord, Query};
use toolpost_model::{InvocationId, Principal, PrincipalRole, SessionId};

use super::{A2aServerFace, asked::invalid, follow, journal_trouble, task::A2aTask};

pub(super) use beginning::TaskCallMessage;
pub(super) use shelf::TaskShelf;

/// The face name in the records of these calls.
pub(super) const FACE: &str = "a2a";
/// The most recent calls of a caller that a list examines.
const LOOKED_THROUGH: usize = 1_000;
/// The most records that a list reads for them, nested calls included.
const MOST_RECORDS: usize = 10_000;
const AT_A_TIME: usize = 1_000;

pub(super) fn session_of(principal: &Principal, context_id: &str) -> SessionId {
    SessionId::new(format!("{}{context_id}", sessions_of(principal)))
}

fn sessions_of(principal: &Principal) -> String {
    format!("{FACE}:{}:", principal.name)
}

pub(super) fn context_of(session: &SessionId, principal: &Principal) -> Option<String> {
    session
        .as_str()
        .strip_prefix(&sessions_of(principal))
        .map(str::to_owned)
}

fn may_see(owner: &Principal, viewer: &Principal) -> bool {
    owner == viewer || viewer.role == PrincipalRole::Operator
}

/// Finds a task by its id, in memory or on record. `None` also for tasks that the caller may not see.
pub(super) async fn find(
    face: &Arc<A2aServerFace>,
    id: &str,
    viewer: &Principal,
) -> Result<Option<Arc<A2aTask>>, A2aRefusal> {
    // A task whose calls are still being recorded is awaited, because a part of it would look like a whole task.
    if let Some(beginning) = face.tasks.still_beginning(id) {
        beginning.outcome().await;
    }
    known(face, id, viewer).await
}

/// Finds a task of which no calls are being recorded.
async fn known(
    face: &Arc<A2aServerFace>,
    id: &str,
    viewer: &Principal,
) -> Result<Option<Arc<A2aTask>>, A2aRefusal> {
    if let Some(task) = face.tasks.get(id) {
        return Ok(Some(task).filter(|task| may_see(&task.owner, viewer)));
    }
    // The host makes all task ids, so any other id is unknown without a search.
    if id.parse::<InvocationId>().is_err() {
        return Ok(None);
    }
    let query = Query {
        correlation: Some(id.to_owned()),
        ..Query::newest(AT_A_TIME)
    };
    let calls = calls_of(face, query, |_| true, viewer).await?;
    let Some(task) = calls
        .into_iter()
        .find(|(of, _)| of == id)
        .and_then(|(_, calls)| restoring::task(calls))
    else {
        return Ok(None);
    };
    follow::open_questions(face, &task).await;
    let (task, is_new) = face.tasks.keep(task);
    if is_new {
        follow::all(face, &task, Vec::new());
    }
    Ok(Some(task))
}

/// The caller's own tasks that match a list request, newest first.
pub(super) async fn list(
    face: &Arc<A2aServerFace>,
    viewer: &Principal,
    wanted: &ListParams,
) -> Result<Vec<Arc<A2aTask>>, A2aRefusal> {
    let mut query = Query {
        principal: Some(viewer.name.to_string()),
        ..Query::newest(AT_A_TIME)
    };
    query.session = wanted
        .context_id
        .as_ref()
        .map(|context| session_of(viewer, context));
    let since = match &wanted.status_timestamp_after {
        None => None,
        Some(text) => {
            let bad =
                |_| invalid("`statusTimestampAfter` is not a time such as `2026-01-02T03:04:05Z`");
            Some(text.parse::<Timestamp>().map_err(bad)?)
        }
    };
    let prefix = sessions_of(viewer);
    let calls = calls_of(
        face,
        query,
        |session| session.as_str().starts_with(&prefix),
        viewer,
    )
    .await?;
    let mut found = Vec::new();
    for (id, calls) in calls {
        let task = match face.tasks.get(&id) {
            Some(task) => Some(task),
            // Not kept in memory: a list of old tasks would otherwise evict the latest ones.
            None if restoring::is_whole(&calls) => restoring::task(calls),
            None => find(face, &id, viewer).await?,
        };
        found.extend(task.filter(|task| {
            task.owner == *viewer
                && wanted.status.is_none_or(|state| task.task_state() == state)
                && since.is_none_or(|since| task.changed_at() >= since)
        }));
    }
    Ok(found)
}

/// The newest calls that a query finds, each with the id of its task.
async fn calls_of(
    face: &A2aServerFace,
    mut query: Query,
    in_session: impl Fn(&SessionId) -> bool,
    viewer: &Principal,
) -> Result<BTreeMap<String, Vec<CallOnRecord>>, A2aRefusal> {
    let mut calls: BTreeMap<String, Vec<CallOnRecord>> = BTreeMap::new();
    let mut seen = 0;
    let mut taken = 0;
    while seen < MOST_RECORDS && taken < LOOKED_THROUGH {
        let page = face
            .host
            .find_calls(query.clone())
            .await
            .map_err(|error| journal_trouble(&error))?;
        seen += page.len();
        query.before = page.last().map(|found| found.seq);
        let is_last = page.len() < query.limit;
        for found in page
            .into_iter()
            .filter(|found| in_session(&found.session_id))
        {
            let read = face.host.recorded_call(found.invocation_id, viewer).await;
            let Some(call) = read.map_err(|error| journal_trouble(&error))? else {
                continue;
            };
            // Callers of other faces choose their correlation ids themselves. Nested calls belong to their parent call.
            if call.face != FACE || call.parent.is_some() {
                continue;
            }
            if let Some(task) = call.correlation_id.clone() {
                taken += 1;
                calls.entry(task).or_default().push(call);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(calls)
}
