//! All queries of the `record` table, over any connection. The host's lookups and the CLI's reader share them, so both
//! give the same answers.

use rusqlite::{Connection, Params, Row, params};
use toolpost_core::{GENESIS, JournalHead, RecordKind, SessionPage, StoredRecord};
use toolpost_model::{InvocationId, RequestId, SessionId};

use super::row::{JournalReadError, columns, columns_of, decode};

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM record ", $rest)
    };
}

const OF_INVOCATION: &str = select!("WHERE invocation = ?1 ORDER BY seq");
const OF_REQUEST: &str = select!("WHERE session = ?1 AND request = ?2 ORDER BY seq DESC LIMIT 1");
// The kinds must be written exactly as in the partial indexes, or SQLite would not use them.
const OF_SESSION: &str = select!(
    "WHERE session = ?1 AND kind IN ('session_opened', 'session_closed') ORDER BY seq DESC LIMIT 1"
);
const LAST_START: &str =
    "SELECT seq FROM record WHERE kind = 'host_started' ORDER BY seq DESC LIMIT 1";
const PAGE: &str = select!("WHERE seq > ?1 ORDER BY seq LIMIT ?2");
const SESSION_PAGE: &str =
    select!("WHERE seq > ?1 AND seq <= ?2 AND session = ?3 ORDER BY seq LIMIT ?4");
const BETWEEN: &str = select!("WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3");
const BETWEEN_WITH_FACETS: &str = concat!(
    "SELECT ",
    columns_of!("record"),
    ", facet.seq, facet.at, facet.session, facet.tool, facet.principal, facet.outcome, facet.correlation ",
    "FROM record LEFT JOIN facet ON facet.seq = record.seq ",
    "WHERE record.seq > ?1 AND record.seq <= ?2 ORDER BY record.seq LIMIT ?3"
);
// The kinds must be written exactly as in the partial index.
const OF_KIND: &str = select!(
    "WHERE kind IN ('catalog', 'surface', 'pruned') AND kind = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"
);
const TAIL: &str = select!("ORDER BY seq DESC LIMIT ?1");
const LAST: &str = "SELECT max(seq) FROM record";
const FIRST: &str = "SELECT min(seq) FROM record";

/// All records of a call, oldest first.
pub(crate) fn records_of(
    connection: &Connection,
    invocation: InvocationId,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    all(
        connection,
        OF_INVOCATION,
        [invocation.as_bytes().as_slice()],
    )
}

pub(super) fn newest_of_request(
    connection: &Connection,
    session: &SessionId,
    request: &RequestId,
) -> Result<Option<StoredRecord>, JournalReadError> {
    Ok(all(connection, OF_REQUEST, [session.as_str(), request.as_str()])?.pop())
}

pub(super) fn newest_of_session(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<StoredRecord>, JournalReadError> {
    Ok(all(connection, OF_SESSION, [session.as_str()])?.pop())
}

pub(super) fn last_start(connection: &Connection) -> Result<u64, JournalReadError> {
    let mut statement = connection.prepare_cached(LAST_START)?;
    let mut rows = statement.query([])?;
    let seq = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()?;
    Ok(seq.unwrap_or(0).cast_unsigned())
}

/// Up to `limit` records with numbers over `after`, oldest first.
pub(crate) fn page(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    all(connection, PAGE, [after, to_limit(limit)])
}

/// The number of records to look at for one page of a session: some milliseconds of the one thread that reads.
const SESSION_SPAN: u64 = 20_000;

/// Up to `limit` records of a session with numbers over `after`, oldest first, among the next [`SESSION_SPAN`] records.
pub(crate) fn session_page(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<SessionPage, JournalReadError> {
    let first = first_seq(connection)?;
    let last = last_seq(connection)?;
    // Removed numbers are skipped.
    let from = after.max(first.saturating_sub(1));
    let end = from.saturating_add(SESSION_SPAN).min(last).max(after);
    let number = |seq| i64::try_from(seq).unwrap_or(i64::MAX);
    let bounds = params![number(from), number(end), session.as_str(), to_limit(limit)];
    Ok(SessionPage::of(
        all(connection, SESSION_PAGE, bounds)?,
        end,
        limit,
    ))
}

/// The newest `count` records, oldest first.
pub(crate) fn tail(
    connection: &Connection,
    count: usize,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    let mut found = all(connection, TAIL, [to_limit(count)])?;
    found.reverse();
    Ok(found)
}

/// The highest number, 0 in an empty journal.
pub(crate) fn last_seq(connection: &Connection) -> Result<u64, JournalReadError> {
    let mut statement = connection.prepare_cached(LAST)?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0).max(0).cast_unsigned())
}

/// The newest records of one of the rare kinds (`catalog`, `surface`, `pruned`) with numbers below `before`, newest
/// first.
pub(crate) fn of_kind(
    connection: &Connection,
    kind: RecordKind,
    before: u64,
    limit: usize,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    all(
        connection,
        OF_KIND,
        params![kind.as_str(), before, to_limit(limit)],
    )
}

/// The number of the oldest record; in an empty journal, the number after the last one.
pub(crate) fn first_seq(connection: &Connection) -> Result<u64, JournalReadError> {
    let first: Option<i64> = connection
        .prepare_cached(FIRST)?
        .query_row([], |row| row.get(0))?;
    Ok(first.unwrap_or(1).max(0).cast_unsigned())
}

/// The two ends of the journal.
pub(crate) fn head(connection: &Connection) -> Result<JournalHead, JournalReadError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    let bytes = (pages * pragma("page_size")?).max(0).cast_unsigned();
    let (seq, hash) = match tail(connection, 1)?.pop() {
        Some(row) => (row.seq, row.hash),
        None => (0, GENESIS),
    };
    Ok(JournalHead {
        seq,
        hash,
        first: first_seq(connection)?,
        bytes,
    })
}

/// Passes each of up to `limit` rows between two numbers to `visit`, and returns the number of the last one.
///
/// The rows are raw, so that a check can look at damaged ones. The read transaction ends with this call: a journal of
/// many gigabytes is read piece by piece, so that a running host can checkpoint its log.
pub(crate) fn rows_between(
    connection: &Connection,
    (after, last): (i64, i64),
    limit: usize,
    facets: RowExtras,
    mut visit: impl FnMut(&Row<'_>),
) -> Result<Option<i64>, JournalReadError> {
    let mut statement = connection.prepare_cached(match facets {
        RowExtras::Facets => BETWEEN_WITH_FACETS,
        RowExtras::Nothing => BETWEEN,
    })?;
    let mut rows = statement.query([after, last, to_limit(limit)])?;
    let mut end = None;
    while let Some(row) = rows.next()? {
        end = Some(row.get(0)?);
        visit(row);
    }
    Ok(end)
}

/// Further columns of each row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowExtras {
    Nothing,
    /// The columns of its facets; empty if it has none.
    Facets,
}

pub(super) fn all(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(found)
}

pub(super) fn to_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
