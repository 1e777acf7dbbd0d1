//! Layer 9: the journal port, the chain that makes edits show, and the journal in memory.
//!
//! `call.rs` appends; recovery, `GET /invocations` and the CLI read. A record is redacted and serialised
//! before it comes here, so no adapter ever holds a secret or knows a call's shape.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolpost_model::{BoxFuture, InvocationId, RequestId, SessionId};

/// What a record tells.
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
    /// A call waits for a person's answer.
    Asked,
    /// A person answered. May stand behind the end of the call that asked: its caller had stopped waiting.
    Decided,
    /// A call that may have a side effect begins to run.
    Started,
    /// A call ended.
    Ended,
    /// What can be called, where it changed: declarations that are new or no longer what they were.
    Catalog,
    /// Which tools a kind of session sees, before the first call that was decided by it.
    Surface,
    /// Older records were removed; names the last of them, so that the chain still holds.
    Pruned,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
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
        Self::Pruned,
    ];

    /// The word in the database and on the screen.
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
            Self::Pruned => "pruned",
        }
    }

    /// The reverse of [`as_str`](Self::as_str).
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How much a record must survive before its append resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// The death of the process.
    Committed,
    /// The loss of power.
    Synced,
}

/// The caller's own name for a request, and a digest of what it asked: a repeat gets the first answer.
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
    /// What it tells.
    pub kind: RecordKind,
    /// When.
    pub at: Timestamp,
    /// The call, where it tells of one.
    pub invocation_id: Option<InvocationId>,
    /// The session, where it tells of one.
    pub session_id: Option<SessionId>,
    /// Present on the first record of a call that came with a request id.
    pub request: Option<RequestKey>,
    /// A JSON object.
    pub body: String,
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

/// Why the journal cannot do its work.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk or the journal's own limit is full.
    #[error("the journal is full: {0}")]
    Full(String),
    /// The storage failed.
    #[error("the journal cannot be used: {0}")]
    Broken(String),
    /// One record is beyond what a row can hold. The journal itself is well.
    #[error("a record of {size} bytes is longer than the {limit} the journal takes")]
    TooLong {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The host is going away.
    #[error("the journal is closed")]
    Closed,
}

/// Where records go. Append-only.
pub trait Journal: Send + Sync + 'static {
    /// Resolves with the record's number once it is as durable as `strength` demands.
    fn append(&self, record: Record, strength: Strength) -> BoxFuture<'_, Result<u64, JournalError>>;

    /// All records of a call, oldest first.
    fn records_of(&self, invocation: InvocationId) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>>;

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
    fn read(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>>;
}

/// The hash of a record's place: the previous hash and every field of the record, each with its length in
/// front so that no two records can share a text.
pub fn chain(previous: &[u8; 32], seq: u64, record: &Record) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // A length that no field has stands for an absent one, so that empty and absent differ.
    let mut field = |bytes: Option<&[u8]>| {
        hasher.update(bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hasher.update(bytes.unwrap_or_default());
    };
    field(Some(previous));
    field(Some(&seq.to_le_bytes()));
    field(Some(record.kind.as_str().as_bytes()));
    field(Some(&record.at.as_microsecond().to_le_bytes()));
    field(record.invocation_id.as_ref().map(|id| &id.as_bytes()[..]));
    field(record.session_id.as_ref().map(|id| id.as_str().as_bytes()));
    field(record.request.as_ref().map(|request| request.id.as_str().as_bytes()));
    field(record.request.as_ref().map(|request| &request.digest[..]));
    field(Some(record.body.as_bytes()));
    hasher.finalize().into()
}

/// The hash before the first record.
pub const GENESIS: [u8; 32] = [0; 32];

/// The journal in memory: for embedders that want no record, and for tests. Passes the same suite as the
/// one on disk; only what dies with the process differs.
#[derive(Default)]
pub struct MemoryJournal {
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    all: Vec<StoredRecord>,
    by_invocation: HashMap<InvocationId, Vec<usize>>,
    by_request: HashMap<(SessionId, RequestId), usize>,
}

impl MemoryJournal {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record keeps microseconds, so that what is read back equals what was written.
fn to_microseconds(record: &mut Record) {
    record.at = Timestamp::from_microsecond(record.at.as_microsecond()).unwrap_or(record.at);
}

impl Journal for MemoryJournal {
    fn append(&self, mut record: Record, _: Strength) -> BoxFuture<'_, Result<u64, JournalError>> {
        to_microseconds(&mut record);
        let mut rows = self.rows();
        let place = rows.all.len();
        let seq = place as u64 + 1;
        let previous = rows.all.last().map_or(GENESIS, |row| row.hash);
        if let Some(id) = record.invocation_id {
            rows.by_invocation.entry(id).or_default().push(place);
        }
        if let (Some(session), Some(request)) = (&record.session_id, &record.request) {
            rows.by_request.insert((session.clone(), request.id.clone()), place);
        }
        let hash = chain(&previous, seq, &record);
        rows.all.push(StoredRecord { seq, record, hash });
        Box::pin(std::future::ready(Ok(seq)))
    }

    fn records_of(&self, invocation: InvocationId) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        let rows = self.rows();
        let places = rows.by_invocation.get(&invocation).map_or(&[][..], Vec::as_slice);
        let found = places.iter().map(|&place| rows.all[place].clone()).collect();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn find_request<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        let rows = self.rows();
        let place = rows.by_request.get(&(session.clone(), request.clone()));
        let found = place.map(|&place| rows.all[place].clone());
        Box::pin(std::future::ready(Ok(found)))
    }

    fn find_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        let rows = self.rows();
        let tells_of_it = |row: &&StoredRecord| {
            matches!(row.record.kind, RecordKind::SessionOpened | RecordKind::SessionClosed)
                && row.record.session_id.as_ref() == Some(session)
        };
        let found = rows.all.iter().rev().find(tells_of_it).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn last_start(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        let rows = self.rows();
        let found = rows.all.iter().rev().find(|row| row.record.kind == RecordKind::HostStarted);
        let seq = found.map_or(0, |row| row.seq);
        Box::pin(std::future::ready(Ok(seq)))
    }

    fn read(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        let rows = self.rows();
        let first = usize::try_from(after).unwrap_or(usize::MAX);
        let found = rows.all.iter().skip(first).take(limit).cloned().collect();
        Box::pin(std::future::ready(Ok(found)))
    }
}
