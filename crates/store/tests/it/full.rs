//! No room: by the journal's own limit, and on a real disk that is full and later is not.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use toolpost_core::{Query, Record, RetentionCut};
use toolpost_store::JournalReader;

use super::{
    AppendStrength, Journal, JournalError, JournalOptions, RecordKind, SqliteJournal, append, call,
    open, record,
};

const BODY: usize = 20_000;

fn body() -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(BODY))
}

/// Appends until it fails, and tells how many went in and why it ended.
async fn fill_up(journal: &impl Journal) -> (u64, JournalError) {
    let mut count = 0;
    loop {
        match append(journal, record(RecordKind::Ended, &body())).await {
            Ok(_) => count += 1,
            Err(error) => return (count, error),
        }
        assert!(count < 10_000, "it never gets full");
    }
}

fn assert_whole(path: &Path, records: u64) {
    let report = JournalReader::open(path)
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.records, records);
}

#[tokio::test]
async fn the_limit_is_an_error_that_names_itself_and_a_higher_one_helps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path, JournalOptions { max_bytes: 1 << 20 }).unwrap();
    let (count, error) = fill_up(&journal).await;
    assert!(
        count > 30,
        "{count} records of {BODY} bytes are far from 1 MiB"
    );
    let JournalError::Full(text) = &error else {
        panic!("{error:?}")
    };
    for part in [
        path.to_str().unwrap(),
        "1048576",
        "`limits.journal`",
        "`toolpost journal prune`",
        "`retention.journal`",
    ] {
        assert!(text.contains(part), "`{part}` is missing from: {text}");
    }
    let (more, error) = fill_up(&journal).await;
    assert!(
        more == 0 && matches!(error, JournalError::Full(_)),
        "{more} {error:?}"
    );
    assert_eq!(
        journal.read(0, usize::MAX).await.unwrap().len() as u64,
        count,
        "it can still be read"
    );
    drop(journal);
    assert!(std::fs::metadata(&path).unwrap().len() <= 1 << 20);
    assert_whole(&path, count);

    let journal = open(&path);
    assert_eq!(
        append(&journal, record(RecordKind::Ended, &body()))
            .await
            .unwrap(),
        count + 1
    );
    drop(journal);
    assert_whole(&path, count + 1);
}

/// When there is no room left is when the oldest must be able to go.
#[tokio::test]
async fn a_full_journal_can_be_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let options = JournalOptions { max_bytes: 1 << 20 };
    let journal = SqliteJournal::open(&path, options).unwrap();
    let (count, _) = fill_up(&journal).await;
    // Until not even the smallest fits.
    let mut small = 0;
    while append(&journal, record(RecordKind::HostStarted, "{}"))
        .await
        .is_ok()
    {
        small += 1;
        assert!(small < 100_000, "it never gets full");
    }
    let cut = |up_to, restated| RetentionCut {
        up_to,
        at: record(RecordKind::Ended, "").at,
        why: "a test".into(),
        restated,
    };
    let told_again = vec![record(RecordKind::Catalog, &body())];
    let pruned = journal.prune(cut(10, told_again)).await.unwrap().unwrap();
    assert_eq!((pruned.up_to, pruned.records), (10, 10));
    drop(journal);
    // The same after a start.
    let journal = SqliteJournal::open(&path, options).unwrap();
    fill_up(&journal).await;
    assert_eq!(
        journal
            .prune(cut(20, Vec::new()))
            .await
            .unwrap()
            .unwrap()
            .records,
        10
    );
    assert!(
        append(&journal, record(RecordKind::Ended, &body()))
            .await
            .is_ok()
    );
    drop(journal);
    let report = JournalReader::open(&path)
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert!(report.records > count - 20, "{}", report.records);
}

#[tokio::test]
async fn calls_in_a_full_journal_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path, JournalOptions { max_bytes: 1 << 20 }).unwrap();
    let mut count = 0;
    loop {
        let [begin, _, end] = call();
        // The end is all there is of it, so it tells the whole.
        let body = begin
            .body
            .replacen('{', "{\"result\":{\"outcome\":\"succeeded\"},", 1);
        if journal
            .append(Record { body, ..end }, AppendStrength::Committed)
            .await
            .is_err()
        {
            break;
        }
        count += 1;
        assert!(count < 100_000, "it never gets full");
    }
    // There is no room for what they are looked for by.
    assert_eq!(
        journal.find(Query::newest(usize::MAX)).await.unwrap().len(),
        count
    );
    assert_eq!(
        journal.find(Query::newest(3)).await.unwrap()[0].seq,
        count as u64
    );
}

