//! The schema of the database, its migrations, and the setup of connections.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig, ffi};

use super::{JournalOpenError, facet};
use crate::disk;

/// `TPJL`. A database of another program is neither read nor changed.
const APPLICATION_ID: i32 = 0x5450_4a4c;

/// The entry at each index migrates from that version to the next. Never edit a released entry: append another.
const MIGRATIONS: [&str; 2] = [VERSION_1, VERSION_2];

/// `hash` is before `body`, so that reading the chain's end need not follow a large body's pages.
///
/// Every index but the first is partial. A call costs one to three rows, and a row pays only for the indexes that can
/// find it. The triggers refuse changes of a row, against honest mistakes; the chain is the defence against other ones.
const VERSION_1: &str = "
CREATE TABLE record (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    invocation BLOB,
    session TEXT,
    request TEXT,
    request_digest BLOB,
    hash BLOB NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX record_of_invocation ON record (invocation) WHERE invocation IS NOT NULL;
CREATE INDEX record_of_request ON record (session, request) WHERE request IS NOT NULL;
CREATE INDEX record_of_session ON record (session) WHERE kind IN ('session_opened', 'session_closed');
CREATE INDEX record_of_start ON record (kind) WHERE kind = 'host_started';
CREATE TRIGGER record_is_not_changed BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER record_is_not_deleted BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
";

/// Facets for searches, and the removal of the oldest records.
///
/// Facets are in a table of their own: a scan of all of them then reads a tenth of the file, no old row had to be
/// rewritten for them, and a record without a call costs nothing extra. The number of the last removed record is the
/// only value that ever changes, and only forward; records up to it may be deleted.
const VERSION_2: &str = "
CREATE TABLE facet (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    session TEXT,
    tool TEXT NOT NULL,
    principal TEXT NOT NULL,
    outcome TEXT,
    correlation TEXT
) STRICT;
CREATE INDEX facet_of_tool ON facet (tool);
CREATE INDEX facet_of_session ON facet (session);
CREATE INDEX facet_of_correlation ON facet (correlation) WHERE correlation IS NOT NULL;
CREATE INDEX record_of_context ON record (kind) WHERE kind IN ('catalog', 'surface', 'pruned');
CREATE TABLE anchor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    up_to INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER facet_is_not_changed BEFORE UPDATE ON facet
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER facet_is_not_deleted BEFORE DELETE ON facet
WHEN OLD.seq > coalesce((SELECT up_to FROM anchor), 0)
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER anchor_moves_forward BEFORE UPDATE ON anchor
WHEN NEW.up_to <= OLD.up_to
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER anchor_is_not_deleted BEFORE DELETE ON anchor
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
DROP TRIGGER record_is_not_deleted;
CREATE TRIGGER record_is_not_deleted BEFORE DELETE ON record
WHEN OLD.seq > coalesce((SELECT up_to FROM anchor), 0)
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
";

/// One writer with many dirty pages at a commit, and readers that look at a few pages each: the whole host should stay
/// under 20 MB while idle.
const WRITER_CACHE_KIB: i64 = 2048;
const READER_CACHE_KIB: i64 = 1024;

enum DatabaseIdentity {
    Empty,
    Version(usize),
    Newer(i64),
    Foreign,
}

pub(super) fn open_for_writing(
    path: &Path,
    max_bytes: u64,
) -> Result<Connection, JournalOpenError> {
    let sqlite = |source| sqlite_error(path, source);
    disk::create_private_file(path).map_err(|source| JournalOpenError::Io {
        path: path.to_path_buf(),
        source,
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    // Checked before the first setting, because a setting might already change a foreign file.
    let version = known_version(path, &connection)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(sqlite)?;
    if mode != "wal" {
        return Err(JournalOpenError::NoLog {
            path: path.to_path_buf(),
        });
    }
    set_up_writer(&connection, max_bytes).map_err(sqlite)?;
    migrate(&mut connection, version).map_err(|source| match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => JournalOpenError::NoRoom {
            path: path.to_path_buf(),
            max_bytes,
        },
        _ => sqlite(source),
    })?;
    Ok(connection)
}

/// A connection that cannot change the file, whether a host runs, has ended or was killed.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, JournalOpenError> {
    if let disk::PathKind::Nothing = disk::look(path).map_err(|source| JournalOpenError::Io {
        path: path.to_path_buf(),
        source,
    })? {
        return Err(JournalOpenError::Missing {
            path: path.to_path_buf(),
        });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(|source| sqlite_error(path, source))?;
    match known_version(path, &connection) {
        Err(JournalOpenError::Sqlite { source, .. }) if cannot_open(&source) => {
            open_as_unchanging(path, flags)
        }
        Err(error) => Err(error),
        Ok(_) => set_up_reader(path, connection),
    }
}

/// On a read-only disk SQLite cannot create the log's index, even where there is no log. There is no other writer on
/// such a disk either, so the file may be opened as immutable; but that ignores a log, where one exists.
fn open_as_unchanging(path: &Path, flags: OpenFlags) -> Result<Connection, JournalOpenError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let left = disk::length(Path::new(&log)).map_err(|source| JournalOpenError::Io {
        path: path.to_path_buf(),
        source,
    })?;
    if left > 0 {
        return Err(JournalOpenError::UnfinishedLog {
            path: path.to_path_buf(),
        });
    }
    let connection =
        Connection::open_with_flags(unchanging_address(path), flags | OpenFlags::SQLITE_OPEN_URI)
            .map_err(|source| sqlite_error(path, source))?;
    known_version(path, &connection)?;
    set_up_reader(path, connection)
}

fn unchanging_address(path: &Path) -> String {
    const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'_')
        .remove(b'.');
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), UNSAFE);
    format!("file:{path}?immutable=1")
}

