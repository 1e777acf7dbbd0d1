//! Toolpost as a contender: a host with echoes, and one with a server upstream.

use anyhow::Context;
use toolpost_config::HostConfig;
use toolpost_model::{PermissionMode, PrincipalRole};
use toolpost_serve::{CallerAuthentication, Server, ServerBuilder};

use crate::children::{announce, echoes};

fn builder(data_dir: &str) -> anyhow::Result<ServerBuilder> {
    let mut config = HostConfig {
        data_dir: Some(data_dir.into()),
        mode: PermissionMode::Bypass,
        ..HostConfig::default()
    };
    config.http.listen = "127.0.0.1:0".parse()?;
    config.limits.concurrency = 256;
    config.limits.session_concurrency = 256;
    Ok(Server::builder(config).access(CallerAuthentication::Open))
}

/// Over HTTP, until killed.
pub(crate) async fn serve(words: &[String]) -> anyhow::Result<()> {
    let [data_dir, count] = words else {
        anyhow::bail!("a data directory and a count")
    };
    let server = builder(data_dir)?
        .source(echoes(count.parse()?))
        .start()
        .await?;
    announce(&server.address().context("it listens")?.to_string())?;
    std::future::pending::<()>().await;
    Ok(())
}

/// Over its own pipes, until they close.
pub(crate) async fn converse(words: &[String]) -> anyhow::Result<()> {
    let [data_dir] = words else {
        anyhow::bail!("a data directory")
    };
    let server = builder(data_dir)?.source(echoes(1)).start_offline().await?;
    server
        .converse_mcp(PrincipalRole::Agent, std::io::stdin(), std::io::stdout())
        .await;
    Ok(())
}
