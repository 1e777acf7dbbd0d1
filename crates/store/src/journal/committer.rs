//! One transaction of the writer: its durability, its numbers and hashes, the meaning of its failure, and the
//! checkpoint of the log afterwards.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, ffi};
use toolpost_core::{
    AppendStrength, GENESIS, JournalError, PrunedRange, Record, RetentionCut, chain, pruned_record,
};

use super::{
    JournalOpenError, anchor,
    facet::{self, FacetRow},
    row,
    writer::JournalAppend,
};

/// The pages of the log (16 MiB) from which it is copied into the database.
const CHECKPOINT_PAGES: i64 = 4000;
/// The length of the log costs about as much to find out as a small commit, so it is not checked every time.
const BATCHES_BETWEEN_LOOKS: u32 = 8;

const FACETS_TOGETHER: usize = 4096;

/// Facets of committed records that are not in their table yet.
struct FacetBacklog {
    waiting: Vec<FacetRow>,
    /// The table may lack facets that are not in `waiting`.
    is_behind: bool,
}

/// The end of the chain.
#[derive(Clone, Copy)]
struct ChainHead {
    seq: u64,
    hash: [u8; 32],
}

pub(super) struct Committer {
    connection: Connection,
    path: PathBuf,
    max_bytes: u64,
    /// The last committed record: the next record's number and hash follow from it.
    head: ChainHead,
    /// SQLite's present setting, unknown before the first batch.
    strength: Option<AppendStrength>,
    log: CheckpointSchedule,
    /// Set for good after the disk failed to sync.
    lost: Option<JournalError>,
    facets: FacetBacklog,
}

struct CheckpointSchedule {
    pages: i64,
    copy_at: i64,
    /// Batches since the last check of the length.
    unseen: u32,
}

impl Committer {
    pub(super) fn new(
        connection: Connection,
        path: &Path,
        max_bytes: u64,
    ) -> Result<Self, JournalOpenError> {
        let path = path.to_path_buf();
        let head = match committed_head(&connection) {
            Ok(Some(head)) => head,
            Ok(None) => return Err(JournalOpenError::Damaged { path }),
            Err(source) => return Err(JournalOpenError::Sqlite { path, source }),
        };
        let log = CheckpointSchedule {
            pages: 0,
            copy_at: CHECKPOINT_PAGES,
            unseen: 0,
        };
        // A killed host may have left records without facets.
        let facets = FacetBacklog {
            waiting: Vec::new(),
            is_behind: true,
        };
        let mut committer = Self {
            connection,
            path,
            max_bytes,
            head,
            strength: None,
            log,
            lost: None,
            facets,
        };
        committer.follow_with_facets();
        Ok(committer)
    }

