//! The CLI's view, beside a host that writes.

use std::{sync::Arc, time::Duration};

use rusqlite::Connection;
use toolpost_core::Query;
use toolpost_store::{JournalOpenError, JournalReader, SealedHead};

use super::{AppendStrength, Journal, RecordKind, append, call, fill, open, record};

#[tokio::test]
async fn a_reader_beside_a_host_sees_each_record_as_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let reader = JournalReader::open(&path).unwrap();
    assert_eq!(
        (reader.last_seq().unwrap(), reader.tail(5).unwrap().len()),
        (0, 0)
    );
    fill(&journal).await;
    assert_eq!(reader.last_seq().unwrap(), 7);
    assert_eq!(
        reader.read(0, 100).unwrap(),
        journal.read(0, 100).await.unwrap()
    );
    let tail: Vec<u64> = reader.tail(3).unwrap().iter().map(|row| row.seq).collect();
    assert_eq!(tail, [5, 6, 7]);
    let id = reader.tail(1).unwrap()[0].record.invocation_id.unwrap();
    assert_eq!(
        reader.records_of(id).unwrap(),
        journal.records_of(id).await.unwrap()
    );
    drop(journal);
    assert_eq!(
        reader.last_seq().unwrap(),
        7,
        "the host's end takes nothing away"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifying_beside_a_host_finds_a_whole_chain_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Arc::new(open(&path));
    fill(&*journal).await;
    let writing = tokio::spawn({
        let journal = journal.clone();
        async move {
            for _ in 0..3000 {
                journal
                    .append(record(RecordKind::Ended, "{}"), AppendStrength::Committed)
                    .await
                    .unwrap();
            }
        }
    });
    let reader = JournalReader::open(&path).unwrap();
    while !writing.is_finished() {
        let report = reader.verify(|_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
    writing.await.unwrap();
    assert_eq!(reader.verify(|_, _| {}).unwrap().records, 3007);
}

#[tokio::test]
async fn a_report_counts_calls_and_names_the_open_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    fill(&journal).await;
    let [accepted, started, _] = call();
    let open_id = accepted.invocation_id.unwrap();
    append(&journal, accepted).await.unwrap();
    append(&journal, started).await.unwrap();
    let mut heard = Vec::new();
    let report = JournalReader::open(&path)
        .unwrap()
        .verify(|done, total| heard.push((done, total)))
        .unwrap();
    assert_eq!((report.records, report.invocations), (9, 3));
    assert_eq!(report.open_invocations, [open_id]);
    let head = SealedHead {
        seq: Some(9),
        hash: journal.read(8, 1).await.unwrap()[0].hash,
    };
    assert_eq!(report.head, head);
    assert_eq!(report.first, Some(record(RecordKind::Ended, "").at));
    assert_eq!(heard, [(9, 9)]);
}

#[test]
fn what_is_not_there_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    assert!(matches!(
        JournalReader::open(&path).err().unwrap(),
        JournalOpenError::Missing { .. }
    ));
    assert!(!path.exists(), "looking made a file");
    std::fs::write(&path, "").unwrap();
    assert!(
        matches!(
            JournalReader::open(&path).err().unwrap(),
            JournalOpenError::Missing { .. }
        ),
        "an empty file"
    );
    assert!(JournalReader::open(folder.path()).is_err(), "a directory");
}

/// Whoever looks for calls beside a host that is quiet need not read them all.
#[tokio::test]
async fn a_host_that_is_quiet_writes_what_calls_are_looked_for_by() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let raw = Connection::open(&path).unwrap();
    for last in [7, 14] {
        fill(&journal).await;
        let newest = || {
            raw.query_row("SELECT max(seq) FROM facet", [], |row| {
                row.get::<_, Option<i64>>(0)
            })
            .unwrap()
        };
        let mut looks = 0;
        while newest() != Some(last) {
            looks += 1;
            assert!(looks < 1000, "the table still ends at {:?}", newest());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn pages_show_each_call_once_also_while_the_table_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    for _ in 0..5 {
        fill(&journal).await;
    }
    assert_eq!(journal.find(Query::newest(100)).await.unwrap().len(), 10);
    for _ in 0..5 {
        fill(&journal).await;
    }
    let expected: Vec<u64> = journal
        .read(0, 100)
        .await
        .unwrap()
        .iter()
        .rev()
        .map(|row| row.seq)
        .filter(|seq| [4, 0].contains(&(seq % 7)))
        .collect();
    let reader = JournalReader::open(&path).unwrap();
    for limit in [1, 3, 7, 20, 100] {
        let mut pages = reader.find_pages(Query::newest(limit)).unwrap();
        let mut found = Vec::new();
        loop {
            let page = pages.next_page().unwrap();
            found.extend(page.iter().map(|row| row.seq));
            // The host writes what the table lacked.
            assert_eq!(journal.find(Query::newest(100)).await.unwrap().len(), 20);
            if page.len() < limit {
                break;
            }
        }
        assert_eq!(found, expected, "in pages of {limit}");
    }
}
