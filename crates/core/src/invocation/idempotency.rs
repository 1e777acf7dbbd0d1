//! Layer 4: request ids of callers. A repeat gets the first answer; a different request under the same id is a
//! conflict.
//!
//! The session lists the calls that run, and the journal holds the others, so a repeat finds its answer after a restart
//! as well. Answers are not cached in memory: a cache would be a second truth beside the journal and would not survive
//! a restart.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use toolpost_model::{InvocationId, ModelInput, Outcome, RequestId};

use super::{CallHandle, CancelReason, LiveCall, RecordedResult};
use crate::{
    host::{Host, HostInner},
    record::{
        body::CallRecordBody,
        journal::{JournalError, RecordKind, RequestKey, StoredRecord},
        redaction,
    },
    session::{Session, SessionOrigin},
};

/// The SHA-256 of the tool and the arguments. Whitespace between the arguments does not count.
pub fn request_digest(tool: &str, input: &ModelInput) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update((tool.len() as u64).to_le_bytes());
    hasher.update(tool);
    hasher.update(input.compact().as_bytes());
    hasher.finalize().into()
}

pub(crate) struct SessionRequests(Mutex<RequestTable>);

/// The request ids of a session.
struct RequestTable {
    under_way: HashMap<RequestId, ClaimedRequest>,
    /// Hashes of all request ids, if the session was opened in this host's life. A new id then needs no search in the
    /// journal. `None` if the journal may have others.
    seen: Option<HashSet<u64>>,
}

/// The limit of remembered hashes. Beyond it, new ids are looked up in the journal.
const MAX_SEEN: usize = 1 << 16;

/// The result of claiming a request id.
pub(crate) enum RequestIdStatus {
    /// Claimed, and never used before.
    New,
    /// Claimed. The journal may have an earlier use.
    MaybeKnown,
    /// A running call has the id.
    By(ClaimedRequest),
}

/// A call under way that repeats of its request can wait for.
#[derive(Clone)]
pub(crate) struct ClaimedRequest {
    pub(crate) digest: [u8; 32],
    pub(crate) live: Arc<LiveCall>,
    pub(crate) answer: watch::Receiver<Option<Arc<RecordedResult>>>,
}

impl SessionRequests {
    pub(crate) fn of(origin: SessionOrigin) -> Self {
        let seen = (origin == SessionOrigin::Opened).then(HashSet::new);
        Self(Mutex::new(RequestTable {
            under_way: HashMap::new(),
            seen,
        }))
    }

    /// Claims the request id for a new call, or returns the call that has it.
    pub(crate) fn claim(&self, id: &RequestId, call: ClaimedRequest) -> RequestIdStatus {
        let requests = &mut *self.0.lock();
        if let Some(earlier) = requests.under_way.get(id) {
            return RequestIdStatus::By(earlier.clone());
        }
        requests.under_way.insert(id.clone(), call);
        let Some(seen) = &mut requests.seen else {
            return RequestIdStatus::MaybeKnown;
        };
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let is_new = seen.insert(hasher.finish());
        if seen.len() > MAX_SEEN {
            requests.seen = None;
        }
        if is_new {
            RequestIdStatus::New
        } else {
            RequestIdStatus::MaybeKnown
        }
    }

    pub(crate) fn release(&self, id: &RequestId) {
        self.0.lock().under_way.remove(id);
    }

    /// The running call with a request id.
    pub(crate) fn under_way(&self, id: &RequestId) -> Option<ClaimedRequest> {
        self.0.lock().under_way.get(id).cloned()
    }
}

/// A request id that is claimed for a call that has not begun. Dropping the claim releases the id.
pub(crate) struct RequestIdClaim {
    pub(crate) session: Arc<Session>,
    pub(crate) id: Option<RequestId>,
}

impl RequestIdClaim {
    /// Leaves the release of the id to the call, which has begun.
    pub(crate) fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for RequestIdClaim {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.session.requests.release(id);
        }
    }
}

/// An earlier call, found by its request id.
pub struct EarlierCall {
    /// The tool name of the request.
    pub tool: String,
    /// The call or its answer.
    pub call: CallHandle,
}

/// The result of looking up a request id in the journal.
pub(crate) enum RequestIdLookup {
    First,
    Of(Arc<RecordedResult>),
    Conflict,
    Lost,
    Parked(InvocationId),
}