/// The version of a Toolpost database, 0 for an empty file.
fn known_version(path: &Path, connection: &Connection) -> Result<usize, JournalOpenError> {
    let path = path.to_path_buf();
    match identify(connection) {
        Ok(DatabaseIdentity::Empty) if connection.is_readonly("main").unwrap_or(true) => {
            Err(JournalOpenError::Missing { path })
        }
        Ok(DatabaseIdentity::Empty) => Ok(0),
        Ok(DatabaseIdentity::Version(version)) => Ok(version),
        Ok(DatabaseIdentity::Newer(found)) => Err(JournalOpenError::Newer {
            path,
            found,
            known: MIGRATIONS.len() as i64,
        }),
        Ok(DatabaseIdentity::Foreign) => Err(JournalOpenError::Foreign { path }),
        Err(source) if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(JournalOpenError::Foreign { path })
        }
        Err(source) => Err(JournalOpenError::Sqlite { path, source }),
    }
}

fn identify(connection: &Connection) -> rusqlite::Result<DatabaseIdentity> {
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, usize::try_from(version)) {
        (0, Ok(0)) if objects == 0 => DatabaseIdentity::Empty,
        (APPLICATION_ID, Ok(known @ 1..=MIGRATIONS_LEN)) => DatabaseIdentity::Version(known),
        (APPLICATION_ID, Ok(later)) if later > MIGRATIONS_LEN => DatabaseIdentity::Newer(version),
        _ => DatabaseIdentity::Foreign,
    })
}

/// The last version without searchable facets.
const WITHOUT_FACETS: usize = 1;

const MIGRATIONS_LEN: usize = MIGRATIONS.len();

fn migrate(connection: &mut Connection, from: usize) -> rusqlite::Result<()> {
    if from == MIGRATIONS_LEN {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (version, migration) in MIGRATIONS.iter().enumerate().skip(from) {
        transaction.execute_batch(migration)?;
        if version == WITHOUT_FACETS && from > 0 {
            tracing::info!("bringing an older journal up to date; this reads all of it once");
        }
    }
    facet::catch_up(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS_LEN as i64)?;
    transaction.commit()
}

fn set_up_writer(connection: &Connection, max_bytes: u64) -> rusqlite::Result<()> {
    let page: u64 = connection
        .pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?
        .cast_unsigned();
    let pages = (max_bytes / page.max(1)).clamp(1, u64::from(u32::MAX) - 1);
    connection.pragma_update_and_check(None, "max_page_count", pages.cast_signed(), |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    // The writer checkpoints by itself, after it has sent its answers.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    // A log that a burst or a slow reader made long is shortened when it next starts over.
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_KEPT_BYTES, |_| Ok(()))?;
    connection.pragma_update(None, "trusted_schema", false)
}

const LOG_KEPT_BYTES: i64 = 32 << 20;

fn set_up_reader(path: &Path, connection: Connection) -> Result<Connection, JournalOpenError> {
    let set = connection
        .pragma_update(None, "cache_size", -READER_CACHE_KIB)
        .and_then(|()| connection.pragma_update(None, "trusted_schema", false))
        // With partial indexes a plan would depend on the values, and SQLite would prepare it again for each of them.
        .and_then(|()| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true));
    set.map_err(|source| sqlite_error(path, source))?;
    Ok(connection)
}

/// The names of tables, indexes and triggers that are missing, additional or different from those of the file's
/// version.
pub(crate) fn schema_differences(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let fresh = Connection::open_in_memory()?;
    for migration in &MIGRATIONS[..version(connection)?] {
        fresh.execute_batch(migration)?;
    }
    let expected = schema_of(&fresh)?;
    let found = schema_of(connection)?;
    let missing = expected.iter().filter(|object| !found.contains(object));
    let added = found.iter().filter(|object| !expected.contains(object));
    let mut names: Vec<String> = missing.chain(added).map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The version of an open journal; an older one is read without a migration.
fn version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(0).min(MIGRATIONS_LEN))
}

/// Whether the journal's version has facets and an anchor.
pub(crate) fn has_facets(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? > WITHOUT_FACETS)
}

fn schema_of(connection: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
    let objects = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    objects.collect()
}

fn cannot_open(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            failure.code == ErrorCode::CannotOpen
                || failure.extended_code == ffi::SQLITE_READONLY_CANTINIT
        }
        _ => false,
    }
}

fn sqlite_error(path: &Path, source: rusqlite::Error) -> JournalOpenError {
    JournalOpenError::Sqlite {
        path: path.to_path_buf(),
        source,
    }
}
