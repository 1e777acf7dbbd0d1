//! `read_file` through the host, beside reading the file and numbering its lines with the standard library.
//!
//! The floor runs in the same process and thread, checks nothing and keeps no record: it is the cost of reading, not a
//! rival. A call of `echo` beside it shows the part of the difference that every call has.

use std::{
    fmt::Write as _,
    hint::black_box,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolpost_core::Host;
use toolpost_model::Principal;
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::Workspace;

use crate::{native::call, rounds::Pairs};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
/// Name, lines, bytes of each.
const FILES: [(&str, usize, usize); 2] = [
    ("20 lines, 800 bytes", 20, 40),
    ("300 lines, 30 KB", 300, 100),
];

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = Arc::new(Workspace::open(folder.path())?);
    let host = Host::builder()
        .source(native_source(NativeParts::on(workspace))?)
        .build()
        .await?;
    // Tried on a thread of its own, because the confinement lasts as long as the thread.
    let confined = std::thread::spawn(|| toolpost_sandbox::confine_thread(&[])).join();
    match confined.ok().and_then(|confined| confined.landlock_abi) {
        Some(abi) => println!("file workers are confined by Landlock, version {abi}"),
        None => println!("file workers are not confined: this kernel has no Landlock"),
    }
    for (name, lines, bytes) in FILES {
        let path = folder.path().join(format!("{lines}.txt"));
        make_file(&path, lines, bytes)?;
        let arguments = json!({ "path": format!("{lines}.txt") });
        let read = Pairs::take(
            ROUNDS,
            || calls(&host, "read_file", &arguments),
            || plain(&path),
        )
        .await?;
        read.tell(
            &format!("read_file, {name}, beside reading and numbering"),
            "µs",
        );
    }
    let path = folder.path().join("20.txt");
    let arguments = json!({ "message": "x" });
    let echo = Pairs::take(ROUNDS, || calls(&host, "echo", &arguments), || plain(&path)).await?;
    echo.tell(
        "a call of echo, beside reading and numbering 20 lines",
        "µs",
    );
    Ok(())
}

/// Microseconds of one call after another.
async fn calls(host: &Host, tool: &str, arguments: &Value) -> anyhow::Result<f64> {
    let session = host.default_session(&Principal::agent("bench"));
    let mut calls = 0_u32;
    let began = Instant::now();
    while began.elapsed() < ROUND {
        call(host, &session, tool, arguments.clone()).await?;
        calls += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(calls))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is what the tool is measured by"
)]
async fn plain(path: &Path) -> anyhow::Result<f64> {
    let mut reads = 0_u32;
    let began = Instant::now();
    while began.elapsed() < ROUND {
        let text = String::from_utf8(std::fs::read(black_box(path))?)?;
        let mut numbered = String::with_capacity(text.len() + text.len() / 4);
        for (place, line) in text.split_inclusive('\n').enumerate() {
            write!(numbered, "{:>6}\t{line}", place + 1)?;
        }
        black_box(numbered);
        reads += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(reads))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the file that is read has to be made"
)]
fn make_file(path: &Path, lines: usize, bytes: usize) -> anyhow::Result<()> {
    let line = |place: usize| {
        format!(
            "{:<width$}\n",
            format!("let value_{place} = compute({place});"),
            width = bytes - 1
        )
    };
    Ok(std::fs::write(
        path,
        (0..lines).map(line).collect::<String>(),
    )?)
}
