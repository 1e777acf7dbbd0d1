//! The oldest records go from a file, and whoever verifies it sees that they went as they should.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use toolpost_core::{Query, RetentionCut};
use toolpost_store::{JournalFlaw, JournalReader, SealedHead, VerifyConclusion, VerifyOptions};

use super::{
    AppendStrength, Journal, RecordKind, append, call, fill, open, record,
    tampering::{tamper, verify},
};

fn cut(up_to: u64) -> RetentionCut {
    RetentionCut {
        up_to,
        at: record(RecordKind::Ended, "").at,
        why: "a test".into(),
        restated: Vec::new(),
    }
}

/// A journal of fourteen records of which the first four went.
async fn pruned(path: &Path) {
    let journal = open(path);
    fill(&journal).await;
    fill(&journal).await;
    journal.prune(cut(4)).await.unwrap().unwrap();
}

fn flaws(path: &Path) -> Vec<(u64, JournalFlaw)> {
    verify(path)
        .problems
        .into_iter()
        .map(|problem| (problem.seq, problem.what))
        .collect()
}

#[tokio::test]
async fn what_is_left_verifies_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    pruned(&path).await;
    let report = verify(&path);
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(
        (report.records, report.removed_up_to, report.head.seq),
        (11, 4, Some(15))
    );
    assert!(report.removal_is_sound);
    let journal = open(&path);
    fill(&journal).await;
    journal.prune(cut(9)).await.unwrap().unwrap();
    drop(journal);
    let report = verify(&path);
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.removed_up_to, 9);
    let raw = Connection::open(&path).unwrap();
    let before_it: i64 = raw
        .query_row("SELECT count(*) FROM facet WHERE seq <= 9", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(before_it, 0);
}

/// The database lets nobody remove more than the anchor says, nor move it back.
#[tokio::test]
async fn only_what_lies_before_the_anchor_can_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    pruned(&path).await;
    let raw = Connection::open(&path).unwrap();
    for sql in [
        "DELETE FROM record WHERE seq = 5",
        "DELETE FROM facet WHERE seq = 5",
        "UPDATE anchor SET up_to = 3",
        "DELETE FROM anchor",
    ] {
        let error = raw.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_forged_cut_is_found() {
    let check = async |sql: &str, expected: &[(u64, JournalFlaw)]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        pruned(&path).await;
        tamper(&path, sql);
        let found = flaws(&path);
        for flaw in expected {
            assert!(found.contains(flaw), "{sql}: {flaw:?} is not in {found:?}");
        }
        assert!(!found.is_empty(), "{sql}");
        assert!(!verify(&path).removal_is_sound, "{sql}");
    };
    let unvouched = |up_to| (up_to + 1, JournalFlaw::Unvouched { up_to });
    // More was deleted, and the anchor made to fit.
    let further = "UPDATE anchor SET up_to = 6, hash = (SELECT hash FROM record WHERE seq = 6); \
                   DELETE FROM facet WHERE seq <= 6; DELETE FROM record WHERE seq <= 6";
    check(further, &[unvouched(6)]).await;
    // The same without the anchor.
    let more = "DELETE FROM facet WHERE seq <= 6; DELETE FROM record WHERE seq <= 6";
    check(more, &[(7, JournalFlaw::Missing { first: 5, last: 6 })]).await;
    check(
        "UPDATE anchor SET hash = randomblob(32)",
        &[unvouched(4), (5, JournalFlaw::Chain)],
    )
    .await;
    check(
        "UPDATE anchor SET up_to = 3",
        &[
            unvouched(3),
            (5, JournalFlaw::Missing { first: 4, last: 4 }),
        ],
    )
    .await;
    let lost = (15, JournalFlaw::AnchorLost { up_to: 4 });
    check(
        "DELETE FROM anchor",
        &[lost, (5, JournalFlaw::Missing { first: 1, last: 4 })],
    )
    .await;
    let put_back = "INSERT INTO record SELECT 4, kind, at, NULL, NULL, NULL, NULL, hash, body FROM record \
                    WHERE seq = 5";
    check(put_back, &[(4, JournalFlaw::BeforeAnchor)]).await;
    // The record that vouches is made to say something else.
    let said =
        "UPDATE record SET body = replace(body, '\"up_to\":4', '\"up_to\":3') WHERE seq = 15";
    check(said, &[(15, JournalFlaw::Chain), unvouched(4)]).await;
}