impl HostInner {
    /// Replaces a request id that holds a secret by its hash. The same id then still finds the same call.
    pub(crate) fn recordable(&self, id: RequestId) -> RequestId {
        match self.record.redactor.text(id.as_str()) {
            Cow::Borrowed(_) => id,
            Cow::Owned(_) => redaction::hidden(&id),
        }
    }

    /// The first record of a request. A request id with a secret that only the call knew was replaced by its hash at
    /// writing.
    async fn first_record(
        &self,
        session: &Session,
        id: &RequestId,
    ) -> Result<Option<StoredRecord>, JournalError> {
        match self.record.journal.find_request(session.id(), id).await? {
            Some(row) => Ok(Some(row)),
            None => {
                self.record
                    .journal
                    .find_request(session.id(), &redaction::hidden(id))
                    .await
            }
        }
    }

    /// The recorded answer of an earlier call, if there is one.
    async fn recorded(
        &self,
        row: &StoredRecord,
    ) -> Result<Option<Arc<RecordedResult>>, JournalError> {
        let Some(id) = row.record.invocation_id else {
            return Ok(None);
        };
        Ok(self
            .recorded_end(id)
            .await?
            .and_then(|way| way.result)
            .and_then(|result| RecordedResult::recorded(result.text())))
    }

    async fn recorded_end(
        &self,
        id: InvocationId,
    ) -> Result<Option<CallRecordBody<'static>>, JournalError> {
        let rows = self.record.journal.records_of(id).await?;
        // A record about an answer can follow the end of a call, and is not the end.
        let of_call = rows
            .iter()
            .rev()
            .filter(|row| row.record.kind != RecordKind::Decided);
        Ok(of_call
            .into_iter()
            .find_map(|row| row.record.read_body().ok()))
    }
}

impl Host {
    /// Looks up a request id that is not new.
    pub(crate) async fn repeat(
        &self,
        session: &Session,
        key: &RequestKey,
    ) -> Result<RequestIdLookup, JournalError> {
        let Some(row) = self.inner.first_record(session, &key.id).await? else {
            return Ok(RequestIdLookup::First);
        };
        if row
            .record
            .request
            .as_ref()
            .is_none_or(|first| first.digest != key.digest)
        {
            return Ok(RequestIdLookup::Conflict);
        }
        match self.inner.recorded(&row).await? {
            // The host rejected the first request without running it, so the repeat may run.
            Some(answer) if answer.result().outcome == Outcome::Rejected => {
                Ok(RequestIdLookup::First)
            }
            Some(answer) => Ok(RequestIdLookup::Of(answer)),
            // The call is on record without an end and does not run. Either its end could not be recorded, or it waits
            // for an approval that this host cannot ask for.
            None => Ok(self
                .inner
                .parked(&row)
                .await?
                .map_or(RequestIdLookup::Lost, RequestIdLookup::Parked)),
        }
    }

    /// An earlier call of a session by its request id, under way or from the record.
    pub async fn earlier(
        &self,
        session: &Session,
        id: &RequestId,
    ) -> Result<Option<EarlierCall>, JournalError> {
        let id = self.inner.recordable(id.clone());
        let running = || {
            let found = session.requests.under_way(&id)?;
            Some(EarlierCall {
                tool: found.live.tool.clone(),
                call: CallHandle::shared(found.live, found.answer),
            })
        };
        if let Some(found) = running() {
            return Ok(Some(found));
        }
        let Some(row) = self.inner.first_record(session, &id).await? else {
            return Ok(None);
        };
        let recorded = self.inner.recorded(&row).await?;
        let body: Option<CallRecordBody<'_>> = row.record.read_body().ok();
        let call = body.and_then(|body| body.call);
        match (recorded, call) {
            (Some(answer), Some(call)) => Ok(Some(EarlierCall {
                tool: call.tool.into_owned(),
                call: CallHandle::ready(answer),
            })),
            // On record without an end: the call began between the two lookups, or its end could not be recorded.
            _ => Ok(running()),
        }
    }

    /// Cancels the running call with a request id. Returns `false` if there is none.
    pub fn cancel_request(&self, session: &Session, id: &RequestId) -> bool {
        let found = session
            .requests
            .under_way(&self.inner.recordable(id.clone()));
        found
            .inspect(|call| {
                call.live
                    .cancel(CancelReason::Requested, Some(session.principal()));
            })
            .is_some()
    }
}
