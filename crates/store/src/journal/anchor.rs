//! The `anchor` table: the last removed record, for checks of the rest. The `pruned` record written with it proves it;
//! the table is for triggers and checks, which need it without a search.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use toolpost_core::PrunedRange;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PruneAnchor {
    pub(crate) up_to: u64,
    pub(crate) hash: [u8; 32],
}

/// `None` if no record was ever removed. A row that no journal writes is an error of its type.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<PruneAnchor>> {
    let mut statement = connection.prepare_cached("SELECT up_to, hash FROM anchor")?;
    let anchor = |row: &rusqlite::Row<'_>| {
        Ok(PruneAnchor {
            up_to: row.get::<_, i64>(0)?.max(0).cast_unsigned(),
            hash: row.get(1)?,
        })
    };
    statement.query_row([], anchor).optional()
}

/// The records that a cut up to this number would remove.
pub(super) fn measure(
    connection: &Connection,
    up_to: u64,
) -> rusqlite::Result<Option<PrunedRange>> {
    const ENDS: &str = "SELECT seq, at, hash FROM record WHERE seq <= ?1";
    let end = |order: &str| {
        let mut statement =
            connection.prepare_cached(&format!("{ENDS} ORDER BY seq {order} LIMIT 1"))?;
        let ends = |row: &rusqlite::Row<'_>| {
            let at = Timestamp::from_microsecond(row.get(1)?).unwrap_or(Timestamp::UNIX_EPOCH);
            Ok((
                row.get::<_, i64>(0)?.cast_unsigned(),
                at,
                row.get::<_, [u8; 32]>(2)?,
            ))
        };
        statement
            .query_row([i64::try_from(up_to).unwrap_or(i64::MAX)], ends)
            .optional()
    };
    let (Some((first_seq, first, _)), Some((up_to, last, hash))) = (end("ASC")?, end("DESC")?)
    else {
        return Ok(None);
    };
    Ok(Some(PrunedRange {
        up_to,
        hash,
        records: up_to + 1 - first_seq,
        first,
        last,
    }))
}

/// Sets the anchor and removes the records up to it; the triggers allow that only after the anchor is set.
pub(super) fn advance(connection: &Connection, pruned: &PrunedRange) -> rusqlite::Result<()> {
    let up_to = pruned.up_to.cast_signed();
    let set = "INSERT INTO anchor (id, up_to, hash) VALUES (1, ?1, ?2)
               ON CONFLICT (id) DO UPDATE SET up_to = excluded.up_to, hash = excluded.hash";
    connection
        .prepare_cached(set)?
        .execute(params![up_to, pruned.hash.as_slice()])?;
    connection
        .prepare_cached("DELETE FROM facet WHERE seq <= ?1")?
        .execute([up_to])?;
    connection
        .prepare_cached("DELETE FROM record WHERE seq <= ?1")?
        .execute([up_to])?;
    Ok(())
}