    /// Commits all of the batch or nothing. Returns the number of the first record.
    pub(super) fn commit(&mut self, batch: &[JournalAppend]) -> Result<u64, JournalError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let first = self.head.seq + 1;
        let written = self.demand(strongest(batch)).and_then(|()| {
            self.transact(|this| this.insert(batch.iter().map(|append| &append.record)))
        });
        match written {
            Ok(head) => {
                self.head = head;
                Ok(first)
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// Removes the oldest records and writes the `pruned` record in one transaction. It is not synced: after a power
    /// cut the records may be back, together with the old anchor.
    pub(super) fn prune(
        &mut self,
        cut: &RetentionCut,
    ) -> Result<Option<PrunedRange>, JournalError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        // Waiting facets must be written first: afterwards a row could name a record that is gone.
        self.follow_with_facets();
        let done = self.demand(AppendStrength::Committed).and_then(|()| {
            self.transact(|this| {
                let Some(pruned) = anchor::measure(&this.connection, cut.up_to)? else {
                    return Ok((this.head, None));
                };
                // The order matters. A journal at its limit has no room for the `pruned` record until the old rows are
                // deleted, so the removal comes first and the record that vouches for it second. One transaction holds
                // both: a crash between two transactions would leave a chain that begins in the middle without a record
                // of the reason, and `journal verify` would report a fault.
                anchor::advance(&this.connection, &pruned)?;
                let vouches = pruned_record(&pruned, cut.at, &cut.why);
                let head = this.insert(cut.restated.iter().chain([&vouches]))?;
                Ok((head, Some(pruned)))
            })
        });
        match done {
            Ok((head, pruned)) => {
                self.head = head;
                if self.facets.is_behind {
                    // The removal may have made room for them.
                    self.follow_with_facets();
                }
                Ok(pruned)
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// Queues the facets of a committed record. They are written later, many at a time: each alone would cost pages of
    /// its own in the log, and no caller waits for them.
    pub(super) fn note_facets(&mut self, seq: u64, mut record: Record) {
        if let (Some(facets), false) = (record.facets.take(), self.facets.is_behind) {
            let at = record.at;
            let session = record.session_id;
            self.facets.waiting.push(FacetRow {
                seq,
                at,
                session,
                facets,
            });
        }
    }

    pub(super) fn write_facets_if_due(&mut self) {
        if self.facets.waiting.len() >= FACETS_TOGETHER {
            self.follow_with_facets();
        }
    }

    /// Whether there are facets to write while the thread is idle.
    pub(super) fn has_facets_waiting(&self) -> bool {
        !self.facets.waiting.is_empty()
    }

    /// Writes the waiting facets; a failure is only logged, because no caller waits.
    pub(super) fn follow_with_facets(&mut self) {
        if let Err(error) = self.write_facets() {
            tracing::warn!(%error, "the newest calls are not indexed yet; searches read their records, which takes longer");
        }
    }

    /// Writes the waiting facets. After a failure the table stays behind, and the missing rows are read from the
    /// records at the next occasion: the table never has holes.
    pub(super) fn write_facets(&mut self) -> Result<(), JournalError> {
        if self.facets.waiting.is_empty() && !self.facets.is_behind {
            return Ok(());
        }
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let mut waiting = std::mem::take(&mut self.facets.waiting);
        // Sorted by tool, neighbours in the index share its pages.
        waiting.sort_by(|one, other| one.facets.tool.cmp(&other.facets.tool));
        let is_behind = self.facets.is_behind;
        let written = self.demand(AppendStrength::Committed).and_then(|()| {
            self.transact(|this| {
                if is_behind {
                    return facet::catch_up(&this.connection);
                }
                let mut statement = this.connection.prepare_cached(facet::INSERT)?;
                waiting
                    .iter()
                    .try_for_each(|noted| facet::insert(&mut statement, noted))
            })
        });
        self.facets.is_behind = written.is_err();
        written.map_err(|error| self.fail(&error))
    }

    fn transact<T>(&self, work: impl FnOnce(&Self) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        // Prepared once: at thousands of small batches a second, the parsing of `BEGIN` and `COMMIT` is measurable.
        self.run("BEGIN IMMEDIATE")?;
        let written = work(self).and_then(|done| self.run("COMMIT").map(|()| done));
        if written.is_err()
            && !self.connection.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::error!(%error, "a failed batch could not be rolled back");
        }
        written
    }

    fn insert<'a>(&self, records: impl Iterator<Item = &'a Record>) -> rusqlite::Result<ChainHead> {
        let mut head = self.head;
        let mut statement = self.connection.prepare_cached(row::INSERT)?;
        for record in records {
            let seq = head.seq + 1;
            head = ChainHead {
                seq,
                hash: chain(&head.hash, seq, record),
            };
            row::insert(&mut statement, seq, record, &head.hash)?;
        }
        Ok(head)
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    /// FULL syncs the log at every commit, NORMAL only around its copying. Either way the records before a
    /// synced one are synced with it: they lie before it in the same log, or in the database already.
    fn demand(&mut self, strength: AppendStrength) -> rusqlite::Result<()> {
        if self.strength == Some(strength) {
            return Ok(());
        }
        let word = match strength {
            AppendStrength::Committed => "NORMAL",
            AppendStrength::Synced => "FULL",
        };
        // SQLite applies this pragma while it compiles the statement, so it cannot be a prepared one.
        self.connection.pragma_update(None, "synchronous", word)?;
        self.strength = Some(strength);
        Ok(())
    }

    fn fail(&mut self, error: &rusqlite::Error) -> JournalError {
        // `transact` has rolled the batch back. The end of the chain is read from the database and not from memory: if
        // the two ever differ, the database is right.
        if let Ok(Some(head)) = committed_head(&self.connection) {
            self.head = head;
        }
        match meaning(error) {
            CommitErrorMeaning::NoRoom => JournalError::Full(self.no_room()),
            CommitErrorMeaning::NumberTaken => JournalError::Broken(format!(
                "another process writes to `{}`",
                self.path.display()
            )),
            CommitErrorMeaning::SyncLost => self.give_up(error),
            CommitErrorMeaning::Other => {
                JournalError::Broken(format!("`{}`: {error}", self.path.display()))
            }
        }
    }

    /// After a failed sync the system may drop the pages it could not write and report the next sync as a success, so
    /// no later promise would hold. A restart reads the records that are really on the disk.
    fn give_up(&mut self, error: &rusqlite::Error) -> JournalError {
        let path = self.path.display();
        let text = format!(
            "the disk under `{path}` failed to sync ({error}); repair the disk, then restart the host"
        );
        let lost = JournalError::Broken(text);
        self.lost = Some(lost.clone());
        lost
    }

    /// SQLite reports its own limit and a full disk with the same code, so the text gives the numbers that distinguish
    /// them.
    fn no_room(&self) -> String {
        let pragma = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let used = pragma("page_count").unwrap_or(0) * pragma("page_size").unwrap_or(0);
        format!(
            "`{}` has {used} of {} allowed bytes (setting `limits.journal`); \
             remove the oldest records (`toolpost journal prune`, or setting `retention.journal` for good), \
             raise the limit, or make room on its disk",
            self.path.display(),
            self.max_bytes
        )
    }

    /// Copies a long log into the database, so that the log can start over at its beginning.
    pub(super) fn checkpoint_if_due(&mut self) {
        self.log.unseen += 1;
        if self.log.unseen < BATCHES_BETWEEN_LOOKS {
            return;
        }
        self.log.unseen = 0;
        let Ok(pages) = log_pages(&self.connection, "PRAGMA wal_checkpoint(NOOP)") else {
            return;
        };
        if pages < self.log.pages {
            self.log.copy_at = CHECKPOINT_PAGES;
        }
        self.log.pages = pages;
        if pages >= self.log.copy_at {
            // If a reader blocks the copy, a try at every batch would cost two syncs each.
            self.log.copy_at = pages + CHECKPOINT_PAGES;
            self.checkpoint();
        }
    }

    fn checkpoint(&mut self) {
        let Err(error) = log_pages(&self.connection, "PRAGMA wal_checkpoint(PASSIVE)") else {
            return;
        };
        tracing::warn!(%error, "the journal's log could not be copied; it grows until a copy succeeds");
        if let CommitErrorMeaning::SyncLost = meaning(&error) {
            self.give_up(&error);
        }
    }

    /// The last connection also removes the log; if the CLI still reads, the copy has to suffice.
    pub(super) fn close(mut self) {
        self.follow_with_facets();
        self.checkpoint();
        if let Err((_, error)) = self.connection.close() {
            tracing::warn!(%error, "the journal did not close cleanly; its log is read at the next start");
        }
    }
}

fn strongest(batch: &[JournalAppend]) -> AppendStrength {
    if batch
        .iter()
        .any(|append| append.strength == AppendStrength::Synced)
    {
        AppendStrength::Synced
    } else {
        AppendStrength::Committed
    }
}

/// `None` if the last row has no hash to continue from.
fn committed_head(connection: &Connection) -> rusqlite::Result<Option<ChainHead>> {
    let mut statement =
        connection.prepare_cached("SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1")?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else {
        return Ok(Some(ChainHead {
            seq: 0,
            hash: GENESIS,
        }));
    };
    let seq = row.get_ref(0)?.as_i64();
    let hash = row.get_ref(1)?.as_blob();
    let (Ok(seq), Ok(hash)) = (seq, hash) else {
        return Ok(None);
    };
    let head = u64::try_from(seq).ok().zip(hash.try_into().ok());
    Ok(head.map(|(seq, hash)| ChainHead { seq, hash }))
}

/// The length of the log, after the checkpoint that the pragma names.
fn log_pages(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(pragma)?
        .query_row([], |row| row.get(1))
}

/// The meaning of an SQLite error for the writer.
#[derive(Debug, PartialEq)]
enum CommitErrorMeaning {
    NoRoom,
    NumberTaken,
    SyncLost,
    Other,
}

fn meaning(error: &rusqlite::Error) -> CommitErrorMeaning {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return CommitErrorMeaning::Other;
    };
    match (failure.code, failure.extended_code) {
        // The second code: no room for the log's index, the only file that SQLite extends by other means.
        (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => CommitErrorMeaning::NoRoom,
        (_, ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => CommitErrorMeaning::NumberTaken,
        (_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => CommitErrorMeaning::SyncLost,
        _ => CommitErrorMeaning::Other,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::{CommitErrorMeaning, meaning};

    #[test]
    fn sqlite_errors_mean_what_the_operator_can_do_about_them() {
        let check = |code, expected: CommitErrorMeaning| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(meaning(&error), expected, "{error}");
        };
        check(ffi::SQLITE_FULL, CommitErrorMeaning::NoRoom);
        check(ffi::SQLITE_IOERR_SHMSIZE, CommitErrorMeaning::NoRoom);
        check(
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            CommitErrorMeaning::NumberTaken,
        );
        check(ffi::SQLITE_IOERR_FSYNC, CommitErrorMeaning::SyncLost);
        check(ffi::SQLITE_IOERR_DIR_FSYNC, CommitErrorMeaning::SyncLost);
        check(ffi::SQLITE_IOERR_WRITE, CommitErrorMeaning::Other);
        check(ffi::SQLITE_CORRUPT, CommitErrorMeaning::Other);
    }
}
