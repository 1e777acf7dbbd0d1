//! The tasks in memory, and the way there: calls that begin, and records of calls that were.

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

/// How calls that came over A2A are marked on record.
pub(super) const FACE: &str = "a2a";
/// How many of a caller's newest calls over A2A a list looks through.
const LOOKED_THROUGH: usize = 1_000;
/// How many records it looks at for them: calls that were made by calls are among those.
const MOST_RECORDS: usize = 10_000;
const AT_A_TIME: usize = 1_000;

/// The session in which everything of one conversation happens.
pub(super) fn session_of(principal: &Principal, context_id: &str) -> SessionId {
    SessionId::new(format!("{}{context_id}", sessions_of(principal)))
}

fn sessions_of(principal: &Principal) -> String {
    format!("{FACE}:{}:", principal.name)
}

/// The conversation that a session is.
pub(super) fn context_of(session: &SessionId, principal: &Principal) -> Option<String> {
    session
        .as_str()
        .strip_prefix(&sessions_of(principal))
        .map(str::to_owned)
}

/// Whether somebody may know of a task.
fn may_see(owner: &Principal, viewer: &Principal) -> bool {
    owner == viewer || viewer.role == PrincipalRole::Operator
}

/// A task by its id, from memory or from the record. `None` also where it is another's.
pub(super) async fn find(
    face: &Arc<A2aServerFace>,
    id: &str,
    viewer: &Principal,
) -> Result<Option<Arc<A2aTask>>, A2aRefusal> {
    // Half of a task is none.
    if let Some(beginning) = face.tasks.still_beginning(id) {
        beginning.outcome().await;
    }
    known(face, id, viewer).await
}

/// The same, for whoever knows that nobody is about to begin it.
async fn known(
    face: &Arc<A2aServerFace>,
    id: &str,
    viewer: &Principal,
) -> Result<Option<Arc<A2aTask>>, A2aRefusal> {
    if let Some(task) = face.tasks.get(id) {
        return Ok(Some(task).filter(|task| may_see(&task.owner, viewer)));
    }
    // Ids are made here; what is not one need not be looked for.
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

/// The caller's own tasks that a list asks for, newest first.
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
            // Not kept: a list of old tasks must not push the last ones out of memory.
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

/// The newest calls of tasks that a query finds, each with its task's id.
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
            // Other faces let their callers choose the mark; and what a call's own calls came to is that call's business.
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
