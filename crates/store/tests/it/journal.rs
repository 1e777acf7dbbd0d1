//! The suite every journal passes, and what only a journal on disk can do: be opened again.

use rusqlite::Connection;
use toolpost_testkit::journal_suite;

use super::{
    AppendStrength, Journal, JournalOpenError, MemoryJournal, ROOMY, Record, RecordKind, SessionId,
    SqliteJournal, append, call, fill, open, record,
};
use toolpost_core::{Query, ToolQueryPattern};
use toolpost_store::JournalReader;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_suite_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicU32::new(0);
    journal_suite(async || {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        open(&folder.path().join(format!("{number}.db")))
    })
    .await;
}

#[tokio::test]
async fn the_suite_in_memory() {
    journal_suite(async || MemoryJournal::default()).await;
}

#[tokio::test]
async fn opening_again_keeps_numbers_and_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    for round in 0..3 {
        let journal = open(&path);
        assert_eq!(
            journal.last_start().await.unwrap(),
            if round == 0 { 0 } else { 7 * round - 6 }
        );
        fill(&journal).await;
        drop(journal);
        assert!(
            !folder.path().join("journal.db-wal").exists(),
            "a clean end leaves no log"
        );
    }
    let report = JournalReader::open(&path)
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert_eq!(report.problems.len(), 0, "{:?}", report.problems);
    assert_eq!(
        (
            report.records,
            report.invocations,
            report.open_invocations.len()
        ),
        (21, 6, 0)
    );
}

#[tokio::test]
async fn dropping_the_journal_writes_what_is_queued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    // Nobody polls these: they are in the queue, and that is all.
    for _ in 0..500 {
        drop(journal.append(
            record(RecordKind::HostStarted, "{}"),
            AppendStrength::Committed,
        ));
    }
    drop(journal);
    assert_eq!(JournalReader::open(&path).unwrap().last_seq().unwrap(), 500);
}

#[tokio::test]
async fn a_record_that_cannot_be_kept_is_refused_and_hurts_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder.path().join("journal.db"));
    let long = " ".repeat((64 << 20) + 1);
    let refused = append(&journal, record(RecordKind::Ended, &long))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("67108865 bytes"), "{refused}");
    let nameless = Record {
        session_id: Some(SessionId::new("")),
        ..record(RecordKind::Ended, "{}")
    };
    let refused = append(&journal, nameless).await.unwrap_err();
    assert!(
        refused.to_string().contains("empty session id"),
        "{refused}"
    );
    assert_eq!(
        append(&journal, record(RecordKind::Ended, "{}"))
            .await
            .unwrap(),
        1
    );
}

/// A host writes what calls are looked for by after the records. A reader beside it finds them all the same, and so
/// does the host after one that was killed in between.
#[tokio::test]
async fn calls_are_found_before_the_table_knows_of_them_and_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let copy = folder.path().join("copy.db");
    let journal = open(&path);
    fill(&journal).await;
    assert_eq!(journal.find(Query::newest(9)).await.unwrap().len(), 2);
    let [accepted, started, ended] = call();
    append(&journal, accepted).await.unwrap();
    let reader = JournalReader::open(&path).unwrap();
    let seqs = |reader: &JournalReader| {
        let found = reader.find(&Query::newest(9)).unwrap();
        assert!(reader.verify(|_, _| {}).unwrap().is_clean());
        found.iter().map(|row| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(&reader), [8, 7, 4], "an open call");
    // Now the table knows of its beginning, and of its end it does not.
    assert_eq!(journal.find(Query::newest(1)).await.unwrap()[0].seq, 8);
    append(&journal, started).await.unwrap();
    append(&journal, ended).await.unwrap();
    assert_eq!(seqs(&reader), [10, 7, 4]);
    let by_tool = Query {
        tool: Some(ToolQueryPattern::new("files.write")),
        ..Query::newest(1)
    };
    assert_eq!(reader.find(&by_tool).unwrap()[0].seq, 10);
    drop(reader);
    // What a kill leaves behind: the file and its log as they are now.
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(
        folder.path().join("journal.db-wal"),
        folder.path().join("copy.db-wal"),
    )
    .unwrap();
    let after = open(&copy);
    let found = after.find(Query::newest(9)).await.unwrap();
    assert_eq!(
        found.iter().map(|row| row.seq).collect::<Vec<_>>(),
        [10, 7, 4]
    );
    drop(after);
    assert!(
        JournalReader::open(&copy)
            .unwrap()
            .verify(|_, _| {})
            .unwrap()
            .is_clean()
    );
}

