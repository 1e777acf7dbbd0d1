//! The check behind `toolpost journal verify`: does the chain hold, and do the records make sense?

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, Row};
use serde::de::IgnoredAny;
use toolpost_core::{GENESIS, RecordKind, StoredRecord, chain};
use toolpost_model::InvocationId;

use crate::journal::{ReadError, decode, query, schema_differences, stored_hash};

/// Rows between two reports of progress, and in one read transaction.
const PIECE: usize = 2000;
/// A file that is wrong everywhere need not be described everywhere.
const MOST_PROBLEMS: usize = 1000;

/// One thing that is wrong.
#[derive(Debug)]
pub struct Problem {
    /// The record it was found at, 0 where it concerns the file.
    pub seq: u64,
    /// What it is.
    pub what: Flaw,
}

/// What can be wrong with a journal.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Flaw {
    /// Rows are gone.
    #[error("records {first} to {last} are missing")]
    Missing {
        /// The first that is not there.
        first: u64,
        /// The last that is not there.
        last: u64,
    },
    /// A row that cannot stand where it stands.
    #[error("a record has the number {number}, and numbers begin at 1")]
    Number {
        /// The number.
        number: i64,
    },
    /// A value no journal writes.
    #[error("column `{column}` {why}")]
    Column {
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// This record or the one before it was changed after it was written.
    #[error("the hash does not follow from this record and the hash before it")]
    Chain,
    /// The body does not parse.
    #[error("the body is not a JSON object")]
    Body,
    /// The call had ended before.
    #[error("call `{0}` ends a second time")]
    SecondEnd(InvocationId),
    /// The call had ended before.
    #[error("call `{0}` goes on after its end")]
    AfterEnd(InvocationId),
    /// A table, index or trigger differs from what this version makes.
    #[error("`{name}` is missing from the database, changed or foreign to it")]
    Schema {
        /// Its name.
        name: String,
    },
    /// The file's own structure is broken, or an index disagrees with its table.
    #[error("the database is damaged: {0}")]
    Storage(String),
}

/// What a check found.
#[derive(Debug)]
pub struct VerifyReport {
    /// How many records there are.
    pub records: u64,
    /// How many calls they tell of.
    pub invocations: u64,
    /// When the first was written.
    pub first: Option<Timestamp>,
    /// When the last was written.
    pub last: Option<Timestamp>,
    /// The hash of the last record: worth keeping elsewhere, as it vouches for all before it.
    pub head: [u8; 32],
    /// Calls that have not ended, oldest first. Beside a running host, calls in flight are among them.
    pub open_invocations: Vec<InvocationId>,
    /// What is wrong, by place; the first thousand.
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub problems_left_out: u64,
}

impl VerifyReport {
    /// True where nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

pub(crate) fn verify(
    connection: &Connection,
    mut progress: impl FnMut(u64, u64),
) -> Result<VerifyReport, ReadError> {
    let mut check = Check::new();
    for name in schema_differences(connection)? {
        check.found(0, Flaw::Schema { name });
    }
    let total = query::last_seq(connection)?;
    let last = total.cast_signed();
    let mut after = i64::MIN;
    loop {
        match query::rows_between(connection, (after, last), PIECE, |row| check.visit(row)) {
            Ok(Some(end)) => after = end,
            Ok(None) => break,
            Err(ReadError::Sqlite(error)) if is_damage(&error) => {
                check.found(check.next, Flaw::Storage(error.to_string()));
                break;
            }
            Err(error) => return Err(error),
        }
        progress(check.report.records, total);
    }
    check_storage(connection, &mut check)?;
    Ok(check.finish())
}

/// Rows can be as they were written while an index hides them from a lookup.
fn check_storage(connection: &Connection, check: &mut Check) -> Result<(), ReadError> {
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = statement.query([])?;
    loop {
        match rows.next() {
            Ok(None) => return Ok(()),
            Ok(Some(row)) => {
                let text: String = row.get(0)?;
                if text != "ok" {
                    check.found(0, Flaw::Storage(text));
                }
            }
            Err(error) if is_damage(&error) => {
                check.found(0, Flaw::Storage(error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Where in its life a call is, as far as the records go.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Open,
    Ended,
}

struct Check {
    report: VerifyReport,
    calls: HashMap<InvocationId, Call>,
    /// The number the next row should have.
    next: u64,
    /// The hash the next row builds on; unknown after a hole or a row whose hash cannot be read. It is the
    /// stored one, not the computed one, so that one changed row is one problem and not the whole rest.
    previous: Option<[u8; 32]>,
}

impl Check {
    fn new() -> Self {
        let report = VerifyReport {
            records: 0,
            invocations: 0,
            first: None,
            last: None,
            head: GENESIS,
            open_invocations: Vec::new(),
            problems: Vec::new(),
            problems_left_out: 0,
        };
        Self { report, calls: HashMap::new(), next: 1, previous: Some(GENESIS) }
    }

    fn found(&mut self, seq: u64, what: Flaw) {
        if self.report.problems.len() < MOST_PROBLEMS {
            self.report.problems.push(Problem { seq, what });
        } else {
            self.report.problems_left_out += 1;
        }
    }

    fn visit(&mut self, row: &Row<'_>) {
        self.report.records += 1;
        let number = row.get::<_, i64>(0).unwrap_or(0);
        let Some(seq) = u64::try_from(number).ok().filter(|&seq| seq > 0) else {
            return self.found(0, Flaw::Number { number });
        };
        if seq > self.next {
            self.found(seq, Flaw::Missing { first: self.next, last: seq - 1 });
            self.previous = None;
        }
        self.next = seq + 1;
        match decode(row) {
            Ok(stored) => self.visit_record(&stored),
            Err(ReadError::Damaged { column, why, .. }) => self.found(seq, Flaw::Column { column, why }),
            Err(ReadError::Sqlite(error)) => self.found(seq, Flaw::Storage(error.to_string())),
        }
        self.previous = stored_hash(row);
        self.report.head = self.previous.unwrap_or(self.report.head);
    }

    fn visit_record(&mut self, stored: &StoredRecord) {
        let StoredRecord { seq, record, hash } = stored;
        if self.previous.is_some_and(|previous| chain(&previous, *seq, record) != *hash) {
            self.found(*seq, Flaw::Chain);
        }
        if !is_json_object(&record.body) {
            self.found(*seq, Flaw::Body);
        }
        if let Some(id) = record.invocation_id {
            self.visit_call(*seq, id, record.kind);
        }
        self.report.first.get_or_insert(record.at);
        self.report.last = Some(record.at);
    }

    fn visit_call(&mut self, seq: u64, id: InvocationId, kind: RecordKind) {
        // An answer may come when the call that asked has ended and its caller was told to come again.
        if kind == RecordKind::Decided {
            return;
        }
        let ends = kind == RecordKind::Ended;
        let state = if ends { Call::Ended } else { Call::Open };
        let before = self.calls.insert(id, state);
        if before == Some(Call::Ended) {
            self.calls.insert(id, Call::Ended);
            self.found(seq, if ends { Flaw::SecondEnd(id) } else { Flaw::AfterEnd(id) });
        }
    }

    fn finish(mut self) -> VerifyReport {
        self.report.invocations = self.calls.len() as u64;
        let open = self.calls.into_iter().filter(|(_, state)| *state == Call::Open);
        self.report.open_invocations = open.map(|(id, _)| id).collect();
        self.report.open_invocations.sort();
        self.report
    }
}

fn is_json_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
