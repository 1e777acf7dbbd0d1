//! The journal on SQLite: one writer thread that commits for all callers, with reads beside it.
//!
//! Writes and reads never wait for one another (write-ahead log). Point lookups run on the caller's thread: each takes
//! some ten microseconds, less than a switch to another thread would. [`Journal::read`] may take any number of rows, so
//! it goes to a thread of its own. That thread belongs to the journal and not to a runtime's blocking pool: the port
//! requires no runtime, and one long read cannot exhaust the pool.

pub(crate) mod anchor;
mod committer;
pub(crate) mod facet;
pub(crate) mod query;
mod reads;
mod row;
mod schema;
mod thread;
mod writer;

use std::{
    io,
    path::{Path, PathBuf},
};

use toolpost_core::{
    AppendStrength, Journal, JournalError, JournalHead, PrunedRange, Query, Record, RetentionCut,
    SessionPage, StoredRecord,
};
use toolpost_model::{BoxFuture, InvocationId, RequestId, SessionId};

pub use row::JournalReadError;
pub(crate) use row::{decode, stored_hash};
pub(crate) use schema::{has_facets, open_for_reading, schema_differences};

use reads::{LongScans, PointLookups};
use writer::JournalWriter;

/// The options of the journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// The limit of the database file (`limits.journal`). The log beside it comes on top: some 16 MiB as a rule, more
    /// while a reader holds an old state.
    pub max_bytes: u64,
}

/// Why a file cannot be opened as a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalOpenError {
    /// The file is missing.
    #[error("there is no journal at `{path}`")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to another program and is left unchanged.
    #[error(
        "`{path}` is not a Toolpost journal\nhint: move it away or choose another data directory"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later Toolpost.
    #[error(
        "journal `{path}` has format {found}, and this Toolpost supports formats up to {known}\n\
         hint: use the Toolpost that wrote it, or a later one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The latest format known here.
        known: i64,
    },
    /// The last record cannot be read, so the chain cannot continue.
    #[error(
        "the last record of journal `{path}` is damaged\nhint: run `toolpost journal verify` for details"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The limit has no room for an empty journal.
    #[error(
        "there is no room for journal `{path}`, which can have {max_bytes} bytes\n\
         hint: raise `limits.journal` or make room on its disk"
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Its limit.
        max_bytes: u64,
    },
    /// SQLite could not enable its write-ahead log.
    #[error(
        "the file system of `{path}` does not support a journal\nhint: put the data directory on a local disk"
    )]
    NoLog {
        /// The file.
        path: PathBuf,
    },
    /// Records are in a log that SQLite can read only where it may write beside it.
    #[error(
        "journal `{path}` has an unfinished log, and its folder is read-only\n\
         hint: copy it and `{path}-wal` to a writable folder, and read it there"
    )]
    UnfinishedLog {
        /// The file.
        path: PathBuf,
    },
    /// SQLite refused an operation.
    #[error("cannot open journal `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// The system refused an operation.
    #[error("cannot open journal `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The journal on disk. Dropping it writes the queued records and waits for that, some tens of milliseconds as a rule.
///
/// Only one may be open for a file, which the lock of [`DataDir`](crate::DataDir) ensures. If there are two
/// nevertheless, the slower one's appends fail, because the number of its record is taken; the chain stays whole.
pub struct SqliteJournal {
    // The fields drop in this order. The writer must be last: the last connection removes the log, and a read-only
    // connection could not.
    lookups: PointLookups,
    scans: LongScans,
    writer: JournalWriter,
    max_bytes: u64,
}

impl SqliteJournal {
    /// Opens the journal, makes it if it is missing, and migrates an older format.
    pub fn open(path: &Path, options: JournalOptions) -> Result<Self, JournalOpenError> {
        let connection = schema::open_for_writing(path, options.max_bytes)?;
        let writer = JournalWriter::start(connection, path, options.max_bytes)?;
        let lookups = PointLookups::new(open_for_reading(path)?);
        let scans =
            LongScans::start(open_for_reading(path)?).map_err(|source| JournalOpenError::Io {
                path: path.to_path_buf(),
                source,
            })?;
        Ok(Self {
            lookups,
            scans,
            writer,
            max_bytes: options.max_bytes,
        })
    }
}

impl Journal for SqliteJournal {
    fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        self.writer.append(record, strength)
    }

    fn records_of(
        &self,
        invocation: InvocationId,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        self.lookups
            .answer(|connection| query::records_of(connection, invocation))
    }

    fn find_request<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        self.lookups
            .answer(|connection| query::newest_of_request(connection, session, request))
    }

    fn find_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        self.lookups
            .answer(|connection| query::newest_of_session(connection, session))
    }

    fn byte_limit(&self) -> Option<u64> {
        Some(self.max_bytes)
    }

    fn last_start(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        self.lookups.answer(query::last_start)
    }

    fn read(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        self.scans
            .run(move |connection| query::page(connection, after, limit))
    }

    fn of_session<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<SessionPage, JournalError>> {
        let session = session.clone();
        self.scans
            .run(move |connection| query::session_page(connection, &session, after, limit))
    }

    fn find(&self, query: Query) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        Box::pin(async move {
            match self.writer.write_facets().await {
                Ok(()) => {
                    self.scans
                        .run(move |connection| facet::find(connection, &query))
                        .await
                }
                Err(JournalError::Closed) => Err(JournalError::Closed),
                // If the facets cannot be written, as in a full journal, the search reads the missing ones from the
                // records.
                Err(
                    JournalError::Full(_) | JournalError::Broken(_) | JournalError::TooLong { .. },
                ) => {
                    self.scans
                        .run(move |connection| facet::find_all(connection, &query))
                        .await
                }
            }
        })
    }

    fn head(&self) -> BoxFuture<'_, Result<JournalHead, JournalError>> {
        self.lookups.answer(query::head)
    }

    fn prune(&self, cut: RetentionCut) -> BoxFuture<'_, Result<Option<PrunedRange>, JournalError>> {
        self.writer.prune(cut)
    }
}