#[test]
fn a_limit_too_low_for_any_journal_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let error = SqliteJournal::open(&path, JournalOptions { max_bytes: 4096 })
        .err()
        .unwrap();
    assert!(error.to_string().contains("`limits.journal`"), "{error:?}");
}

#[tokio::test]
async fn small_records_find_room_where_a_large_one_did_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path, JournalOptions { max_bytes: 1 << 20 }).unwrap();
    append(&journal, record(RecordKind::Ended, "{}"))
        .await
        .unwrap();
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(2 << 20));
    let error = append(&journal, record(RecordKind::Ended, &large))
        .await
        .unwrap_err();
    assert!(matches!(error, JournalError::Full(_)), "{error:?}");
    assert_eq!(
        append(&journal, record(RecordKind::Ended, "{}"))
            .await
            .unwrap(),
        2
    );
    drop(journal);
    assert_whole(&path, 2);
}

/// A small disk of its own, where this user may mount one.
pub(super) struct SmallDisk(pub(super) PathBuf);

impl SmallDisk {
    pub(super) fn mount(at: &Path) -> Option<Self> {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(at)
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(at.to_path_buf())),
            Ok(output) => {
                eprintln!(
                    "skipped, as no disk can be mounted: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                );
                None
            }
            Err(error) => {
                eprintln!("skipped, as there is no `mount`: {error}");
                None
            }
        }
    }

    fn make_read_only(&self) {
        assert!(
            Command::new("mount")
                .args(["-o", "remount,ro"])
                .arg(&self.0)
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_an_error_until_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return;
    };
    let path = disk.0.join("journal.db");
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![1; 2 << 20]).unwrap();
    let journal = open(&path);
    let (before, error) = fill_up(&journal).await;
    let JournalError::Full(text) = &error else {
        panic!("{error:?}")
    };
    assert!(text.contains("disk"), "{text}");
    let (more, _) = fill_up(&journal).await;

    std::fs::remove_file(&ballast).unwrap();
    let (after, error) = fill_up(&journal).await;
    assert!(after > 10, "with 2 MiB more, {after} records went in");
    assert!(matches!(error, JournalError::Full(_)), "{error:?}");
    assert_eq!(
        journal.read(0, usize::MAX).await.unwrap().len() as u64,
        before + more + after
    );
    // Even with no room to copy the log at the end, nothing is lost.
    drop(journal);
    assert_whole(&path, before + more + after);
}

#[tokio::test]
async fn a_journal_on_a_disk_that_cannot_be_written_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return;
    };
    let path = disk.0.join("journal.db");
    let journal = open(&path);
    append(&journal, record(RecordKind::HostStarted, "{}"))
        .await
        .unwrap();
    // As after a kill: the log and its index are there, and nobody holds them.
    let left = ["", "-wal", "-shm"].map(|suffix| {
        let name = format!("{}{suffix}", path.display());
        (name.clone(), std::fs::read(name).unwrap())
    });
    drop(journal);
    let copies = tempfile::tempdir_in(folder.path()).unwrap();
    for (place, keep) in [("clean", 0), ("killed", 3), ("copied", 2)] {
        std::fs::create_dir(copies.path().join(place)).unwrap();
        let to = |name: &str| {
            copies
                .path()
                .join(place)
                .join(Path::new(name).file_name().unwrap())
        };
        if keep == 0 {
            std::fs::copy(&path, to(&left[0].0)).unwrap();
        }
        for (name, bytes) in &left[..keep] {
            std::fs::write(to(name), bytes).unwrap();
        }
    }
    disk.make_read_only();
    assert_whole(&path, 1);
    assert_whole(&copies.path().join("clean/journal.db"), 1);
    assert_whole(&copies.path().join("killed/journal.db"), 1);
    let error = JournalReader::open(&copies.path().join("copied/journal.db"))
        .err()
        .unwrap();
    assert!(
        matches!(
            error,
            toolpost_store::JournalOpenError::UnfinishedLog { .. }
        ),
        "{error:?}"
    );
}
