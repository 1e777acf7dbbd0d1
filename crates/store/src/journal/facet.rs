//! The `facet` table: the searchable properties of calls, in rows a tenth the size of their records. A scan of all of
//! them takes a fraction of a second, so only lookups that must be instant have an index.
//!
//! The table follows the records in large pieces and without holes. Written together with its record, each row would
//! touch a page of its own in every index and double the log of a small commit. Facets that were not written yet are
//! not lost, because the records contain them too.

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, Row, ToSql, params};
use toolpost_core::{BodyFacets, FacetReader, Facets, Query, RecordKind, StoredRecord};
use toolpost_model::{Outcome, SessionId};

use super::{
    query,
    row::{JournalReadError, columns_of, decode},
};

pub(super) const INSERT: &str = "INSERT INTO facet (seq, at, session, tool, principal, outcome, correlation) \
                                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub(crate) struct FacetRow {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) session: Option<SessionId>,
    pub(super) facets: Facets,
}

pub(super) fn insert(
    statement: &mut CachedStatement<'_>,
    noted: &FacetRow,
) -> rusqlite::Result<()> {
    let FacetRow {
        seq,
        at,
        session,
        facets,
    } = noted;
    statement.execute(params![
        seq.cast_signed(),
        at.as_microsecond(),
        session.as_ref().map(SessionId::as_str),
        facets.tool,
        facets.principal,
        facets.outcome.map(Outcome::as_str),
        facets.correlation,
    ])?;
    Ok(())
}

/// The last record that the table covers. The table follows the records without holes, so no later record is in it yet.
pub(crate) fn last(connection: &Connection) -> rusqlite::Result<i64> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(seq) FROM facet")?
        .query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

/// Adds the records that the table lacks: those from before the table existed, or of a killed host.
pub(super) fn catch_up(connection: &Connection) -> rusqlite::Result<()> {
    let mut insert_one = connection.prepare_cached(INSERT)?;
    behind(connection, |stored, facets| {
        let StoredRecord { seq, record, .. } = stored;
        let noted = FacetRow {
            seq,
            at: record.at,
            session: record.session_id,
            facets,
        };
        insert(&mut insert_one, &noted)
    })
}

/// Passes each record that the table lacks to a visitor, with its facets.
fn behind(
    connection: &Connection,
    mut show: impl FnMut(StoredRecord, Facets) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut reader = FacetReader::default();
    let mut statement = connection.prepare(concat!(
        "SELECT ",
        columns_of!("record"),
        " FROM record WHERE record.seq > ?1 ORDER BY record.seq"
    ))?;
    let mut rows = statement.query([last(connection)?])?;
    while let Some(row) = rows.next()? {
        // A damaged row cannot be found by its facets; `verify` reports it.
        let Ok(stored) = decode(row) else { continue };
        let told = match reader.read(&stored.record) {
            Some(told) if !told.is_whole() => from_the_beginning(connection, &stored),
            told => told,
        };
        if let Some(facets) = told.and_then(BodyFacets::into_facets) {
            show(stored, facets)?;
        }
    }
    Ok(())
}

/// A call may have begun before the first record that was read.
fn from_the_beginning(connection: &Connection, end: &StoredRecord) -> Option<BodyFacets> {
    let mut records = query::records_of(connection, end.record.invocation_id?).ok()?;
    records.retain(|row| row.seq <= end.seq);
    let mut reader = FacetReader::default();
    records.iter().map(|row| reader.read(&row.record)).last()?
}

/// The facets beside a record, from the columns after the record's own. The outer `None`: there is no row; the inner
/// one: the row is none that the writer wrote.
pub(crate) fn beside(
    row: &Row<'_>,
    at: Timestamp,
    session: Option<&SessionId>,
) -> Option<Option<Facets>> {
    const FIRST: usize = 9;
    let text = |place: usize| row.get_ref(FIRST + place).ok()?.as_str_or_null().ok();
    row.get_ref(FIRST).ok()?.as_i64_or_null().ok()??;
    let read = || {
        let same_time = row.get_ref(FIRST + 1).ok()?.as_i64().ok()? == at.as_microsecond();
        let same_session = text(2)? == session.map(SessionId::as_str);
        let outcome = match text(5)? {
            Some(word) => Some(outcome_of(word)?),
            None => None,
        };
        (same_time && same_session).then_some(())?;
        Some(Facets {
            tool: text(3)??.to_owned(),
            principal: text(4)??.to_owned(),
            outcome,
            correlation: text(6)?.map(str::to_owned),
        })
    };
    Some(read())
}

fn outcome_of(word: &str) -> Option<Outcome> {
    serde_json::from_value(word.into()).ok()
}

/// A search shows each call by its end, or by its beginning if it has no end.
const STANDS_FOR_ITS_CALL: &str = "(facet.outcome IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM record AS other WHERE other.invocation = record.invocation AND other.kind = 'ended'))";

/// Calls, newest first, including those that the table lacks: a running host writes it in large pieces.
pub(crate) fn find_all(
    connection: &Connection,
    query: &Query,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    FacetLag::read(connection, query)?.next_page(connection, &mut query.clone())
}

