//! The CLI's view, beside a host that writes.

use std::sync::Arc;

use toolpost_store::{JournalReader, OpenError, SealedHead};

use super::{Journal, RecordKind, Strength, append, call, fill, open, record};

#[tokio::test]
async fn a_reader_beside_a_host_sees_each_record_as_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let reader = JournalReader::open(&path).unwrap();
    assert_eq!((reader.last_seq().unwrap(), reader.tail(5).unwrap().len()), (0, 0));
    fill(&journal).await;
    assert_eq!(reader.last_seq().unwrap(), 7);
    assert_eq!(reader.read(0, 100).unwrap(), journal.read(0, 100).await.unwrap());
    let tail: Vec<u64> = reader.tail(3).unwrap().iter().map(|row| row.seq).collect();
    assert_eq!(tail, [5, 6, 7]);
    let id = reader.tail(1).unwrap()[0].record.invocation_id.unwrap();
    assert_eq!(reader.records_of(id).unwrap(), journal.records_of(id).await.unwrap());
    drop(journal);
    assert_eq!(reader.last_seq().unwrap(), 7, "the host's end takes nothing away");
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
                journal.append(record(RecordKind::Ended, "{}"), Strength::Committed).await.unwrap();
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
    let report = JournalReader::open(&path).unwrap().verify(|done, total| heard.push((done, total))).unwrap();
    assert_eq!((report.records, report.invocations), (9, 3));
    assert_eq!(report.open_invocations, [open_id]);
    let head = SealedHead { seq: Some(9), hash: journal.read(8, 1).await.unwrap()[0].hash };
    assert_eq!(report.head, head);
    assert_eq!(report.first, Some(record(RecordKind::Ended, "").at));
    assert_eq!(heard, [(9, 9)]);
}

#[test]
fn what_is_not_there_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    assert!(matches!(JournalReader::open(&path).err().unwrap(), OpenError::Missing { .. }));
    assert!(!path.exists(), "looking made a file");
    std::fs::write(&path, "").unwrap();
    assert!(matches!(JournalReader::open(&path).err().unwrap(), OpenError::Missing { .. }), "an empty file");
    assert!(JournalReader::open(folder.path()).is_err(), "a directory");
}
