//! A large result through a call into an artifact, beside reading, hashing, writing and syncing the same bytes.
//!
//! The tool reads a file and passes it on in pieces. On the way the bytes are searched for known secrets and patterns,
//! hashed, written and synced, and the call is recorded. The floor does the unavoidable part in one thread. Both read
//! the file from the page cache. Memory is the growth of this process, sampled all the time while calls run; the page
//! cache is not included.
#![expect(clippy::disallowed_methods, reason = "files are what this measures")]

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::ensure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use toolpost_core::{CallRequest, Host, KnownSecrets};
use toolpost_model::{
    ArtifactError, CallContext, EffectClass, FnTool, ModelInput, Principal, ToolFailure,
    ToolOutput, ToolResult,
};
use toolpost_store::{BlobOptions, DataDir, DiskBlobs, JournalOptions, SqliteJournal};

use crate::rounds::Pairs;

/// The size in the report.
pub(crate) const WHOLE: u64 = 1 << 30;
const ROUNDS: usize = 5;
const PIECE: usize = 256 << 10;
const LOOK: Duration = Duration::from_millis(2);

pub(crate) async fn run(size: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("source");
    make_file(&source, size)?;
    let idle = resident()?;
    let peak = &AtomicU64::new(0);
    let place = folder.path();
    let source = &*source;
    let call = || async move {
        let (rate, most) = through_a_call(place, source, size).await?;
        peak.fetch_max(most, Ordering::Relaxed);
        Ok(rate)
    };
    let pairs = Pairs::take(ROUNDS, call, || async move { floor(place, source, size) }).await?;
    pairs.tell(
        &format!("a result of {} MB into an artifact", size >> 20),
        "MB/s",
    );
    println!(
        "memory while it runs: {:.1} MB above the {:.1} MB before the first call",
        peak.load(Ordering::Relaxed).saturating_sub(idle) as f64 / 1e6,
        idle as f64 / 1e6
    );
    Ok(())
}

/// Log lines, all different, without a secret.
fn make_file(path: &Path, size: u64) -> anyhow::Result<()> {
    let mut file = std::io::BufWriter::with_capacity(PIECE, File::create(path)?);
    let mut written = 0;
    let mut line = 0_u64;
    while written < size {
        let mark = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let text = format!(
            "2026-11-16T10:00:{:02} info request {mark:016x} took {} ms\n",
            line % 60,
            mark % 977
        );
        let left = usize::try_from(size - written)
            .unwrap_or(usize::MAX)
            .min(text.len());
        file.write_all(&text.as_bytes()[..left])?;
        written += left as u64;
        line += 1;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}

/// Megabytes a second.
fn rate(size: u64, began: Instant) -> f64 {
    size as f64 / 1e6 / began.elapsed().as_secs_f64()
}

fn floor(place: &Path, source: &Path, size: u64) -> anyhow::Result<f64> {
    let target = place.join("copy");
    let began = Instant::now();
    let mut from = File::open(source)?;
    let mut to = File::create(&target)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; PIECE];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
    }
    to.sync_all()?;
    std::hint::black_box(hasher.finalize());
    let rate = rate(size, began);
    std::fs::remove_file(&target)?;
    Ok(rate)
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn keep(path: PathBuf, context: CallContext) -> Result<ToolOutput, ToolFailure> {
    let mut file = File::open(path)?;
    let mut sink = context
        .create_artifact("copy", "text/plain")
        .await
        .map_err(failed)?;
    let mut buffer = vec![0; PIECE];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        sink.write(&buffer[..count]).await.map_err(failed)?;
    }
    sink.finish().await.map_err(failed)?;
    Ok(ToolOutput::text("kept"))
}

#[expect(clippy::needless_pass_by_value, reason = "it stands behind map_err")]
fn failed(error: ArtifactError) -> ToolFailure {
    ToolFailure::new(error.to_string())
}

/// Megabytes a second, and the peak of memory meanwhile.
async fn through_a_call(place: &Path, source: &Path, size: u64) -> anyhow::Result<(f64, u64)> {
    let data = place.join("data");
    let result = {
        let data_dir = DataDir::open(&data)?;
        let options = BlobOptions {
            total: 4 << 30,
            one: 2 << 30,
            age: None,
        };
        let journal = SqliteJournal::open(
            &data_dir.journal_path(),
            JournalOptions { max_bytes: 1 << 30 },
        )?;
        let secrets: Vec<String> = (0..20)
            .map(|n| format!("not-in-the-file-{n:016}"))
            .collect();
        let path = source.to_owned();
        let tool = FnTool::named("bench.keep")?
            .describe("Keeps a file")
            .class(EffectClass::Read)
            .run(move |_: Nothing, context| keep(path.clone(), context));
        let host = Host::builder()
            .journal(Arc::new(journal))
            .blobs(Arc::new(DiskBlobs::open(&data_dir, options)?))
            .redactor(KnownSecrets::new(
                secrets.iter().map(|value| ("secret", value.as_str())),
            ))
            .tool(tool)
            .build()
            .await?;
        let watch = Watch::begin();
        let began = Instant::now();
        let session = host.default_session(&Principal::agent("bench"));
        let answer = host
            .call(CallRequest::new(
                session,
                "keep",
                ModelInput::value(json!({})),
            ))
            .await;
        let rate = rate(size, began);
        let most = watch.end();
        check(answer.result(), size)?;
        (rate, most)
    };
    std::fs::remove_dir_all(&data)?;
    Ok(result)
}

fn check(result: &ToolResult, size: u64) -> anyhow::Result<()> {
    let kept: u64 = result.artifacts.iter().map(|piece| piece.size).sum();
    ensure!(kept == size, "{} bytes were kept: {:?}", kept, result.error);
    Ok(())
}

/// Samples this process's memory until it is stopped.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<u64>,
}

impl Watch {
    fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut most = 0;
            while !told.load(Ordering::Relaxed) {
                most = most.max(resident().unwrap_or_default());
                thread::sleep(LOOK);
            }
            most
        });
        Self { stop, thread }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The resident bytes of this process.
fn resident() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = status
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}
