//! The journal as the CLI sees it: read-only, beside a running host, after one, or on a copied file.

use std::path::Path;

use rusqlite::Connection;
use toolpost_core::StoredRecord;
use toolpost_model::InvocationId;

use crate::{
    journal::{OpenError, ReadError, open_for_reading, query},
    verify::{self, VerifyReport},
};

/// A look at a journal that cannot change it.
pub struct JournalReader {
    connection: Connection,
}

impl JournalReader {
    /// Opens the journal whether a host runs, has ended, or was killed and left its log behind; also on a
    /// disk that cannot be written, unless the log was left there without its index.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { connection: open_for_reading(path)? })
    }

    /// Up to `limit` records with numbers over `after`, oldest first.
    pub fn read(&self, after: u64, limit: usize) -> Result<Vec<StoredRecord>, ReadError> {
        query::page(&self.connection, after, limit)
    }

    /// All records of a call, oldest first.
    pub fn records_of(&self, invocation: InvocationId) -> Result<Vec<StoredRecord>, ReadError> {
        query::records_of(&self.connection, invocation)
    }

    /// The newest `count` records, oldest first.
    pub fn tail(&self, count: usize) -> Result<Vec<StoredRecord>, ReadError> {
        query::tail(&self.connection, count)
    }

    /// The highest number, 0 in an empty journal.
    pub fn last_seq(&self) -> Result<u64, ReadError> {
        query::last_seq(&self.connection)
    }

    /// Checks every record there is at this moment; `progress` hears how many of how many are done.
    ///
    /// What was changed, removed from the middle, swapped or inserted shows. What was cut off the end does
    /// not: a shorter chain is a whole chain. Only a head hash that was written down elsewhere shows that,
    /// so keep [`VerifyReport::head`] and compare.
    ///
    /// Remembers some 40 bytes a call while it runs, to see that no call ends twice.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<VerifyReport, ReadError> {
        verify::verify(&self.connection, progress)
    }
}
