//! A session of ten thousand calls of native tools, replayed beside the run that recorded it.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolpost_config::HostConfig;
use toolpost_core::{CallRequest, Cassette, Host, Recorder, ReplayOptions};
use toolpost_model::{ModelInput, Principal};
use toolpost_serve::{HostParts, open_host};
use toolpost_store::JournalReader;

use crate::rounds::Pairs;

const CALLS: usize = 10_000;
const ROUNDS: usize = 3;
const FILES: usize = 50;

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    prepare(&workspace)?;
    let (_, recorded) = record(&workspace, &folder.path().join("first")).await?;
    let reader = JournalReader::open(&recorded)?;
    let mut recorder = Recorder::of_all();
    let began = Instant::now();
    let mut after = 0;
    let mut records = 0;
    loop {
        let rows = reader.read(after, 1_000)?;
        let Some(last) = rows.last() else { break };
        (after, records) = (last.seq, records + rows.len());
        rows.iter().for_each(|row| recorder.take(row));
    }
    let cassette = recorder.finish();
    let text = cassette.to_text();
    println!(
        "{records} records to a cassette of {} calls ({} KB) in {:.0} ms",
        cassette.calls.len(),
        text.len() / 1_024,
        began.elapsed().as_secs_f64() * 1_000.0
    );
    anyhow::ensure!(
        cassette.calls.len() == CALLS,
        "some calls were not recorded"
    );
    let mut round = 0;
    let mut next = || {
        round += 1;
        folder.path().join(format!("round-{round}"))
    };
    let pairs = Pairs::take(
        ROUNDS,
        || replay(&cassette),
        || {
            let data = next();
            let workspace = workspace.clone();
            async move { Ok(record(&workspace, &data).await?.0) }
        },
    )
    .await?;
    pairs.tell(
        &format!("{CALLS} calls replayed, beside their recording"),
        "ms",
    );
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the files that the tools read")]
fn prepare(workspace: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(workspace)?;
    let lines: String = (0..200)
        .map(|line| format!("line {line} of a file that is read often\n"))
        .collect();
    (0..FILES)
        .try_for_each(|file| std::fs::write(workspace.join(format!("file-{file}.txt")), &lines))
}

/// One call after the other, as an agent makes them.
async fn call_all(host: &Host) -> anyhow::Result<Duration> {
    let session = host.default_session(&Principal::agent("bench"));
    let began = Instant::now();
    for n in 0..CALLS {
        let (tool, arguments) = nth(n);
        let input = ModelInput::value(arguments);
        let answer = host
            .call(CallRequest::new(Arc::clone(&session), tool, input))
            .await;
        anyhow::ensure!(
            answer.result().outcome.is_success(),
            "{tool}: {:?}",
            answer.result().error
        );
    }
    Ok(began.elapsed())
}

fn nth(n: usize) -> (&'static str, Value) {
    let path = format!("file-{}.txt", n % FILES);
    match n % 3 {
        0 => ("echo", json!({ "message": format!("call {n}") })),
        1 => (
            "read_file",
            json!({ "path": path, "offset": 1 + n % 100, "limit": 20 }),
        ),
        _ => ("glob", json!({ "pattern": path })),
    }
}

/// Milliseconds of the calls themselves, and the journal they left.
async fn record(workspace: &Path, data: &Path) -> anyhow::Result<(f64, std::path::PathBuf)> {
    let config = HostConfig {
        workspace: Some(workspace.to_owned()),
        data_dir: Some(data.to_owned()),
        ..HostConfig::default()
    };
    let opened = open_host(&config, HostParts::default()).await?;
    let took = call_all(&opened.host).await?;
    opened.host.shutdown(Duration::from_secs(5)).await;
    let journal = opened
        .data_dir
        .as_ref()
        .map(|data_dir| data_dir.journal_path())
        .unwrap_or_default();
    Ok((took.as_secs_f64() * 1_000.0, journal))
}

async fn replay(cassette: &Cassette) -> anyhow::Result<f64> {
    let host = Host::builder()
        .replay(cassette.clone(), ReplayOptions::default())
        .build()
        .await?;
    let took = call_all(&host).await?;
    let report = host.replay_report();
    let is_whole = report
        .as_ref()
        .is_some_and(|report| report.left.is_empty() && report.refused == 0);
    anyhow::ensure!(is_whole, "{report:?}");
    Ok(took.as_secs_f64() * 1_000.0)
}
