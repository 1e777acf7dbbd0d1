//! How many records a second the journal takes: `cargo run --release -p toolpost-store --example throughput
//! [DIRECTORY]`. Run it on the disk that matters; a file system in memory syncs for free.
#![expect(clippy::print_stdout, reason = "a probe reports to the terminal")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use toolpost_core::{AppendStrength, Facets, Journal, Record, RecordKind};
use toolpost_model::{InvocationId, Outcome, SessionId};
use toolpost_store::{JournalOptions, JournalReader, SqliteJournal};

const LENGTH: Duration = Duration::from_secs(3);
/// About what a call's end takes with its transitions and a short result.
const BODY_BYTES: usize = 600;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    println!(
        "{:>10} {:>9} {:>10} {:>9} {:>9} {:>9}",
        "strength", "appenders", "rows/s", "p50 µs", "p99 µs", "max ms"
    );
    for strength in [AppendStrength::Committed, AppendStrength::Synced] {
        for appenders in [1, 16, 64, 256] {
            let folder = tempfile::tempdir_in(&folder)?;
            measure(&folder.path().join("journal.db"), strength, appenders).await?;
        }
    }
    let folder = tempfile::tempdir_in(&folder)?;
    measure_alone(&folder.path().join("journal.db")).await
}

async fn measure(path: &Path, strength: AppendStrength, appenders: usize) -> Result<(), Failure> {
    let journal = Arc::new(SqliteJournal::open(
        path,
        JournalOptions {
            max_bytes: 32 << 30,
        },
    )?);
    let begin = Instant::now();
    let tasks: Vec<_> = (0..appenders)
        .map(|_| tokio::spawn(append_until(journal.clone(), strength, begin + LENGTH)))
        .collect();
    let mut times: Vec<Duration> = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let rows = times.len() as f64 / begin.elapsed().as_secs_f64();
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64();
    println!(
        "{:>10} {appenders:>9} {rows:>10.0} {:>9.0} {:>9.0} {:>9.1}",
        format!("{strength:?}"),
        at(0.5) * 1e6,
        at(0.99) * 1e6,
        at(1.0) * 1e3
    );
    Ok(())
}

async fn append_until(
    journal: Arc<SqliteJournal>,
    strength: AppendStrength,
    end: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    while Instant::now() < end {
        let record = sample();
        let begin = Instant::now();
        journal.append(record, strength).await?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

fn sample() -> Record {
    Record {
        kind: RecordKind::Ended,
        at: Timestamp::UNIX_EPOCH,
        invocation_id: Some(InvocationId::new()),
        session_id: Some(SessionId::new("0198c0de-session")),
        request: None,
        body: format!("{{\"text\":\"{}\"}}", "x".repeat(BODY_BYTES)),
        facets: Some(Facets {
            tool: "files.read_file".to_owned(),
            principal: "local".to_owned(),
            outcome: Some(Outcome::Succeeded),
            correlation: None,
        }),
    }
}

/// The writer's own pace, and what reading costs.
async fn measure_alone(path: &Path) -> Result<(), Failure> {
    const ROWS: usize = 200_000;
    let journal = SqliteJournal::open(
        path,
        JournalOptions {
            max_bytes: 32 << 30,
        },
    )?;
    let mut ids = Vec::new();
    let begin = Instant::now();
    for _ in 0..ROWS / 1000 {
        let records: Vec<Record> = (0..1000).map(|_| sample()).collect();
        ids.extend(records.iter().filter_map(|record| record.invocation_id));
        let appends: Vec<_> = records
            .into_iter()
            .map(|record| journal.append(record, AppendStrength::Committed))
            .collect();
        for append in appends {
            append.await?;
        }
    }
    println!(
        "one caller, 1000 at a time: {:.0} rows/s",
        ROWS as f64 / begin.elapsed().as_secs_f64()
    );
    let begin = Instant::now();
    for id in ids.iter().step_by(97) {
        journal.records_of(*id).await?;
    }
    let each = begin.elapsed() / u32::try_from(ids.len().div_ceil(97))?;
    println!("lookup of a call among {ROWS} records: {each:?}");
    let begin = Instant::now();
    journal.read(1000, 1000).await?;
    println!("read of 1000 records: {:?}", begin.elapsed());
    let begin = Instant::now();
    let report = JournalReader::open(path)?.verify(|_, _| {})?;
    println!(
        "verify of {} records: {:?}, clean: {}",
        report.records,
        begin.elapsed(),
        report.is_clean()
    );
    Ok(())
}
