//! The check behind `toolpost journal verify`: that the chain holds, that the records are consistent, and that
//! artifacts match their records.

mod artifacts;
mod check;
mod report;
mod sealed;

use std::{
    path::{Path, PathBuf},
    thread,
};

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode};
use toolpost_core::{PrunedBody, RecordKind};

pub use artifacts::ArtifactCounts;
pub use report::{JournalFlaw, VerifyConclusion, VerifyProblem, VerifyReport};
pub use sealed::{SealedHead, SealedHeadError};

use crate::journal::{
    JournalReadError, anchor, facet, has_facets, open_for_reading,
    query::{self, RowExtras},
    schema_differences,
};
use check::JournalCheck;

/// The rows between two reports of progress, and in one read transaction.
const PIECE: usize = 2000;

/// Checks beside those of the records themselves.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// A head from an earlier time, which must still be in the chain.
    pub head: Option<SealedHead>,
    /// The place of the artifacts that the records name.
    pub artifacts: Option<ArtifactsPlace>,
}

/// The place of artifacts, and the time from which they must exist.
#[derive(Clone, Debug)]
pub struct ArtifactsPlace {
    /// The folder with the blobs.
    pub folder: PathBuf,
    /// Artifacts that were last named before this time may have been removed.
    pub kept_since: Timestamp,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyStep {
    /// Checked records, and all records.
    Records(u64, u64),
    /// Checked bytes of artifacts, and all bytes.
    Artifacts(u64, u64),
}

pub(crate) fn verify(
    connection: &Connection,
    options: &VerifyOptions,
    mut progress: impl FnMut(VerifyStep),
) -> Result<VerifyReport, JournalReadError> {
    let mut check = JournalCheck::new(options.head.clone(), options.artifacts.is_some());
    for name in schema_differences(connection)? {
        check.found(0, JournalFlaw::Schema { name });
    }
    // Both read the whole file and are independent: one is bound by hashing, the other by page reads.
    let beside = connection
        .path()
        .and_then(|path| open_for_reading(Path::new(path)).ok());
    let storage = thread::scope(|scope| {
        let storage = beside.map(|beside| scope.spawn(move || check_storage(&beside)));
        let walked = walk(connection, &mut check, &mut progress);
        let storage = match storage.map(|storage| storage.join()) {
            Some(Ok(found)) => found,
            Some(Err(_)) | None => check_storage(connection),
        };
        walked.and(storage)
    })?;
    for text in storage {
        check.found(0, JournalFlaw::Storage(text));
    }
    check_anchor(connection, &mut check)?;
    if let Some(place) = &options.artifacts {
        artifacts::check(place, &mut check, |done, total| {
            progress(VerifyStep::Artifacts(done, total));
        });
    }
    Ok(check.finish())
}

/// Reads the records in pieces, each in a transaction of its own: a running host can checkpoint its log, and may even
/// remove the oldest records.
fn walk(
    connection: &Connection,
    check: &mut JournalCheck,
    progress: &mut impl FnMut(VerifyStep),
) -> Result<(), JournalReadError> {
    let beside = if has_facets(connection)? {
        RowExtras::Facets
    } else {
        RowExtras::Nothing
    };
    let total = query::last_seq(connection)?;
    let last = total.cast_signed();
    let mut after = i64::MIN;
    loop {
        let snapshot = connection.unchecked_transaction()?;
        if beside == RowExtras::Facets {
            check.facets_up_to(facet::last(connection).unwrap_or(i64::MAX));
            match anchor::read(connection) {
                Ok(anchor) => check.begin_at(anchor),
                Err(error) => check.found(
                    0,
                    JournalFlaw::Storage(format!("the anchor cannot be read: {error}")),
                ),
            }
        }
        let read = query::rows_between(connection, (after, last), PIECE, beside, |row| {
            check.visit(row, beside);
        });
        drop(snapshot);
        match read {
            Ok(Some(end)) => after = end,
            Ok(None) => return Ok(()),
            Err(JournalReadError::Sqlite(error)) if is_damage(&error) => {
                check.found_here(JournalFlaw::Storage(error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        progress(VerifyStep::Records(check.records(), total));
    }
}

/// A removal must have been made by a journal: the newest `pruned` record must match the anchor.
fn check_anchor(connection: &Connection, check: &mut JournalCheck) -> Result<(), JournalReadError> {
    if !has_facets(connection)? {
        return Ok(());
    }
    let snapshot = connection.unchecked_transaction()?;
    let newest = match query::of_kind(connection, RecordKind::Pruned, u64::MAX, 1) {
        Ok(mut found) => found.pop(),
        // Reported when the row was read.
        Err(JournalReadError::Damaged { .. } | JournalReadError::OlderFormat) => None,
        Err(JournalReadError::Sqlite(error)) if is_damage(&error) => None,
        Err(error) => return Err(error),
    };
    let anchor = anchor::read(connection).unwrap_or(None);
    drop(snapshot);
    let told = newest.and_then(|row| Some((row.seq, row.record.read_body::<PrunedBody>().ok()?)));
    match (anchor, told) {
        (None, None) => {}
        (None, Some((seq, body))) => {
            check.found(seq, JournalFlaw::AnchorLost { up_to: body.up_to });
        }
        (Some(anchor), told) => {
            let hash = const_hex::encode(anchor.hash);
            let vouches = |body: &PrunedBody| (body.up_to, &body.hash) == (anchor.up_to, &hash);
            if !told.is_some_and(|(_, body)| vouches(&body)) {
                check.found(
                    anchor.up_to + 1,
                    JournalFlaw::Unvouched {
                        up_to: anchor.up_to,
                    },
                );
            }
        }
    }
    Ok(())
}

/// Rows can be intact while a damaged index hides them from lookups.
fn check_storage(connection: &Connection) -> Result<Vec<String>, JournalReadError> {
    let mut found = Vec::new();
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = statement.query([])?;
    loop {
        match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => found.push(row.get(0)?),
            Err(error) if is_damage(&error) => {
                found.push(error.to_string());
                return Ok(found);
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop(rows);
    found.retain(|text: &String| text != "ok");
    if found.is_empty() && has_facets(connection)? {
        let stray = "SELECT seq FROM facet WHERE NOT EXISTS (SELECT 1 FROM record WHERE record.seq = facet.seq) LIMIT 10";
        let mut statement = connection.prepare(stray)?;
        let seqs = statement.query_map([], |row| row.get::<_, i64>(0))?;
        for seq in seqs {
            found.push(format!(
                "`facet` has a row for record {}, which is missing",
                seq?
            ));
        }
    }
    Ok(found)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}
