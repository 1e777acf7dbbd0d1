//! MCP beside a bare axum floor and an echo server on plain rmcp: over HTTP in both revisions, over pipes, through to a
//! server upstream, and with a thousand tools to list. The client is the same few lines for every contender.

mod floor;
mod hop;
mod host;
mod http;
mod listing;
mod pipes;
mod plain_rmcp;
mod wire;

pub(crate) use floor::{lines as floor_lines, router as floor};
pub(crate) use host::{converse, serve};
pub(crate) use plain_rmcp::{converse as converse_rmcp, serve as serve_rmcp};

/// The parts; each can be run by itself as `mcp-<name>`.
const PARTS: [&str; 4] = ["http", "stdio", "hop", "list"];

pub(crate) async fn run() -> anyhow::Result<()> {
    for part in PARTS {
        run_part(part).await?;
    }
    Ok(())
}

/// `false`: there is no such part.
pub(crate) async fn run_part(part: &str) -> anyhow::Result<bool> {
    match part {
        "http" => http::run().await?,
        "stdio" => pipes::run().await?,
        "hop" => hop::run().await?,
        "list" => listing::run().await?,
        _ => return Ok(false),
    }
    Ok(true)
}
