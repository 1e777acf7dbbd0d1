//! Layer 9: the journal port, and the hash chain that reveals edits.
//!
//! The pipeline appends; recovery, `GET /invocations` and the CLI read. A record is redacted and serialised before it
//! reaches the port, so no adapter ever holds a secret or depends on the shape of a call.

mod memory;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolpost_model::{BoxFuture, InvocationId, RequestId, SessionId};

pub use memory::MemoryJournal;

use super::{
    facets::Facets,
    query::Query,
    retention::{PrunedRange, RetentionCut},
};

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A host began on this journal; every call before it has ended or is named in the body.
    HostStarted,
    /// A session was opened.
    SessionOpened,
    /// A session was closed.
    SessionClosed,
    /// A call was acknowledged before its end.
    Accepted,
    /// A call waits for an approval.
    Asked,
    /// An operator answered. May come after the end of the call that asked, if its caller had stopped waiting.
    Decided,
    /// A call that may have a side effect begins to run.
    Started,
    /// A call ended.
    Ended,
    /// New and changed declarations.
    Catalog,
    /// A surface, before the first call that it decided.
    Surface,
    /// A session discovered deferred tools.
    Discovered,
    /// Older records were removed. Names the last of them, so that the chain still holds.
    Pruned,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::HostStarted,
        Self::SessionOpened,
        Self::SessionClosed,
        Self::Accepted,
        Self::Asked,
        Self::Decided,
        Self::Started,
        Self::Ended,
        Self::Catalog,
        Self::Surface,
        Self::Discovered,
        Self::Pruned,
    ];

    /// The name in the database and on the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostStarted => "host_started",
            Self::SessionOpened => "session_opened",
            Self::SessionClosed => "session_closed",
            Self::Accepted => "accepted",
            Self::Asked => "asked",
            Self::Decided => "decided",
            Self::Started => "started",
            Self::Ended => "ended",
            Self::Catalog => "catalog",
            Self::Surface => "surface",
            Self::Discovered => "discovered",
            Self::Pruned => "pruned",
        }
    }

    /// The reverse of [`as_str`](Self::as_str).
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The failure that a record must survive before its append resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendStrength {
    /// The end of the process.
    Committed,
    /// A power cut.
    Synced,
}

/// The caller's own id of a request, and a digest of the request: a repeat gets the first answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// The caller's id.
    pub id: RequestId,
    /// SHA-256 of tool and arguments.
    pub digest: [u8; 32],
}

/// One row, redacted and serialised.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The kind.
    pub kind: RecordKind,
    /// The time of the record.
    pub at: Timestamp,
    /// Its call.
    pub invocation_id: Option<InvocationId>,
    /// Its session.
    pub session_id: Option<SessionId>,
    /// Present on the first record of a call that came with a request id.
    pub request: Option<RequestKey>,
    /// A JSON object.
    pub body: String,
    /// The facets of a call, on its first record and on its end. Only for appends: they are not part of the chain, and
    /// `None` in records that were read.
    pub facets: Option<Facets>,
}

/// A record in its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// Counts up by one from 1, without holes.
    pub seq: u64,
    /// The record.
    pub record: Record,
    /// [`chain`] of the hash before it and this record.
    pub hash: [u8; 32],
}

/// The two ends of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalHead {
    /// The highest number, 0 in a journal that never had a record.
    pub seq: u64,
    /// The hash of the newest record. A copy elsewhere proves all records up to it.
    pub hash: [u8; 32],
    /// The number of the oldest record; in an empty journal, the next number.
    pub first: u64,
    /// The approximate size of the records.
    pub bytes: u64,
}

/// A page of a session's records.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPage {
    /// The session's records, oldest first.
    pub rows: Vec<StoredRecord>,
    /// The number of the last record that was looked at, for the next page. Unchanged if there is no later record.
    pub up_to: u64,
}

impl SessionPage {
    /// `end` is the last record that was looked at for up to `limit` rows: a full page ends with its last row.
    pub fn of(rows: Vec<StoredRecord>, end: u64, limit: usize) -> Self {
        let is_full = rows.len() >= limit;
        let up_to = rows.last().filter(|_| is_full).map_or(end, |row| row.seq);
        Self { rows, up_to }
    }
}

