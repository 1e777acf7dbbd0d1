//! Whoever can write the file can change it; whoever verifies it must see that.

use std::{
    fs::OpenOptions,
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

use rusqlite::Connection;
use toolpost_core::RecordKind;
use toolpost_store::{
    JournalFlaw, JournalReader, SealedHead, SqliteJournal, VerifyOptions, VerifyReport,
};

use super::{ROOMY, append, call, fill, open, record};

/// Takes away what the database does against changes, makes one, and puts the protection back.
pub(super) fn tamper(path: &Path, sql: &str) {
    let raw = Connection::open(path).unwrap();
    let triggers = "SELECT sql FROM sqlite_schema WHERE type = 'trigger'";
    let triggers: Vec<String> = {
        let mut statement = raw.prepare(triggers).unwrap();
        statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    assert_eq!(triggers.len(), 6);
    for trigger in &triggers {
        let name = trigger.split_whitespace().nth(2).unwrap();
        raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    raw.execute_batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    raw.execute_batch(&triggers.join(";")).unwrap();
}

pub(super) fn verify(path: &Path) -> VerifyReport {
    JournalReader::open(path)
        .unwrap()
        .verify(|_, _| {})
        .unwrap()
}

type IsIt = fn(&JournalFlaw) -> bool;

/// Seven records, then the change, then what must be found where.
async fn check(sql: &str, expected: &[(u64, IsIt)]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fill(&open(&path)).await;
    assert!(verify(&path).is_clean());
    tamper(&path, sql);
    let problems = verify(&path).problems;
    for (seq, is_it) in expected {
        let found = problems
            .iter()
            .any(|problem| problem.seq == *seq && is_it(&problem.what));
        assert!(
            found,
            "{sql}: nothing of the kind at record {seq} in {problems:?}"
        );
    }
    assert!(!problems.is_empty(), "{sql}");
}

fn chain(flaw: &JournalFlaw) -> bool {
    *flaw == JournalFlaw::Chain
}

fn column(flaw: &JournalFlaw) -> bool {
    matches!(flaw, JournalFlaw::Column { .. })
}

#[tokio::test]
async fn a_changed_value_in_any_column_is_found() {
    let gap = |flaw: &JournalFlaw| *flaw == JournalFlaw::Missing { first: 7, last: 99 };
    check("UPDATE record SET seq = 100 WHERE seq = 7", &[(100, gap)]).await;
    let body = |flaw: &JournalFlaw| *flaw == JournalFlaw::Body;
    let changes: [(&str, u64, IsIt); 21] = [
        ("kind = 'ended'", 3, chain),
        ("kind = 'endex'", 4, column),
        ("at = at + 1", 2, chain),
        ("at = 9223372036854775807", 2, column),
        ("invocation = randomblob(16)", 4, chain),
        ("invocation = NULL", 4, chain),
        ("invocation = x'00'", 4, column),
        ("session = 'sessioo'", 5, chain),
        ("session = ''", 1, column),
        ("session = CAST(x'ff' AS TEXT)", 5, column),
        ("request = 'requesu'", 2, chain),
        ("request = NULL", 2, column),
        ("request = NULL, request_digest = NULL", 2, chain),
        ("request_digest = randomblob(32)", 2, chain),
        ("body = replace(body, 'ann', 'bob')", 2, chain),
        ("body = body || ' '", 7, chain),
        ("body = '{'", 6, body),
        ("body = '[]'", 6, body),
        ("hash = randomblob(32)", 3, chain),
        ("hash = randomblob(32)", 7, chain),
        ("hash = randomblob(31)", 3, column),
    ];
    for (change, seq, is_it) in changes {
        check(
            &format!("UPDATE record SET {change} WHERE seq = {seq}"),
            &[(seq, is_it)],
        )
        .await;
    }
}

#[tokio::test]
async fn a_removed_swapped_or_inserted_row_is_found() {
    check(
        "DELETE FROM record WHERE seq = 1",
        &[(2, |flaw| {
            *flaw == JournalFlaw::Missing { first: 1, last: 1 }
        })],
    )
    .await;
    check(
        "DELETE FROM record WHERE seq IN (3, 4)",
        &[(5, |flaw| {
            *flaw == JournalFlaw::Missing { first: 3, last: 4 }
        })],
    )
    .await;
    let closed_up =
        "DELETE FROM record WHERE seq = 3; UPDATE record SET seq = seq - 1 WHERE seq > 3";
    check(closed_up, &[(3, chain)]).await;
    let swapped = "UPDATE record SET seq = 99 WHERE seq = 3; UPDATE record SET seq = 3 WHERE seq = 4; \
                   UPDATE record SET seq = 4 WHERE seq = 99";
    check(swapped, &[(3, chain), (4, chain)]).await;
    let insert = |seq: &str| {
        format!(
            "INSERT INTO record SELECT {seq}, kind, at, NULL, session, NULL, NULL, hash, body FROM record WHERE seq = 5"
        )
    };
    check(&insert("8"), &[(8, chain)]).await;
    check(
        &insert("0"),
        &[(0, |flaw| *flaw == JournalFlaw::Number { number: 0 })],
    )
    .await;
    check(
        &insert("-3"),
        &[(0, |flaw| *flaw == JournalFlaw::Number { number: -3 })],
    )
    .await;
    let in_between = format!(
        "UPDATE record SET seq = -seq WHERE seq > 4; UPDATE record SET seq = 1 - seq WHERE seq < 0; {}",
        insert("5").replace("seq = 5", "seq = 6")
    );
    check(&in_between, &[(5, chain), (6, chain)]).await;
}

/// The chain does not cover what calls are looked for by, so that is compared with the bodies.
#[tokio::test]
async fn a_changed_facet_is_found() {
    let facets = |flaw: &JournalFlaw| *flaw == JournalFlaw::Facets;
    let changes = [
        "tool = 'files.read'",
        "principal = 'bob'",
        "outcome = 'failed'",
        "outcome = 'nonsense'",
        "outcome = NULL",
        "correlation = NULL",
        "correlation = 'other'",
        "session = 'other'",
        "at = at + 1",
    ];
    for change in changes {
        check(
            &format!("UPDATE facet SET {change} WHERE seq = 4"),
            &[(4, facets)],
        )
        .await;
    }
    check("DELETE FROM facet WHERE seq = 2", &[(2, facets)]).await;
    check(
        "UPDATE facet SET seq = 3 WHERE seq = 2",
        &[(2, facets), (3, facets)],
    )
    .await;
    check(
        "UPDATE facet SET seq = 100 WHERE seq = 7",
        &[(0, |flaw| matches!(flaw, JournalFlaw::Storage(_)))],
    )
    .await;
}

#[tokio::test]
async fn the_first_bad_record_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fill(&open(&path)).await;
    tamper(
        &path,
        "CREATE TABLE other (a); UPDATE record SET body = '{}' WHERE seq IN (3, 6)",
    );
    let report = verify(&path);
    assert_eq!(report.first_bad(), Some(3));
    let seqs: Vec<u64> = report.problems.iter().map(|problem| problem.seq).collect();
    assert_eq!(
        (seqs[0], seqs[1], *seqs.last().unwrap()),
        (3, 6, 0),
        "{:?}",
        report.problems
    );
}

#[tokio::test]
async fn a_changed_schema_is_found() {
    let schema = |flaw: &JournalFlaw| matches!(flaw, JournalFlaw::Schema { .. });
    check("DROP INDEX record_of_request", &[(0, schema)]).await;
    check("CREATE TABLE other (a)", &[(0, schema)]).await;
    check(
        "CREATE TRIGGER also AFTER INSERT ON record BEGIN SELECT 1; END",
        &[(0, schema)],
    )
    .await;
    let emptied = "CREATE INDEX record_of_request ON record (session, request) WHERE request";
    let hidden = format!(
        "DROP INDEX record_of_request; {emptied} = 'nothing'; PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = '{emptied} IS NOT NULL' WHERE name = 'record_of_request'; \
         PRAGMA writable_schema = RESET"
    );
    check(
        &hidden,
        &[(0, |flaw| matches!(flaw, JournalFlaw::Storage(_)))],
    )
    .await;
}

#[tokio::test]
async fn calls_that_end_twice_or_go_on_after_their_end_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let [accepted, started, ended] = call();
    let id = accepted.invocation_id.unwrap();
    for record in [accepted, ended.clone(), started, ended] {
        append(&journal, record).await.unwrap();
    }
    let problems: Vec<_> = verify(&path)
        .problems
        .into_iter()
        .map(|problem| (problem.seq, problem.what))
        .collect();
    assert_eq!(
        problems,
        [
            (3, JournalFlaw::AfterEnd(id)),
            (4, JournalFlaw::SecondEnd(id))
        ]
    );
}

/// Whoever asked may have been told to come again before a person answered.
#[tokio::test]
async fn an_answer_behind_the_end_of_the_call_that_asked_is_no_flaw_and_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let [accepted, _, ended] = call();
    let of_kind = |kind| toolpost_core::Record {
        kind,
        facets: None,
        ..ended.clone()
    };
    let records = [
        accepted,
        of_kind(RecordKind::Asked),
        ended.clone(),
        of_kind(RecordKind::Decided),
    ];
    for record in records {
        append(&journal, record).await.unwrap();
    }
    let report = verify(&path);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.open_invocations.is_empty());
}

