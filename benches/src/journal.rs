//! The journal at a million records: the cost of searches, checks and removals, and the cost of searchability for the
//! writer.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use toolpost_core::{
    AppendStrength, Facets, Journal, Query, Record, RecordKind, RetentionCut, ToolQueryPattern,
};
use toolpost_model::{InvocationId, Outcome, SessionId};
use toolpost_store::{JournalOptions, JournalReader, SqliteJournal, VerifyReport};

use crate::rounds::{Pairs, median, shown};

const RECORDS: usize = 1_000_000;
/// Appends that are awaited together, as many callers do.
const TOGETHER: usize = 500;
const TOOLS: usize = 40;
/// Records of a round that compares two writers.
const ROUND: usize = 50_000;
const REMOVED: u64 = 50_000;
/// The piece size of the host's removals.
const PIECE: usize = 1_000;

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let with = open(&folder.path().join("with.db"))?;
    let without = open(&folder.path().join("without.db"))?;
    let pairs = Pairs::take(
        7,
        || fill(&with, ROUND, Looks::For),
        || fill(&without, ROUND, Looks::Nothing),
    )
    .await?;
    pairs.tell(
        "appends that can be looked for, beside such that cannot",
        "records/s",
    );
    let path = folder.path().join("million.db");
    let journal = Arc::new(open(&path)?);
    let rate = fill(&journal, RECORDS, Looks::For).await?;
    println!("{RECORDS} records written: {} records/s", shown(rate));
    find(&journal).await?;
    let (took, report) = verify(&path)?;
    println!(
        "verify of {} records: {:.1} s, {} records/s, clean: {}",
        report.records,
        took.as_secs_f64(),
        shown(report.records as f64 / took.as_secs_f64()),
        report.is_clean()
    );
    prune(&journal).await
}

fn open(path: &Path) -> anyhow::Result<SqliteJournal> {
    Ok(SqliteJournal::open(
        path,
        JournalOptions {
            max_bytes: 64 << 30,
        },
    )?)
}

#[derive(Clone, Copy, PartialEq)]
enum Looks {
    For,
    Nothing,
}

async fn fill(journal: &SqliteJournal, count: usize, looks: Looks) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut number = 0;
    while number < count {
        let records: Vec<Record> = (number..count.min(number + TOGETHER))
            .map(|n| record(n, looks))
            .collect();
        number += records.len();
        let appends: Vec<_> = records
            .into_iter()
            .map(|record| journal.append(record, AppendStrength::Committed))
            .collect();
        for append in appends {
            append.await?;
        }
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// The end of a read, of a typical length. One tool in a thousand calls is a rare one.
fn record(number: usize, looks: Looks) -> Record {
    let tool = if number % 1_000 == 7 {
        "bench.rare".to_owned()
    } else {
        format!("bench.tool_{}", number % TOOLS)
    };
    let principal = format!("agent-{}", number % 3);
    let text = "x".repeat(700);
    let body = format!(
        r#"{{"call":{{"tool":"{tool}","arguments":{{"path":"file-{number}.txt"}},"principal":"{principal}","role":"agent","face":"http"}},"tool_id":"{tool}","result":{{"outcome":"succeeded","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    let facets = Facets {
        tool,
        principal,
        outcome: Some(Outcome::Succeeded),
        correlation: None,
    };
    Record {
        kind: RecordKind::Ended,
        at: Timestamp::UNIX_EPOCH
            + SignedDuration::from_secs(i64::try_from(number).unwrap_or_default()),
        invocation_id: Some(InvocationId::new()),
        session_id: Some(SessionId::new(format!("session-{}", number % 20))),
        request: None,
        body,
        facets: (looks == Looks::For).then_some(facets),
    }
}

async fn find(journal: &SqliteJournal) -> anyhow::Result<()> {
    let newest = Query::newest(50);
    let tool = |name: &str| Query {
        tool: Some(ToolQueryPattern::new(name)),
        ..newest.clone()
    };
    let queries = [
        ("one tool", tool("bench.tool_7")),
        ("a rare tool", tool("bench.rare")),
        ("a tool by its name", tool("tool_7")),
        ("a pattern of tools", tool("bench.tool_1*")),
        (
            "one tool and caller",
            Query {
                principal: Some("agent-1".into()),
                ..tool("bench.tool_7")
            },
        ),
        (
            "one session",
            Query {
                session: Some(SessionId::new("session-3")),
                ..newest.clone()
            },
        ),
        (
            "an outcome that never was",
            Query {
                outcome: Some(Outcome::Denied),
                ..newest
            },
        ),
    ];
    for (name, query) in queries {
        let mut times = Vec::new();
        let mut count = 0;
        for _ in 0..21 {
            let began = Instant::now();
            count = journal.find(query.clone()).await?.len();
            times.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        let worst = times.iter().copied().fold(0.0, f64::max);
        println!(
            "last 50 calls of {name}: {count} in {:.2} ms (worst {worst:.2} ms)",
            median(&times)
        );
    }
    Ok(())
}

fn verify(path: &Path) -> anyhow::Result<(Duration, VerifyReport)> {
    let reader = JournalReader::open(path)?;
    let began = Instant::now();
    let report = reader.verify(|_, _| {})?;
    Ok((began.elapsed(), report))
}

/// The waits of callers while the oldest records are removed.
async fn prune(journal: &Arc<SqliteJournal>) -> anyhow::Result<()> {
    let quiet = waits(journal, tokio::time::sleep(Duration::from_secs(2))).await?;
    let began = Instant::now();
    let removing = {
        let journal = Arc::clone(journal);
        tokio::spawn(async move {
            for up_to in (1..=REMOVED).step_by(PIECE) {
                let cut = RetentionCut {
                    up_to: up_to + PIECE as u64 - 1,
                    at: Timestamp::UNIX_EPOCH,
                    why: "bench".to_owned(),
                    restated: Vec::new(),
                };
                journal.prune(cut).await?;
            }
            anyhow::Ok(began.elapsed())
        })
    };
    let mut took = Duration::ZERO;
    let busy = waits(journal, async {
        if let Ok(Ok(elapsed)) = removing.await {
            took = elapsed;
        }
    })
    .await?;
    println!(
        "{REMOVED} records removed in {:.1} s; an append meanwhile: median {:.2} ms, worst {:.1} ms; else {:.2} and {:.1} ms",
        took.as_secs_f64(),
        busy.0,
        busy.1,
        quiet.0,
        quiet.1
    );
    Ok(())
}

/// Median and worst of appends one after the other, in milliseconds, until something is done.
async fn waits(
    journal: &SqliteJournal,
    until: impl Future<Output = ()>,
) -> anyhow::Result<(f64, f64)> {
    let mut times = Vec::new();
    tokio::pin!(until);
    loop {
        let began = Instant::now();
        let append = journal.append(record(0, Looks::For), AppendStrength::Committed);
        append.await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        let is_done = futures_util::future::poll_immediate(&mut until)
            .await
            .is_some();
        if is_done {
            return Ok((median(&times), times.iter().copied().fold(0.0, f64::max)));
        }
    }
}