/// The number of records to look at for one page of a session, in this default implementation.
const SESSION_SPAN: usize = 256;

/// Why the journal cannot append or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk or the journal's own limit is full.
    #[error("the journal is full: {0}")]
    Full(String),
    /// The storage failed.
    #[error("the journal cannot be used: {0}")]
    Broken(String),
    /// The record is larger than a row can be. The journal itself is intact.
    #[error("a record of {size} bytes is over the journal's limit of {limit} bytes")]
    TooLong {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The host is shutting down.
    #[error("the journal is closed")]
    Closed,
}

/// The store of records. It is append-only, except that the oldest records may be removed.
pub trait Journal: Send + Sync + 'static {
    /// Resolves with the record's number once the record is as durable as `strength` demands.
    fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> BoxFuture<'_, Result<u64, JournalError>>;

    /// All records of a call, oldest first.
    fn records_of(
        &self,
        invocation: InvocationId,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>>;

    /// The newest record that carries this request id in this session: the first of the call that came with it.
    fn find_request<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>>;

    /// The newest session record of a session.
    fn find_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>>;

    /// The number of the newest [`RecordKind::HostStarted`] record, 0 where there is none.
    fn last_start(&self) -> BoxFuture<'_, Result<u64, JournalError>>;

    /// Up to `limit` records with numbers over `after`, oldest first.
    fn read(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>>;

    /// Up to `limit` records of a session with numbers over `after`, oldest first. Looks at a bounded part of the
    /// journal and returns how far that reached, so that a session with few records among millions does not block other
    /// readers.
    fn of_session<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<SessionPage, JournalError>> {
        Box::pin(async move {
            let seen = self.read(after, SESSION_SPAN).await?;
            let is_of_session =
                |row: &StoredRecord| row.record.session_id.as_ref() == Some(session);
            let end = seen.last().map_or(after, |row| row.seq);
            let rows: Vec<_> = seen.into_iter().filter(is_of_session).take(limit).collect();
            Ok(SessionPage::of(rows, end, limit))
        })
    }

    /// Calls, newest first; each by one record: its end, or its first record if it has no end.
    fn find(&self, query: Query) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>>;

    /// The two ends of the journal.
    fn head(&self) -> BoxFuture<'_, Result<JournalHead, JournalError>>;

    /// The limit in bytes, as [`head`](Self::head) counts them. Callers share it; without a limit there are no shares.
    fn byte_limit(&self) -> Option<u64> {
        None
    }

    /// Removes the oldest records together with the append of the record that vouches for it, and returns the removed
    /// range; `None` if there was nothing to remove. Other appends wait meanwhile, so large cuts are made in pieces, as
    /// [`prune`](crate::prune) does, which also protects the records that must stay.
    fn prune(&self, cut: RetentionCut) -> BoxFuture<'_, Result<Option<PrunedRange>, JournalError>>;
}

/// The hash of a record: of the previous hash and every field of the record. Each field has its length in front;
/// without it, bytes could move from one field to the next and leave the hash unchanged.
pub fn chain(previous: &[u8; 32], seq: u64, record: &Record) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // A length that no field can have marks an absent field, so that empty and absent differ.
    let mut field = |bytes: Option<&[u8]>| {
        hasher.update(
            bytes
                .map_or(u64::MAX, |bytes| bytes.len() as u64)
                .to_le_bytes(),
        );
        hasher.update(bytes.unwrap_or_default());
    };
    field(Some(previous));
    field(Some(&seq.to_le_bytes()));
    field(Some(record.kind.as_str().as_bytes()));
    field(Some(&record.at.as_microsecond().to_le_bytes()));
    field(record.invocation_id.as_ref().map(|id| &id.as_bytes()[..]));
    field(record.session_id.as_ref().map(|id| id.as_str().as_bytes()));
    field(
        record
            .request
            .as_ref()
            .map(|request| request.id.as_str().as_bytes()),
    );
    field(record.request.as_ref().map(|request| &request.digest[..]));
    field(Some(record.body.as_bytes()));
    hasher.finalize().into()
}

/// The hash before the first record.
pub const GENESIS: [u8; 32] = [0; 32];
