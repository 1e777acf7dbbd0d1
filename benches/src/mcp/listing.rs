//! A thousand tools, listed over HTTP page by page.

use std::time::Instant;

use super::wire::{Caller, Era};
use crate::{
    children::Served,
    rounds::{median, shown},
};

const TOOLS: &str = "1000";
const TIMES: usize = 15;

pub(super) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let ours = Served::start(&["--serve-mcp", &data, TOOLS])?;
    let rmcp = Served::start(&["--serve-rmcp", TOOLS])?;
    for era in Era::BOTH {
        let mut at_ours = Caller::connect(&ours.address, era).await?;
        let mut at_rmcp = Caller::connect(&rmcp.address, era).await?;
        let mut took_ours = Vec::new();
        let mut took_rmcp = Vec::new();
        let mut size = (0, 0);
        for _ in 0..TIMES {
            let began = Instant::now();
            size = at_ours.list().await?;
            took_ours.push(began.elapsed().as_secs_f64() * 1_000.0);
            let began = Instant::now();
            at_rmcp.list().await?;
            took_rmcp.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        println!(
            "MCP, {}, {} tools listed: {} ms for {} KB; plain rmcp {} ms",
            era.name(),
            size.0,
            shown(median(&took_ours)),
            size.1 / 1_024,
            shown(median(&took_rmcp)),
        );
    }
    Ok(())
}