/// Past SQLite: each byte of the file itself is changed in turn, at a distance, and every change that can
/// still be read as a journal of these records must be seen or make no difference to them.
#[tokio::test]
async fn a_flipped_byte_of_the_file_is_found_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fill(&open(&path)).await;
    let before = JournalReader::open(&path).unwrap().read(0, 100).unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let mut harmless = 0;
    let mut caught = 0;
    for place in (0..length).step_by(29) {
        flip(&path, place);
        match JournalReader::open(&path)
            .map(|reader| reader.verify(|_, _| {}).map(|report| (report, reader)))
        {
            Ok(Ok((report, reader))) if report.is_clean() => {
                assert_eq!(reader.read(0, 100).unwrap(), before, "byte {place}");
                harmless += 1;
            }
            Ok(_) | Err(_) => caught += 1,
        }
        flip(&path, place);
    }
    assert!(
        harmless > 0 && caught > 100,
        "{harmless} made no difference, {caught} were caught"
    );
    assert!(verify(&path).is_clean());
}

fn flip(path: &Path, place: u64) {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(place)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(place)).unwrap();
    file.write_all(&[byte[0] ^ 0x20]).unwrap();
}

fn against(path: &Path, head: &SealedHead) -> Vec<(u64, JournalFlaw)> {
    let options = VerifyOptions {
        head: Some(head.clone()),
        ..VerifyOptions::default()
    };
    let report = JournalReader::open(path)
        .unwrap()
        .verify_with(&options, |_| {})
        .unwrap();
    report
        .problems
        .into_iter()
        .map(|problem| (problem.seq, problem.what))
        .collect()
}

