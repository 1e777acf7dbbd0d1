//! The contenders, each in a process of its own: this binary again, as a server.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::Context;
use axum::{Router, body::Bytes, routing::post};
use toolpost_config::HostConfig;
use toolpost_model::{DynTool, EffectClass, FnTool, ToolFailure, ToolSet};
use toolpost_serve::{CallerAuthentication, Server};

use crate::{a2e, grpc, mcp};

/// A server in a process of its own, ended when dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
}

impl Served {
    /// Starts this binary in a role and waits for the address it prints.
    pub(crate) fn start(words: &[&str]) -> anyhow::Result<Self> {
        let mut child = command(&std::env::current_exe()?)
            .args(words)
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("the child's output")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        Ok(Self {
            child,
            address: address.trim().to_owned(),
        })
    }

    /// Resident memory in megabytes.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        memory_of(self.child.id())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts the contenders"
)]
pub(crate) fn command(program: &Path) -> Command {
    Command::new(program)
}

#[expect(clippy::disallowed_methods, reason = "the kernel's own figure")]
pub(crate) fn memory_of(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1_024.0)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Message {
    message: String,
}

/// A read-only echo, declared `count` times under different names.
pub(crate) fn echoes(count: usize) -> ToolSet {
    let echo = |place: usize| -> Option<std::sync::Arc<dyn DynTool>> {
        let name = if place == 0 {
            "bench.echo".to_owned()
        } else {
            format!("bench.echo_{place}")
        };
        let tool = FnTool::named(&name)
            .ok()?
            .describe(format!(
                "Gives the message back, variant {place}, for measuring how a host carries many tools"
            ))
            .class(EffectClass::Read)
            .run(|args: Message, _| async move { Ok::<_, ToolFailure>(args.message) });
        Some(std::sync::Arc::new(tool))
    };
    ToolSet::new("bench", (0..count).filter_map(echo))
}

pub(crate) fn serve(role: &str, words: &[String]) -> anyhow::Result<()> {
    if role == "--serve-lines" {
        return a2e::echo_lines();
    }
    if role == "--serve-mcp-lines" {
        return mcp::floor_lines();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match role {
            "--serve-floor" => {
                floor(Router::new().route("/echo", post(|body: Bytes| async move { body }))).await
            }
            "--serve-floor-a2e" => floor(a2e::floor()).await,
            "--serve-floor-mcp" => floor(mcp::floor()).await,
            "--serve-rmcp" => floor(mcp::serve_rmcp(words)?).await,
            "--serve-rmcp-stdio" => mcp::converse_rmcp().await,
            "--serve-mcp" => mcp::serve(words).await,
            "--serve-mcp-stdio" => mcp::converse(words).await,
            "--serve-grpc" => grpc::serve().await,
            "--serve-a2e" => a2e::serve(words).await,
            "--serve-a2e-stdio" => a2e::converse(words).await,
            _ => toolpost(words).await,
        }
    })
}

/// The floor: axum and a few lines, nothing else.
async fn floor(router: Router) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    announce(&listener.local_addr()?.to_string())?;
    use axum::serve::ListenerExt as _;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

/// Toolpost with `count` echo tools and its journal in a folder.
async fn toolpost(words: &[String]) -> anyhow::Result<()> {
    let [data_dir, count] = words else {
        anyhow::bail!("a data directory and a count")
    };
    let mut config = HostConfig {
        data_dir: Some(data_dir.into()),
        ..HostConfig::default()
    };
    config.http.listen = "127.0.0.1:0".parse()?;
    config.limits.concurrency = 256;
    config.limits.session_concurrency = 256;
    let server = Server::builder(config)
        .access(CallerAuthentication::Open)
        .source(echoes(count.parse()?))
        .start()
        .await?;
    announce(&server.address().context("it listens")?.to_string())?;
    std::future::pending::<()>().await;
    Ok(())
}

pub(crate) fn announce(address: &str) -> anyhow::Result<()> {
    println!("{address}");
    std::io::stdout().flush()?;
    Ok(())
}
