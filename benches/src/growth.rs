//! How calls, lists and memory grow with tools and with clients.

use std::time::{Duration, Instant};

use crate::{
    children::Served,
    clients::{self, Client},
    over_http::BODY,
    rounds::{Pairs, median, shown},
};

const ROUND: Duration = Duration::from_millis(1_500);

pub(crate) async fn run() -> anyhow::Result<()> {
    let floor = Served::start(&["--serve-floor"])?;
    let (echo, call) = (
        clients::post("/echo", BODY),
        clients::post("/tools/echo/call", BODY),
    );
    for tools in [10, 1_000, 10_000] {
        let folder = tempfile::tempdir()?;
        let began = Instant::now();
        let data = folder.path().join("data").display().to_string();
        let ours = Served::start(&["--serve-toolpost", &data, &tools.to_string()])?;
        let started = began.elapsed();
        for clients_count in [1, 16, 256] {
            let pairs = Pairs::take(
                3,
                || clients::load(&ours.address, &call, clients_count, ROUND),
                || clients::load(&floor.address, &echo, clients_count, ROUND),
            )
            .await?;
            pairs.tell(
                &format!("{tools} tools, {clients_count} clients"),
                "calls/s",
            );
        }
        let mut client = Client::connect(&ours.address).await?;
        let (list, list_size) = timed(&mut client, &clients::get("/tools?format=openai")).await?;
        let (found, _) = timed(
            &mut client,
            &clients::get("/tools?query=variant+7&limit=10"),
        )
        .await?;
        println!(
            "{tools} tools: ready in {:.0} ms, {} MB resident, whole list {:.2} ms ({} KB), search {:.2} ms",
            started.as_secs_f64() * 1_000.0,
            shown(ours.memory()?),
            list,
            list_size / 1_024,
            found,
        );
    }
    Ok(())
}

async fn timed(client: &mut Client, request: &str) -> anyhow::Result<(f64, usize)> {
    let mut times = Vec::new();
    let mut size = 0;
    for _ in 0..15 {
        let began = Instant::now();
        size = client.send(request).await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok((median(&times), size))
}