/// A journal that never lost a record is not believed when it says that it did.
#[tokio::test]
async fn an_anchor_without_a_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fill(&open(&path)).await;
    let forged = "INSERT INTO anchor SELECT 1, seq, hash FROM record WHERE seq = 4; \
                  DELETE FROM facet WHERE seq <= 4; DELETE FROM record WHERE seq <= 4";
    tamper(&path, forged);
    assert_eq!(flaws(&path), [(5, JournalFlaw::Unvouched { up_to: 4 })]);
}

#[tokio::test]
async fn a_head_that_went_vouches_for_nothing_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    fill(&journal).await;
    let head = |seq: u64, hash| SealedHead {
        seq: Some(seq),
        hash,
    };
    let rows = journal.read(0, 100).await.unwrap();
    let heads: Vec<SealedHead> = rows.iter().map(|row| head(row.seq, row.hash)).collect();
    journal.prune(cut(4)).await.unwrap().unwrap();
    drop(journal);
    let against = |head: &SealedHead| {
        let options = VerifyOptions {
            head: Some(head.clone()),
            ..VerifyOptions::default()
        };
        let report = JournalReader::open(&path)
            .unwrap()
            .verify_with(&options, |_| {})
            .unwrap();
        let verdict = report.verdict();
        assert!(
            verdict != VerifyConclusion::CannotTell || report.removed_head.as_ref() == Some(head)
        );
        (
            verdict,
            report
                .problems
                .into_iter()
                .map(|problem| problem.what)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(against(&heads[2]), (VerifyConclusion::CannotTell, vec![]));
    let without_number = SealedHead {
        seq: None,
        ..heads[2].clone()
    };
    assert_eq!(
        against(&without_number),
        (VerifyConclusion::CannotTell, vec![])
    );
    assert_eq!(
        against(&heads[3]),
        (VerifyConclusion::Clean, vec![]),
        "the last that went is known by its hash"
    );
    assert_eq!(against(&heads[6]), (VerifyConclusion::Clean, vec![]));
    let other = head(4, [7; 32]);
    assert_eq!(
        against(&other),
        (
            VerifyConclusion::Broken,
            vec![JournalFlaw::Head(other.clone())]
        )
    );
    // What was changed besides is not hidden by it.
    tamper(&path, "UPDATE record SET body = '{\"x\":1}' WHERE seq = 6");
    assert_eq!(against(&heads[2]).0, VerifyConclusion::Broken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_beside_a_host_that_removes_records_finds_a_whole_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Arc::new(open(&path));
    for _ in 0..6000 {
        journal
            .append(
                record(RecordKind::HostStarted, "{}"),
                AppendStrength::Committed,
            )
            .await
            .unwrap();
    }
    fill(&*journal).await;
    let pruning = tokio::spawn({
        let journal = journal.clone();
        async move {
            for up_to in (0..6000).step_by(100) {
                journal.prune(cut(up_to)).await.unwrap();
                for record in call() {
                    append(&*journal, record).await.unwrap();
                }
            }
        }
    });
    let reader = JournalReader::open(&path).unwrap();
    while !pruning.is_finished() {
        let report = reader.verify(|_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
    pruning.await.unwrap();
    assert!(reader.verify(|_, _| {}).unwrap().is_clean());
    assert_eq!(journal.find(Query::newest(1000)).await.unwrap().len(), 62);
}
