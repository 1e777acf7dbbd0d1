//! The cost of starting a run in a waiting worker, and of a tool call from inside a run, beside the same calls from
//! outside.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolpost_core::{CallRequest, Host, Policy};
use toolpost_model::{ModelInput, PermissionMode, Principal};
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::Workspace;

use crate::rounds::Pairs;

const ROUND: Duration = Duration::from_secs(1);
/// Tool calls of one run.
const CALLS: u32 = 100;

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let host = host(folder.path()).await?;
    let echo = || json!({ "message": "x" });
    let start = Pairs::take(
        5,
        || micros(&host, "run_code", json!({ "code": "1 + 1" }), 1),
        || micros(&host, "echo", echo(), 1),
    )
    .await?;
    start.tell(
        "a run of `1 + 1` in a warm worker, beside a call of echo",
        "µs",
    );
    let code = format!("for i in range({CALLS}):\n    echo('x')");
    let inner = Pairs::take(
        5,
        || micros(&host, "run_code", json!({ "code": code }), CALLS),
        || micros(&host, "echo", echo(), 1),
    )
    .await?;
    inner.tell("a tool call from code, beside one from outside", "µs");
    Ok(())
}

/// A host with its journal in memory, so that the call is measured and not the disk.
async fn host(folder: &std::path::Path) -> anyhow::Result<Host> {
    let workspace = Arc::new(Workspace::open(folder)?);
    let parts = NativeParts {
        program: Some(std::env::current_exe()?),
        ..NativeParts::on(workspace)
    };
    let source = native_source(parts)?;
    let policy = Policy::in_mode(PermissionMode::Bypass);
    Ok(Host::builder()
        .policy(policy)
        .source(source)
        .build()
        .await?)
}

/// Microseconds for each of the `parts` of a call, made from a task of the runtime as in a server.
async fn micros(
    host: &Host,
    tool: &'static str,
    arguments: Value,
    parts: u32,
) -> anyhow::Result<f64> {
    tokio::spawn(measure(host.clone(), tool, arguments, parts)).await?
}

async fn measure(
    host: Host,
    tool: &'static str,
    arguments: Value,
    parts: u32,
) -> anyhow::Result<f64> {
    let session = host.default_session(&Principal::agent("bench"));
    let mut calls = 0_u32;
    let began = Instant::now();
    while began.elapsed() < ROUND {
        let input = ModelInput::value(arguments.clone());
        let answer = host
            .call(CallRequest::new(Arc::clone(&session), tool, input))
            .await;
        anyhow::ensure!(
            answer.result().outcome.is_success(),
            "{:?}",
            answer.result().error
        );
        calls += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(calls * parts))
}
