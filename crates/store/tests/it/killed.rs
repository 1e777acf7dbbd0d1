//! A real process that appends until it is killed: what it was told is kept must be there.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use toolpost_store::JournalReader;

use super::{AppendStrength, Journal, Record, RecordKind, open, record};

/// Set in the child: where its journal lies.
const JOURNAL: &str = "TOOLPOST_TEST_JOURNAL_TO_FILL";
const TASKS: u64 = 8;

/// Not a test: the child's whole life, which ends by SIGKILL. Without the variable there is nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_appends_until_it_is_killed() {
    let Some(path) = std::env::var_os(JOURNAL) else {
        return;
    };
    let journal = Arc::new(open(Path::new(&path)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(append_for_ever(journal.clone(), task)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn append_for_ever(journal: Arc<impl Journal>, task: u64) {
    for round in 0_u64.. {
        let strength = if round % 3 == 0 {
            AppendStrength::Synced
        } else {
            AppendStrength::Committed
        };
        let seq = journal
            .append(numbered(task, round), strength)
            .await
            .unwrap();
        // Written at once and past the test harness, which would keep it from the pipe.
        let line = format!("acknowledged {seq} {task} {round}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}

fn numbered(task: u64, round: u64) -> Record {
    record(
        RecordKind::Ended,
        &format!("{{\"task\":{task},\"round\":{round}}}"),
    )
}

/// What one child was told, as (number, task, round).
fn fill_and_kill(path: &Path, least: usize) -> Vec<(u64, u64, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::child_that_appends_until_it_is_killed",
            "--nocapture",
        ])
        .env(JOURNAL, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).split(b'\n') {
        let line = String::from_utf8(line.unwrap()).unwrap();
        // The harness writes its own words before the first of them, on the same line.
        let Some(at) = line.find("acknowledged ") else {
            continue;
        };
        let words: Vec<u64> = line[at..]
            .split(' ')
            .skip(1)
            .map_while(|word| word.parse().ok())
            .collect();
        // The last line may be cut by the kill.
        let [seq, task, round] = words[..] else {
            continue;
        };
        told.push((seq, task, round));
        if told.len() == least {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(
        told.len() >= least,
        "the child ended by itself after {} records",
        told.len()
    );
    told
}

#[test]
fn what_was_acknowledged_before_a_kill_is_there_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut last = 0;
    for least in [1, 300, 3000] {
        let told = fill_and_kill(&path, least);
        // Looked at before anything repairs the log, and again once the next child has.
        let reader = JournalReader::open(&path).unwrap();
        let report = reader.verify(|_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        let kept = reader.read(last, usize::MAX).unwrap();
        let bodies: HashSet<(u64, &str)> = kept
            .iter()
            .map(|row| (row.seq, &*row.record.body))
            .collect();
        for (seq, task, round) in told {
            assert!(seq > last, "numbers go on where the last process stopped");
            let body = &*numbered(task, round).body;
            assert!(
                bodies.contains(&(seq, body)),
                "record {seq} was acknowledged and is gone"
            );
        }
        last = report.records;
    }
    drop(open(&path));
    let report = JournalReader::open(&path)
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert!(report.is_clean() && report.records == last, "{report:?}");
}