#[test]
fn the_database_itself_refuses_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(fill(&open(&path)));
    let raw = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE record SET body = '{}' WHERE seq = 2",
        "DELETE FROM record",
        "DELETE FROM record WHERE seq = 7",
        "UPDATE facet SET tool = 'x'",
        "DELETE FROM facet",
    ] {
        let error = raw.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{sql}: {error}");
    }
}

#[tokio::test]
async fn two_writers_of_one_file_cannot_fork_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let one = open(&path);
    let other = open(&path);
    append(&one, record(RecordKind::HostStarted, "{}"))
        .await
        .unwrap();
    let error = append(&other, record(RecordKind::HostStarted, "{}"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    for record in call() {
        append(&one, record).await.unwrap();
    }
    let report = JournalReader::open(&path)
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert!(report.is_clean() && report.records == 4, "{report:?}");
}

#[test]
fn a_foreign_or_newer_file_is_refused_and_left_as_it_is() {
    let check = |prepare: &dyn Fn(&std::path::Path), expected: fn(&JournalOpenError) -> bool| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        prepare(&path);
        let before = std::fs::read(&path).unwrap();
        let written = SqliteJournal::open(&path, ROOMY).err().unwrap();
        let read = JournalReader::open(&path).err().unwrap();
        assert!(expected(&written), "{written:?}");
        assert!(expected(&read), "{read:?}");
        assert!(
            std::fs::read(&path).unwrap() == before,
            "the file was changed"
        );
    };
    let sql = |text: &'static str| {
        move |path: &std::path::Path| Connection::open(path).unwrap().execute_batch(text).unwrap()
    };
    let foreign = |error: &JournalOpenError| matches!(error, JournalOpenError::Foreign { .. });
    check(&sql("CREATE TABLE mine (a)"), foreign);
    check(
        &sql("PRAGMA application_id = 7; CREATE TABLE record (a)"),
        foreign,
    );
    check(
        &sql("PRAGMA user_version = 1; CREATE TABLE record (a)"),
        foreign,
    );
    check(
        &|path| std::fs::write(path, "dear diary, today I was not a database at all").unwrap(),
        foreign,
    );
    let newer = |path: &std::path::Path| {
        drop(open(path));
        Connection::open(path)
            .unwrap()
            .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA user_version = 99")
            .unwrap();
    };
    check(&newer, |error| {
        matches!(
            error,
            JournalOpenError::Newer {
                found: 99,
                known: 2,
                ..
            }
        )
    });
}

#[test]
fn a_damaged_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(fill(&open(&path)));
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP TRIGGER record_is_not_changed; UPDATE record SET hash = x'00' WHERE seq = 7",
    )
    .unwrap();
    drop(raw);
    let error = SqliteJournal::open(&path, ROOMY).err().unwrap();
    assert!(
        matches!(error, JournalOpenError::Damaged { .. }),
        "{error:?}"
    );
}

#[test]
fn lookups_use_their_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(open(&path));
    let raw = Connection::open(&path).unwrap();
    let check = |condition: &str, index: &str| {
        let sql = format!("EXPLAIN QUERY PLAN SELECT * FROM record WHERE {condition}");
        let mut statement = raw.prepare(&sql).unwrap();
        let plan: Vec<String> = statement
            .query_map([], |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(
            plan.len() == 1 && plan[0].contains(index),
            "{condition}: {plan:?}"
        );
    };
    // As in `journal/query.rs`; a scan or a sort would be a second line of the plan, or another name in it.
    check("invocation = x'00' ORDER BY seq", "record_of_invocation");
    check(
        "session = 's' AND request = 'r' ORDER BY seq LIMIT 1",
        "record_of_request",
    );
    check(
        "session = 's' AND kind IN ('session_opened', 'session_closed') ORDER BY seq DESC LIMIT 1",
        "record_of_session",
    );
    check(
        "kind = 'host_started' ORDER BY seq DESC LIMIT 1",
        "record_of_start",
    );
    check("seq > 7 ORDER BY seq LIMIT 3", "INTEGER PRIMARY KEY");
    check(
        "seq > 7 AND seq <= 9 AND session = 's' ORDER BY seq LIMIT 3",
        "INTEGER PRIMARY KEY",
    );
    check(
        "kind IN ('catalog', 'surface', 'pruned') AND kind = 'catalog' AND seq < 7 ORDER BY seq DESC LIMIT 1",
        "record_of_context",
    );
}
