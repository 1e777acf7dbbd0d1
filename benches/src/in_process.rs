//! Calls from sixty-four callers in the same process, beside the bare journal at the same concurrency.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use toolpost_core::{
    AppendStrength, CallRequest, Host, HostLimits, Journal, Policy, Record, RecordKind,
    SchedulerLimits,
};
use toolpost_model::{EffectClass, FnTool, ModelInput, PermissionMode, Principal, ToolFailure};
use toolpost_store::{JournalOptions, SqliteJournal};

use crate::{
    children::echoes,
    rounds::{Pairs, rate},
};

const CALLERS: usize = 64;
const ROUND: Duration = Duration::from_secs(2);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let open = |name: &str| {
        SqliteJournal::open(
            &folder.path().join(name),
            JournalOptions {
                max_bytes: 64 << 30,
            },
        )
    };
    let bare: Arc<dyn Journal> = Arc::new(open("bare.db")?);
    let host = host(Arc::new(open("host.db")?)).await?;
    let reads = Pairs::take(
        5,
        || calls(&host, "echo", json!({ "message": "hello" })),
        || appends(&bare, AppendStrength::Committed, 1),
    )
    .await?;
    reads.tell("in-process reads from 64 callers", "calls/s");
    let writes = Pairs::take(
        5,
        || calls(&host, "store", json!({})),
        || appends(&bare, AppendStrength::Synced, 2),
    )
    .await?;
    writes.tell("in-process synced writes from 64 callers", "calls/s");
    Ok(())
}

/// A host whose tools do nothing, so that the host alone is measured.
async fn host(journal: Arc<dyn Journal>) -> anyhow::Result<Host> {
    let store = FnTool::named("bench.store")?
        .class(EffectClass::Write)
        .run(|_: Nothing, _| async { Ok::<_, ToolFailure>("stored") });
    let limits = HostLimits {
        scheduler: SchedulerLimits {
            concurrency: 256,
            session_concurrency: 256,
            queue: 1024,
        },
        ..HostLimits::default()
    };
    let policy = Policy::in_mode(PermissionMode::Bypass);
    let builder = Host::builder()
        .journal(journal)
        .limits(limits)
        .policy(policy);
    Ok(builder.source(echoes(1)).tool(store).build().await?)
}

async fn calls(host: &Host, tool: &str, arguments: serde_json::Value) -> anyhow::Result<f64> {
    let began = Instant::now();
    let session = host.default_session(&Principal::agent("bench"));
    let mut tasks = Vec::new();
    for _ in 0..CALLERS {
        let host = host.clone();
        let session = Arc::clone(&session);
        let tool = tool.to_owned();
        let arguments = arguments.clone();
        tasks.push(tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                let input = ModelInput::value(arguments.clone());
                let answer = host
                    .call(CallRequest::new(Arc::clone(&session), tool.as_str(), input))
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

/// The journal alone: rows of the size and number that a call writes.
async fn appends(
    journal: &Arc<dyn Journal>,
    first: AppendStrength,
    rows: usize,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..CALLERS {
        let journal = Arc::clone(journal);
        tasks.push(tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                for row in 0..rows {
                    let strength = if row == 0 {
                        first
                    } else {
                        AppendStrength::Committed
                    };
                    journal.append(record(), strength).await?;
                }
                calls += 1;
            }
            anyhow::Ok(calls)
        }));
    }
    rate(began, tasks).await
}

fn record() -> Record {
    Record {
        kind: RecordKind::Ended,
        at: jiff::Timestamp::UNIX_EPOCH,
        invocation_id: Some(toolpost_model::InvocationId::new()),
        session_id: None,
        request: None,
        body: format!("{{\"filler\":\"{}\"}}", "x".repeat(1_400)),
        facets: None,
    }
}
