//! One row of the `record` table and a [`StoredRecord`], both ways.

use jiff::Timestamp;
use rusqlite::{
    CachedStatement, Row, params,
    types::{FromSqlError, ValueRef},
};
use toolpost_core::{JournalError, Record, RecordKind, RequestKey, StoredRecord};
use toolpost_model::{InvocationId, RequestId, SessionId};

/// The columns in the order [`decode`] takes them.
macro_rules! columns {
    () => {
        "seq, kind, at, invocation, session, request, request_digest, hash, body"
    };
}
pub(super) use columns;

/// The same, for a query that joins another table.
macro_rules! columns_of {
    ($table:literal) => {
        concat!(
            $table,
            ".seq, ",
            $table,
            ".kind, ",
            $table,
            ".at, ",
            $table,
            ".invocation, ",
            $table,
            ".session, ",
            $table,
            ".request, ",
            $table,
            ".request_digest, ",
            $table,
            ".hash, ",
            $table,
            ".body"
        )
    };
}
pub(super) use columns_of;

pub(super) const INSERT: &str = concat!(
    "INSERT INTO record (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
);

const HASH: usize = 7;

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalReadError {
    /// A row that no journal writes.
    #[error("record {seq} is damaged: column `{column}` {why}")]
    Damaged {
        /// The row's number, as far as it can be read.
        seq: i64,
        /// The column.
        column: &'static str,
        /// The fault.
        why: &'static str,
    },
    /// The query is not possible in this format.
    #[error(
        "this journal has an older format, in which calls cannot be searched\n\
         hint: start a host on it to update it"
    )]
    OlderFormat,
    /// SQLite failed.
    #[error("the journal cannot be read: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl From<JournalReadError> for JournalError {
    fn from(error: JournalReadError) -> Self {
        Self::Broken(error.to_string())
    }
}

pub(super) fn insert(
    statement: &mut CachedStatement<'_>,
    seq: u64,
    record: &Record,
    hash: &[u8; 32],
) -> rusqlite::Result<()> {
    let request = record.request.as_ref();
    let values = params![
        seq.cast_signed(),
        record.kind.as_str(),
        record.at.as_microsecond(),
        record
            .invocation_id
            .as_ref()
            .map(|id| id.as_bytes().as_slice()),
        record.session_id.as_ref().map(SessionId::as_str),
        request.map(|request| request.id.as_str()),
        request.map(|request| request.digest.as_slice()),
        hash.as_slice(),
        &*record.body,
    ];
    statement.execute(values)?;
    Ok(())
}

/// Checks every column: a type or length that the writer does not write is damage.
pub(crate) fn decode(row: &Row<'_>) -> Result<StoredRecord, JournalReadError> {
    let seq = row.get_ref(0)?.as_i64().unwrap_or_default();
    let cell = |place, column| {
        Ok::<_, JournalReadError>(RecordCell {
            seq,
            column,
            value: row.get_ref(place)?,
        })
    };
    let kind = cell(1, "kind")?;
    let at = cell(2, "at")?;
    let request = cell(5, "request")?;
    let request = match (
        request.text_or_null()?,
        cell(6, "request_digest")?.bytes_or_null()?,
    ) {
        (None, None) => None,
        (Some(id), Some(digest)) => Some(RequestKey {
            id: RequestId::new(id),
            digest,
        }),
        (Some(_), None) | (None, Some(_)) => {
            return Err(request.damaged("is set without its counterpart"));
        }
    };
    let session = cell(4, "session")?;
    let session_id = session.text_or_null()?.map(SessionId::new);
    if session_id.as_ref().is_some_and(|id| id.as_str().is_empty()) {
        return Err(session.damaged("is empty"));
    }
    let record = Record {
        kind: RecordKind::from_word(kind.text()?)
            .ok_or_else(|| kind.damaged("is an unknown kind"))?,
        at: Timestamp::from_microsecond(at.integer()?)
            .map_err(|_| at.damaged("is out of range"))?,
        invocation_id: cell(3, "invocation")?
            .bytes_or_null()?
            .map(InvocationId::from_bytes),
        session_id,
        request,
        body: cell(8, "body")?.text()?.into(),
        facets: None,
    };
    let hash = cell(HASH, "hash")?;
    let hash = hash
        .bytes_or_null()?
        .ok_or_else(|| hash.damaged("is missing"))?;
    Ok(StoredRecord {
        seq: seq.cast_unsigned(),
        record,
        hash,
    })
}

/// The hash of a row, even if the rest of the row is damaged.
pub(crate) fn stored_hash(row: &Row<'_>) -> Option<[u8; 32]> {
    row.get_ref(HASH).ok()?.as_blob().ok()?.try_into().ok()
}

struct RecordCell<'a> {
    seq: i64,
    column: &'static str,
    value: ValueRef<'a>,
}

impl<'a> RecordCell<'a> {
    fn damaged(&self, why: &'static str) -> JournalReadError {
        JournalReadError::Damaged {
            seq: self.seq,
            column: self.column,
            why,
        }
    }

    fn mistyped(&self, error: &FromSqlError) -> JournalReadError {
        match error {
            FromSqlError::InvalidType => self.damaged("has another type"),
            _ => self.damaged("is not valid UTF-8"),
        }
    }

    fn integer(&self) -> Result<i64, JournalReadError> {
        self.value.as_i64().map_err(|error| self.mistyped(&error))
    }

    fn text(&self) -> Result<&'a str, JournalReadError> {
        self.value.as_str().map_err(|error| self.mistyped(&error))
    }

    fn text_or_null(&self) -> Result<Option<&'a str>, JournalReadError> {
        self.value
            .as_str_or_null()
            .map_err(|error| self.mistyped(&error))
    }

    fn bytes_or_null<const N: usize>(&self) -> Result<Option<[u8; N]>, JournalReadError> {
        let bytes = self
            .value
            .as_blob_or_null()
            .map_err(|error| self.mistyped(&error))?;
        let sized = bytes.map(<[u8; N]>::try_from).transpose();
        sized.map_err(|_| self.damaged("has another length"))
    }
}
