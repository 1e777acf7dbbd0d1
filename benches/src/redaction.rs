//! The cost of redaction: the search by itself, and a call with journal and redaction beside one with neither.

use std::{
    fmt::Write as _,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use toolpost_core::{
    CallRequest, Host, HostLimits, Journal, KnownSecrets, MemoryJournal, Policy, RedactionWindow,
    Redactor, SchedulerLimits, SecretFinding, StreamRedactor,
};
use toolpost_model::{ModelInput, PermissionMode, Principal};
use toolpost_store::{JournalOptions, SqliteJournal};

use crate::{
    children::echoes,
    rounds::{Pairs, rate},
};

const ROUNDS: usize = 7;
/// A stream comes in pieces of this size.
const PIECE: usize = 128 << 10;
const TEXT: usize = 16 << 20;
const CALLERS: usize = 64;
const ROUND: Duration = Duration::from_secs(1);

pub(crate) async fn run() -> anyhow::Result<()> {
    let text = text();
    for secrets in [0, 16, 100] {
        let began = Instant::now();
        let redactor: Arc<dyn Redactor> = Arc::new(known(secrets));
        println!(
            "{secrets} known values made ready in {:.1} ms",
            began.elapsed().as_secs_f64() * 1_000.0
        );
        let pairs = Pairs::take(ROUNDS, || streamed(&redactor, &text), || copied(&text)).await?;
        pairs.tell(
            &format!(
                "a stream searched for {secrets} known values and all shapes, beside copying it"
            ),
            "MB/s",
        );
    }
    for (name, message) in [
        ("a small call", "hello".to_owned()),
        ("a call with 32 KiB", text_of(32 << 10)),
    ] {
        let pairs = Pairs::take(
            ROUNDS,
            || calls(Record::Memory, known(16), &message),
            || calls(Record::Memory, Blind, &message),
        )
        .await?;
        pairs.tell(&format!("{name} with redaction, beside none"), "calls/s");
        let pairs = Pairs::take(
            ROUNDS,
            || calls(Record::Disk, known(16), &message),
            || calls(Record::Memory, Blind, &message),
        )
        .await?;
        pairs.tell(
            &format!("{name} with journal on disk and redaction, beside neither"),
            "calls/s",
        );
    }
    Ok(())
}

/// Finds nothing: a host without redaction.
struct Blind;

impl Redactor for Blind {
    fn find(&self, window: RedactionWindow<'_>, _: &mut Vec<SecretFinding>) -> usize {
        window.bytes.len()
    }
}

fn known(count: usize) -> KnownSecrets {
    let value = |n: usize| format!("v{:x}-{n}-value", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let values: Vec<String> = (0..count).map(value).collect();
    KnownSecrets::new(values.iter().map(|value| ("env_bench", value.as_str())))
}

/// Typical output of tools: code, log lines with addresses, ids and hashes. About one secret a MiB.
fn text() -> String {
    text_of(TEXT)
}

fn text_of(length: usize) -> String {
    let code = include_str!("redaction.rs");
    let mut text = String::with_capacity(length + code.len());
    let mut line = 0_u64;
    while text.len() < length {
        text.push_str(code);
        for _ in 0..60 {
            line += 1;
            let id = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let _ = writeln!(
                text,
                "2026-11-16T10:00:{:02}Z INFO request{{id={id:016x}}} GET https://api.example.com:443/v1/items/{line}?page=2 200 {id:x}{id:x}",
                line % 60
            );
        }
        if line.is_multiple_of(4_800) {
            text.push_str("token ghp_16C7e42F292c6912E7710c838347Ae178B4a\n");
        }
    }
    let end = text.floor_char_boundary(length);
    text.truncate(end);
    text
}

/// MB/s of a search.
async fn streamed(redactor: &Arc<dyn Redactor>, text: &str) -> anyhow::Result<f64> {
    let mut clean = Vec::with_capacity(2 * PIECE);
    let mut stream = StreamRedactor::new(Arc::clone(redactor));
    let began = Instant::now();
    for piece in text.as_bytes().chunks(PIECE) {
        clean.clear();
        stream.push(piece, &mut clean);
        black_box(&clean);
    }
    black_box(stream.finish(&mut clean));
    Ok(text.len() as f64 / 1e6 / began.elapsed().as_secs_f64())
}

/// MB/s of copying.
async fn copied(text: &str) -> anyhow::Result<f64> {
    let mut clean = Vec::with_capacity(2 * PIECE);
    let began = Instant::now();
    for piece in text.as_bytes().chunks(PIECE) {
        clean.clear();
        clean.extend_from_slice(piece);
        black_box(&clean);
    }
    Ok(text.len() as f64 / 1e6 / began.elapsed().as_secs_f64())
}

/// The place of a host's records.
#[derive(Clone, Copy)]
enum Record {
    Memory,
    Disk,
}

/// Calls a second of a new host.
async fn calls(record: Record, redactor: impl Redactor, message: &str) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let journal: Arc<dyn Journal> = match record {
        Record::Memory => Arc::new(MemoryJournal::default()),
        Record::Disk => {
            let options = JournalOptions {
                max_bytes: 64 << 30,
            };
            Arc::new(SqliteJournal::open(
                &folder.path().join("journal.db"),
                options,
            )?)
        }
    };
    let limits = HostLimits {
        scheduler: SchedulerLimits {
            concurrency: 256,
            session_concurrency: 256,
            queue: 1024,
        },
        ..HostLimits::default()
    };
    let builder = Host::builder()
        .journal(journal)
        .limits(limits)
        .policy(Policy::in_mode(PermissionMode::Bypass));
    let host = builder.redactor(redactor).source(echoes(1)).build().await?;
    let session = host.default_session(&Principal::agent("bench"));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..CALLERS {
        let host = host.clone();
        let session = Arc::clone(&session);
        let message = message.to_owned();
        tasks.push(tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                let input = ModelInput::value(json!({ "message": message }));
                let answer = host
                    .call(CallRequest::new(Arc::clone(&session), "echo", input))
                    .await;
                anyhow::ensure!(
                    answer.result().outcome.is_success(),
                    "{:?}",
                    answer.result().error
                );
                calls += 1;
            }
            Ok(calls)
        }));
    }
    rate(began, tasks).await
}