/// Everything from record 4 on is written anew, with hashes that follow: a whole chain, and another one.
#[tokio::test]
async fn a_rewritten_tail_shows_against_a_head_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fill(&open(&path)).await;
    let sealed = JournalReader::seal(&path).unwrap();
    tamper(
        &path,
        "DELETE FROM record WHERE seq > 3; DELETE FROM facet WHERE seq > 3",
    );
    let journal = open(&path);
    for record in call()
        .into_iter()
        .chain([record(RecordKind::HostStarted, "{}")])
    {
        append(&journal, record).await.unwrap();
    }
    drop(journal);
    assert!(
        verify(&path)
            .problems
            .iter()
            .all(|problem| !chain(&problem.what)),
        "a chain it is"
    );
    let found = against(&path, &sealed);
    assert!(found.contains(&(7, JournalFlaw::Head(sealed))), "{found:?}");
}

#[tokio::test]
async fn a_cut_end_does_not_show_but_changes_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fill(&open(&path)).await;
    let before = JournalReader::seal(&path).unwrap();
    assert_eq!((verify(&path).head, before.seq), (before.clone(), Some(7)));
    tamper(
        &path,
        "DELETE FROM record WHERE seq = 7; DELETE FROM facet WHERE seq = 7",
    );
    let report = verify(&path);
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_ne!(report.head, before);
    assert_eq!(
        against(&path, &before),
        [(7, JournalFlaw::Head(before.clone()))]
    );
    let without_number = SealedHead {
        seq: None,
        ..before.clone()
    };
    assert_eq!(
        against(&path, &without_number),
        [(0, JournalFlaw::Head(without_number.clone()))]
    );
    assert_eq!(
        against(&path, &report.head),
        [],
        "an older head is still there"
    );
    // And the journal goes on from what is there.
    let journal = SqliteJournal::open(&path, ROOMY).unwrap();
    assert_eq!(
        append(&journal, record(RecordKind::HostStarted, "{}"))
            .await
            .unwrap(),
        7
    );
    drop(journal);
    assert_eq!(
        against(&path, &before),
        [(7, JournalFlaw::Head(before))],
        "another record in its place is not it"
    );
}
