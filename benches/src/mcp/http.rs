//! Calls over HTTP, in both revisions, with one caller and with sixteen.

use std::time::{Duration, Instant};

use super::wire::{Caller, Era};
use crate::{
    children::Served,
    rounds::{Field, rate},
};

const ROUND: Duration = Duration::from_millis(1_500);
const ROUNDS: usize = 5;

pub(super) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let contenders = [
        ("Toolpost", Served::start(&["--serve-mcp", &data, "1"])?),
        ("a bare axum floor", Served::start(&["--serve-floor-mcp"])?),
        ("plain rmcp", Served::start(&["--serve-rmcp", "1"])?),
    ];
    for era in Era::BOTH {
        for callers in [1, 16] {
            let field = Field::take(
                ROUNDS,
                contenders.each_ref().map(|(name, _)| *name),
                |place| load(&contenders[place].1.address, era, callers),
            )
            .await?;
            let title = format!(
                "MCP over HTTP, {}, {callers} callers, each call on record",
                era.name()
            );
            field.tell(&title, "calls/s");
        }
    }
    Ok(())
}

/// Calls a second of `callers` callers.
pub(super) async fn load(address: &str, era: Era, callers: usize) -> anyhow::Result<f64> {
    let mut connected = Vec::new();
    for _ in 0..callers {
        connected.push(Caller::connect(address, era).await?);
    }
    let began = Instant::now();
    let tasks = connected.into_iter().map(|mut caller| {
        tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                caller.echo().await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        })
    });
    rate(began, tasks.collect()).await
}
