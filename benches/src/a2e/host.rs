//! Toolpost as a contender: a host with tools that do nothing, and a capability that answers at once.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use toolpost_a2e::{Body, CapabilityName, ErrorMessage, Message};
use toolpost_config::HostConfig;
use toolpost_model::{
    BoxFuture, DynTool, EffectClass, FnTool, PermissionMode, ToolFailure, ToolSet,
};
use toolpost_serve::{
    CallerAuthentication, Server, ServerBuilder,
    a2e::{A2eCapability, A2ePeer, CapabilityResponse},
};

use super::wire;
use crate::children::{announce, echoes};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Ticks {
    count: u32,
}

/// `store`, a write that does nothing, and `ticks`, which sends the time every five milliseconds.
pub(super) fn others() -> anyhow::Result<ToolSet> {
    let store = FnTool::named("bench.store")?
        .describe("Stores nothing")
        .class(EffectClass::Write)
        .run(|_: Nothing, _| async { Ok::<_, ToolFailure>("stored") });
    let ticks = FnTool::named("bench.ticks")?
        .describe("Says the time, again and again")
        .class(EffectClass::Read)
        .run(|args: Ticks, context| async move {
            for _ in 0..args.count {
                tokio::time::sleep(Duration::from_millis(5)).await;
                context.status(wire::now().to_string());
            }
            Ok::<_, ToolFailure>("done")
        });
    let tools: [Arc<dyn DynTool>; 2] = [Arc::new(store), Arc::new(ticks)];
    Ok(ToolSet::new("others", tools))
}

/// Answers with its input, without any tool.
struct AtOnce;

impl A2eCapability for AtOnce {
    fn name(&self) -> CapabilityName {
        CapabilityName::Test
    }

    fn plugin(&self) -> &str {
        "bench"
    }

    fn messages(&self) -> &'static [&'static str] {
        &["test/echo/req"]
    }

    fn handle<'a>(
        &'a self,
        _: &'a A2ePeer,
        message: Message,
    ) -> BoxFuture<'a, Result<CapabilityResponse, ErrorMessage>> {
        Box::pin(async move {
            let Body::Other(mut body) = message.body else {
                return Ok(CapabilityResponse::NotMine);
            };
            "test/echo/resp".clone_into(&mut body.kind);
            Ok(CapabilityResponse::with(Body::Other(body)))
        })
    }
}

fn builder(data_dir: &str, count: &str) -> anyhow::Result<ServerBuilder> {
    let mut config = HostConfig {
        data_dir: Some(data_dir.into()),
        mode: PermissionMode::Bypass,
        ..HostConfig::default()
    };
    config.http.listen = "127.0.0.1:0".parse()?;
    config.limits.concurrency = 256;
    config.limits.session_concurrency = 256;
    let builder = Server::builder(config)
        .access(CallerAuthentication::Open)
        .capability(AtOnce);
    Ok(builder.source(echoes(count.parse()?)).source(others()?))
}

/// Over HTTP, until killed.
pub(crate) async fn serve(words: &[String]) -> anyhow::Result<()> {
    let [data_dir, count] = words else {
        anyhow::bail!("a data directory and a count")
    };
    let server = builder(data_dir, count)?.start().await?;
    announce(&server.address().context("it listens")?.to_string())?;
    std::future::pending::<()>().await;
    Ok(())
}

/// Over its own pipes, until they close.
pub(crate) async fn converse(words: &[String]) -> anyhow::Result<()> {
    let [data_dir] = words else {
        anyhow::bail!("a data directory")
    };
    let server = builder(data_dir, "1")?.start_offline().await?;
    server.converse(std::io::stdin(), std::io::stdout()).await;
    Ok(())
}
