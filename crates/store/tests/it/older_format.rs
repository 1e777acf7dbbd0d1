//! Journals of earlier formats: read as they are, and brought up to date by the first host that starts on them.

use std::path::Path;

use rusqlite::{Connection, params};
use toolpost_core::{GENESIS, Query, RecordKind, StoredRecord, ToolQueryPattern, chain};
use toolpost_store::{JournalReadError, JournalReader};

use super::{Journal, Record, append, call, open, record, tampering::verify};

/// The first format, as it was released.
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
PRAGMA application_id = 1414548044;
PRAGMA user_version = 1;
";

/// A journal of the first format with a start, an ended call, an open one and a call that was all in one record.
fn make(path: &Path) -> Vec<StoredRecord> {
    let raw = Connection::open(path).unwrap();
    raw.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    raw.execute_batch(VERSION_1).unwrap();
    let [accepted, started, ended] = call();
    let [open, ..] = call();
    let body =
        r#"{"call":{"tool":"nothing_like_it","principal":"bob"},"result":{"outcome":"failed"}}"#;
    let at_once = Record {
        body: body.into(),
        request: None,
        ..call()[2].clone()
    };
    let records = [
        record(RecordKind::HostStarted, "{}"),
        accepted,
        started,
        open,
        ended,
        at_once,
    ];
    let mut previous = GENESIS;
    let mut stored = Vec::new();
    for (mut record, seq) in records.into_iter().zip(1_u64..) {
        record.facets = None;
        previous = chain(&previous, seq, &record);
        let request = record.request.as_ref();
        let values = params![
            seq.cast_signed(),
            record.kind.as_str(),
            record.at.as_microsecond(),
            record
                .invocation_id
                .as_ref()
                .map(|id| id.as_bytes().as_slice()),
            record.session_id.as_ref().map(|id| id.as_str().to_owned()),
            request.map(|request| request.id.as_str().to_owned()),
            request.map(|request| request.digest.as_slice()),
            previous.as_slice(),
            record.body,
        ];
        raw.execute(
            "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            values,
        )
        .unwrap();
        stored.push(StoredRecord {
            seq,
            record,
            hash: previous,
        });
    }
    stored
}

#[tokio::test]
async fn the_first_format_is_brought_up_to_date_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let written = make(&path);
    let journal = open(&path);
    assert_eq!(journal.read(0, 100).await.unwrap(), written);
    let check = async |query: Query, expected: &[u64]| {
        let found = journal.find(query.clone()).await.unwrap();
        assert_eq!(
            found.iter().map(|row| row.seq).collect::<Vec<_>>(),
            expected,
            "{query:?}"
        );
    };
    check(Query::newest(9), &[6, 5, 4]).await;
    check(
        Query {
            tool: Some(ToolQueryPattern::new("write")),
            ..Query::newest(9)
        },
        &[5, 4],
    )
    .await;
    check(
        Query {
            principal: Some("bob".into()),
            ..Query::newest(9)
        },
        &[6],
    )
    .await;
    check(
        Query {
            correlation: Some("trace".into()),
            ..Query::newest(9)
        },
        &[5, 4],
    )
    .await;
    assert_eq!(
        append(&journal, record(RecordKind::HostStarted, "{}"))
            .await
            .unwrap(),
        7
    );
    drop(journal);
    let report = verify(&path);
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.records, 7);
    drop(open(&path));
}

#[test]
fn the_first_format_can_be_read_and_checked_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let written = make(&path);
    let before = std::fs::read(&path).unwrap();
    let reader = JournalReader::open(&path).unwrap();
    assert_eq!(reader.read(0, 100).unwrap(), written);
    let report = reader.verify(|_, _| {}).unwrap();
    assert!(
        report.is_clean() && report.records == 6,
        "{:?}",
        report.problems
    );
    assert!(matches!(
        reader.find(&Query::newest(1)),
        Err(JournalReadError::OlderFormat)
    ));
    drop(reader);
    assert!(
        std::fs::read(&path).unwrap() == before,
        "looking changed the file"
    );
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP TRIGGER record_is_not_changed; UPDATE record SET body = '{}' WHERE seq = 3",
    )
    .unwrap();
    drop(raw);
    assert_eq!(verify(&path).first_bad(), Some(3));
}
