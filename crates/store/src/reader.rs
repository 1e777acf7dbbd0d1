//! The journal as the CLI sees it: read-only, beside a running host, after one, or on a copied file.

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
    /// The disk did not take it.
    #[error("journal `{path}` could not be synced")]
    Sync {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Calls in pages, newest first.
pub struct CallPages<'a> {
    connection: &'a Connection,
    query: Query,
    lag: facet::FacetLag,
}

impl CallPages<'_> {
    /// The next ones. Fewer than the query's limit are the last.
    pub fn next_page(&mut self) -> Result<Vec<StoredRecord>, JournalReadError> {
        self.lag.next_page(self.connection, &mut self.query)
    }
}

/// A look at a journal that cannot change it.
pub struct JournalReader {
    connection: Connection,
}

impl JournalReader {
    /// Opens the journal whether a host runs, has ended, or was killed and left its log behind; also on a
    /// disk that cannot be written, unless the log was left there without its index.
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

    /// Checks every record there is at this moment; `progress` hears how many of how many are done.
    ///
    /// What was changed, removed from the middle, swapped or inserted shows. What was cut off the end does
    /// not: a shorter chain is a whole chain. Only a head hash that was written down elsewhere shows that,
    /// so keep [`VerifyReport::head`] and give it to [`verify_with`](Self::verify_with).
    ///
    /// Remembers some 40 bytes a call while it runs, to see that no call ends twice.
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

    /// The same, and also whether a head that was sealed earlier is still in the chain, and whether the kept results
    /// are what the records say.
    pub fn verify_with(
        &self,
        options: &VerifyOptions,
        progress: impl FnMut(VerifyStep),
    ) -> Result<VerifyReport, JournalReadError> {
        verify::verify(&self.connection, options, progress)
    }

    /// Calls, newest first; each by one record: its end, or its first one where it has not ended.
    pub fn find(&self, query: &Query) -> Result<Vec<StoredRecord>, JournalReadError> {
        if !has_facets(&self.connection)? {
            return Err(JournalReadError::OlderFormat);
        }
        facet::find_all(&self.connection, query)
    }

    /// The same for many, in pages of the query's limit.
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

    /// Where the journal ends and begins.
    pub fn head(&self) -> Result<JournalHead, JournalReadError> {
        query::head(&self.connection)
    }

    /// The head, with all that is before it on the disk: a power cut does not take it back. Works beside a host,
    /// whose log may hold records that were only committed.
    pub fn seal(path: &Path) -> Result<SealedHead, SealError> {
        let reader = Self::open(path)?;
        let JournalHead { seq, hash, .. } = reader.head()?;
        // Closed first: to open and close the file while SQLite has it would drop SQLite's locks.
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
