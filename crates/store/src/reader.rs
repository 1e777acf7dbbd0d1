//! The journal for the CLI: read-only, beside a running host, after one, or on a copied file.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use toolpost_core::{JournalHead, Query, RecordKind, StoredRecord};
use toolpost_model::InvocationId;

use crate::{
    disk,
    journal::{JournalOpenError, JournalReadError, facet, has_facets, open_for_reading, query},
    verify::{self, SealedHead, VerifyOptions, VerifyReport, VerifyStep},
};

/// Why a journal cannot be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] JournalOpenError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] JournalReadError),
    /// The disk did not sync it.
    #[error("journal `{path}` could not be synced")]
    Sync {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The calls of a search in pages, newest first.
pub struct CallPages<'a> {
    connection: &'a Connection,
    query: Query,
    lag: facet::FacetLag,
}

impl CallPages<'_> {
    /// The next page. A page with fewer calls than the query's limit is the last.
    pub fn next_page(&mut self) -> Result<Vec<StoredRecord>, JournalReadError> {
        self.lag.next_page(self.connection, &mut self.query)
    }
}

/// A read-only connection to a journal.
pub struct JournalReader {
    connection: Connection,
}

impl JournalReader {
    /// Opens the journal whether a host runs, has ended, or was killed and left its log behind; also on a read-only
    /// disk, unless the log was left there without its index.
    pub fn open(path: &Path) -> Result<Self, JournalOpenError> {
        Ok(Self {
            connection: open_for_reading(path)?,
        })
    }

    /// Up to `limit` records with numbers over `after`, oldest first.
    pub fn read(&self, after: u64, limit: usize) -> Result<Vec<StoredRecord>, JournalReadError> {
        query::page(&self.connection, after, limit)
    }

    /// All records of a call, oldest first.
    pub fn records_of(
        &self,
        invocation: InvocationId,
    ) -> Result<Vec<StoredRecord>, JournalReadError> {
        query::records_of(&self.connection, invocation)
    }

    /// The newest `count` records, oldest first.
    pub fn tail(&self, count: usize) -> Result<Vec<StoredRecord>, JournalReadError> {
        query::tail(&self.connection, count)
    }

    /// The highest number, 0 in an empty journal.
    pub fn last_seq(&self) -> Result<u64, JournalReadError> {
        query::last_seq(&self.connection)
    }

    /// Checks every record that exists at this moment; `progress` gets the number of checked records and of all.
    ///
    /// Records that were changed, removed from the middle, swapped or inserted are found. A removal of the newest
    /// records is not: a shorter chain is still a whole chain. Only a head hash that was noted elsewhere shows that, so
    /// keep [`VerifyReport::head`] and pass it to [`verify_with`](Self::verify_with).
    ///
    /// Takes some 40 bytes of memory a call while it runs, to see that no call ends twice.
    pub fn verify(
        &self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<VerifyReport, JournalReadError> {
        let records_only = |step| match step {
            VerifyStep::Records(done, total) => progress(done, total),
            VerifyStep::Artifacts(..) => {}
        };
        self.verify_with(&VerifyOptions::default(), records_only)
    }

    /// The same, and also checks that a head that was sealed earlier is still in the chain, and that artifacts match
    /// their records.
    pub fn verify_with(
        &self,
        options: &VerifyOptions,
        progress: impl FnMut(VerifyStep),
    ) -> Result<VerifyReport, JournalReadError> {
        verify::verify(&self.connection, options, progress)
    }

    /// Calls, newest first; each by one record: its end, or its first record if it has no end.
    pub fn find(&self, query: &Query) -> Result<Vec<StoredRecord>, JournalReadError> {
        if !has_facets(&self.connection)? {
            return Err(JournalReadError::OlderFormat);
        }
        facet::find_all(&self.connection, query)
    }

    /// The same in pages of the query's limit.
    pub fn find_pages(&self, query: Query) -> Result<CallPages<'_>, JournalReadError> {
        if !has_facets(&self.connection)? {
            return Err(JournalReadError::OlderFormat);
        }
        let lag = facet::FacetLag::read(&self.connection, &query)?;
        Ok(CallPages {
            connection: &self.connection,
            query,
            lag,
        })
    }

    /// Records of one of the rare kinds (`catalog`, `surface`, `pruned`) with numbers below `before`, newest first.
    pub fn of_kind(
        &self,
        kind: RecordKind,
        before: u64,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, JournalReadError> {
        query::of_kind(&self.connection, kind, before, limit)
    }

    /// The two ends of the journal.
    pub fn head(&self) -> Result<JournalHead, JournalReadError> {
        query::head(&self.connection)
    }

    /// Syncs the journal and returns its head, so that a power cut cannot remove it. Works beside a host; the host's
    /// log may hold records that were committed and not synced.
    pub fn seal(path: &Path) -> Result<SealedHead, SealError> {
        let reader = Self::open(path)?;
        let JournalHead { seq, hash, .. } = reader.head()?;
        // Closed first: to open and close the file while SQLite has it open would drop SQLite's locks.
        drop(reader);
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let synced = disk::sync(Path::new(&log)).and_then(|()| disk::sync(path));
        synced.map_err(|source| SealError::Sync {
            path: path.to_path_buf(),
            source,
        })?;
        Ok(SealedHead {
            seq: Some(seq),
            hash,
        })
    }
}
