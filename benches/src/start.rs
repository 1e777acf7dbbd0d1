//! The time from a cold start to the first answer, and the memory of an idle host: the real binary, beside bare axum.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::{
    children::{self, Served},
    clients::{self, Client},
    over_http::BODY,
    rounds::Pairs,
};

pub(crate) async fn run() -> anyhow::Result<()> {
    let pairs = Pairs::take(9, first_answer, first_floor_answer).await?;
    pairs.tell(
        "start to first answered call, first run on an empty folder",
        "ms",
    );
    let weights = Pairs::take(3, idle_weight, idle_floor_weight).await?;
    weights.tell("idle memory after one call", "MB");
    Ok(())
}

/// The real `toolpost serve`, on a port of its own choosing, until a call has its answer.
async fn serve_once() -> anyhow::Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    let data = folder.path().join("data");
    make(&workspace)?;
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let program = std::env::current_exe()?.with_file_name("toolpost");
    let began = Instant::now();
    let mut child = children::command(&program)
        .args(["serve", "--no-token", "--http", &address, "--workspace"])
        .arg(&workspace)
        .arg("--data-dir")
        .arg(&data)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", program.display()))?;
    let answered = answer(&address, "/tools/echo/call").await;
    let took = began.elapsed().as_secs_f64() * 1_000.0;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let weight = children::memory_of(child.id());
    let _ = child.kill();
    let _ = child.wait();
    answered?;
    Ok((took, weight?))
}

async fn answer(address: &str, path: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(mut client) = Client::connect(address).await {
            client.send(&clients::post(path, BODY)).await?;
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "no answer within 20 seconds");
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
}

async fn first_answer() -> anyhow::Result<f64> {
    Ok(serve_once().await?.0)
}

async fn idle_weight() -> anyhow::Result<f64> {
    Ok(serve_once().await?.1)
}

async fn first_floor_answer() -> anyhow::Result<f64> {
    let began = Instant::now();
    let floor = Served::start(&["--serve-floor"])?;
    answer(&floor.address, "/echo").await?;
    Ok(began.elapsed().as_secs_f64() * 1_000.0)
}

async fn idle_floor_weight() -> anyhow::Result<f64> {
    let floor = Served::start(&["--serve-floor"])?;
    answer(&floor.address, "/echo").await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    floor.memory()
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}

#[expect(clippy::disallowed_methods, reason = "the contender's workspace")]
fn make(folder: &std::path::Path) -> anyhow::Result<()> {
    Ok(std::fs::create_dir_all(folder)?)
}
