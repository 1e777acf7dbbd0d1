//! Layer 4: requests with an id of their caller's own. A repeat gets the first answer, and another request under the same id
//! is a conflict. The session knows the calls that run; the record knows the others, so a repeat finds its answer after a
//! restart, too.

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

/// SHA-256 of tool and arguments. Blanks between the arguments do not count.
pub fn request_digest(tool: &str, input: &ModelInput) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update((tool.len() as u64).to_le_bytes());
    hasher.update(tool);
    hasher.update(input.compact().as_bytes());
    hasher.finalize().into()
}

/// The requests of a session that came with an id of the caller's own.
pub(crate) struct SessionRequests(Mutex<RequestTable>);

/// What a session knows of requests that came with an id of the caller's own.
struct RequestTable {
    under_way: HashMap<RequestId, ClaimedRequest>,
    /// Hashes of all of them, where the session is young enough to know all: a new id need not be looked for
    /// in the journal. `None`: there may be others on record.
    seen: Option<HashSet<u64>>,
}

/// A session that saw more requests than this looks new ones up in the journal like everybody else.
const MAX_SEEN: usize = 1 << 16;

/// What taking a request id came to.
pub(crate) enum RequestIdStatus {
    /// It is taken, and nobody used it before.
    New,
    /// It is taken; the record may know of an earlier use.
    MaybeKnown,
    /// A call has it.
    By(ClaimedRequest),
}

/// A call under way that a repeat of its request can wait for.
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

    /// Takes the request id for a new call, or tells of the call that has it.
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

    /// The call that runs under a request id.
    pub(crate) fn under_way(&self, id: &RequestId) -> Option<ClaimedRequest> {
        self.0.lock().under_way.get(id).cloned()
    }
}

/// A request id taken for a call that has not begun.
pub(crate) struct RequestIdClaim {
    pub(crate) session: Arc<Session>,
    pub(crate) id: Option<RequestId>,
}

impl RequestIdClaim {
    /// The call has begun and gives the id back itself.
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
    /// The tool as it was called.
    pub tool: String,
    /// The call, or its answer.
    pub call: CallHandle,
}

/// What the record tells of a request id.
pub(crate) enum RequestIdLookup {
    First,
    Of(Arc<RecordedResult>),
    Conflict,
    Lost,
    Parked(InvocationId),
}

impl HostInner {
    /// A request id that is a secret, or holds one, is known by its hash: the same id still finds the same call.
    pub(crate) fn recordable(&self, id: RequestId) -> RequestId {
        match self.record.redactor.text(id.as_str()) {
            Cow::Borrowed(_) => id,
            Cow::Owned(_) => redaction::hidden(&id),
        }
    }

    /// The first record of a request. What only the call knew for a secret was hidden when it was written.
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

    /// The answer of an earlier call with this request id, where the record has one.
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
        // The answer to its question may stand behind a call's end, and is not its end.
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
    /// What the record tells of a request under an id that is no longer new.
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
            // The host did not take it that time, so nothing stands in the way of trying again.
            Some(answer) if answer.result().outcome == Outcome::Rejected => {
                Ok(RequestIdLookup::First)
            }
            Some(answer) => Ok(RequestIdLookup::Of(answer)),
            // On record without an end and not under way: the end could not be written, unless it waits for an
            // answer that this host cannot ask for.
            None => Ok(self
                .inner
                .parked(&row)
                .await?
                .map_or(RequestIdLookup::Lost, RequestIdLookup::Parked)),
        }
    }

    /// An earlier call of a session by its request id: under way, or as the record has it.
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
            // On record without an end: it began between the two looks, or its end could not be written.
            _ => Ok(running()),
        }
    }

    /// Tells the call that runs under a request id to stop. `false`: there is none.
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