/// The calls that the table lacked at one moment. They have to be parsed, so a search of many pages reads them once.
pub(crate) struct FacetLag {
    /// The last record that the table covered then.
    up_to: u64,
    /// The matching ones, oldest first.
    calls: Vec<StoredRecord>,
}

impl FacetLag {
    pub(crate) fn read(connection: &Connection, query: &Query) -> Result<Self, JournalReadError> {
        let snapshot = connection.unchecked_transaction()?;
        let up_to = last(connection)?.max(0).cast_unsigned();
        let mut calls = Vec::new();
        behind(connection, |stored, facets| {
            let has_ended = |id| {
                let records = query::records_of(connection, id).unwrap_or_default();
                records
                    .iter()
                    .any(|row| row.record.kind == RecordKind::Ended)
            };
            let stands =
                facets.outcome.is_some() || !stored.record.invocation_id.is_some_and(has_ended);
            if stands && query.takes(&stored, &facets) {
                calls.push(stored);
            }
            Ok(())
        })?;
        drop(snapshot);
        Ok(Self { up_to, calls })
    }

    /// The next calls, newest first; `query` then asks for the calls after them. Rows that the table has gained since
    /// are in here as well.
    pub(crate) fn next_page(
        &mut self,
        connection: &Connection,
        query: &mut Query,
    ) -> Result<Vec<StoredRecord>, JournalReadError> {
        let of_these = self.calls.len().saturating_sub(query.limit);
        let mut found = self.calls.split_off(of_these);
        found.reverse();
        if found.len() < query.limit {
            let before = query
                .before
                .map_or(self.up_to + 1, |before| before.min(self.up_to + 1));
            let rest = Query {
                before: Some(before),
                limit: query.limit - found.len(),
                ..query.clone()
            };
            found.extend(find(connection, &rest)?);
        }
        if let Some(last) = found.last() {
            query.before = Some(last.seq);
        }
        Ok(found)
    }
}

/// The calls in the table, newest first.
pub(crate) fn find(
    connection: &Connection,
    query: &Query,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    let Some(pattern) = &query.tool else {
        return of_tool(connection, query, None);
    };
    // Few tools make many calls: the names are read from the index, and the newest calls of each are merged.
    let mut found = Vec::new();
    for tool in tools(connection)?.iter().filter(|tool| pattern.fits(tool)) {
        found.extend(of_tool(connection, query, Some(tool))?);
    }
    found.sort_unstable_by_key(|row| std::cmp::Reverse(row.seq));
    found.truncate(query.limit);
    Ok(found)
}

/// All tools that have a call, by jumps through the index.
fn tools(connection: &Connection) -> Result<Vec<String>, JournalReadError> {
    let mut statement = connection.prepare_cached("SELECT min(tool) FROM facet WHERE tool > ?1")?;
    let mut tools: Vec<String> = Vec::new();
    loop {
        let last = tools.last().map_or("", String::as_str);
        match statement.query_row([last], |row| row.get::<_, Option<String>>(0))? {
            Some(next) => tools.push(next),
            None => return Ok(tools),
        }
    }
}

fn of_tool(
    connection: &Connection,
    query: &Query,
    tool: Option<&str>,
) -> Result<Vec<StoredRecord>, JournalReadError> {
    let before = query
        .before
        .map(|before| i64::try_from(before).unwrap_or(i64::MAX));
    let since = query.since.map(Timestamp::as_microsecond);
    let until = query.until.map(Timestamp::as_microsecond);
    let outcome = query.outcome.map(Outcome::as_str);
    let session = query.session.as_ref().map(SessionId::as_str);
    let conditions: [(&str, Option<&dyn ToSql>); 8] = [
        ("facet.seq <", before.as_ref().map(|value| value as _)),
        ("facet.at >=", since.as_ref().map(|value| value as _)),
        ("facet.at <", until.as_ref().map(|value| value as _)),
        ("facet.session =", session.as_ref().map(|value| value as _)),
        ("facet.tool =", tool.as_ref().map(|value| value as _)),
        (
            "facet.principal =",
            query.principal.as_ref().map(|value| value as _),
        ),
        ("facet.outcome =", outcome.as_ref().map(|value| value as _)),
        (
            "facet.correlation =",
            query.correlation.as_ref().map(|value| value as _),
        ),
    ];
    let mut sql = String::from(concat!(
        "SELECT ",
        columns_of!("record"),
        " FROM facet CROSS JOIN record ON record.seq = facet.seq WHERE "
    ));
    let mut values: Vec<&dyn ToSql> = Vec::new();
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!("{condition} ?{} AND ", values.len()));
        }
    }
    let limit = query::to_limit(query.limit);
    values.push(&limit);
    sql.push_str(&format!(
        "{STANDS_FOR_ITS_CALL} ORDER BY facet.seq DESC LIMIT ?{}",
        values.len()
    ));
    query::all(connection, &sql, values.as_slice())
}
