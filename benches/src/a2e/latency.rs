//! The latency of an event: from the tool that emits it to the first read that has it, with and without other clients
//! that keep the host busy.

use std::time::Duration;

use anyhow::Context;

use super::{Contender, TICKS, http, wire};
use crate::children::Served;

/// One every five milliseconds.
const EVENTS: usize = 400;
const ROUNDS: usize = 3;
const OTHERS: usize = 8;

pub(super) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let ours = Served::start(&["--serve-a2e", &data, "1"])?;
    let floor = Served::start(&["--serve-floor-a2e"])?;
    for (others, name) in [
        (0, "nothing else happening"),
        (OTHERS, "8 other sessions calling"),
    ] {
        let mut here = Vec::new();
        let mut there = Vec::new();
        for _ in 0..ROUNDS {
            there.extend(beside(Contender::floor(&floor.address), others).await?);
            here.extend(beside(Contender::echo(&ours.address), others).await?);
        }
        println!(
            "A2E, an event from the tool to its reader, {name}: {} against {} of the floor",
            told(&mut here),
            told(&mut there)
        );
    }
    Ok(())
}

fn told(delays: &mut [u64]) -> String {
    delays.sort_unstable();
    let at = |percent: usize| {
        delays
            .get(delays.len() * percent / 100)
            .map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    format!("p50 {:.0} µs, p99 {:.0} µs", at(50), at(99))
}

/// Delays in nanoseconds while `others` clients load the same server.
async fn beside(contender: Contender<'_>, others: usize) -> anyhow::Result<Vec<u64>> {
    let time = Duration::from_millis(EVENTS as u64 * 10);
    let end = wire::now() + time.as_nanos() as u64;
    let (delays, load) = tokio::join!(delays(contender, end), http::load(contender, others, time));
    load?;
    delays
}

/// Events after the end of the other load do not count.
async fn delays(contender: Contender<'_>, end: u64) -> anyhow::Result<Vec<u64>> {
    let (mut sender, mut events) = wire::enter(contender.address).await?;
    // After the other load has begun.
    tokio::time::sleep(Duration::from_millis(100)).await;
    sender
        .send(&format!(
            r#"{TICKS},"tool_name":"ticks","streaming":true,"arguments":{{"count":{EVENTS}}},"timeout":60}}"#
        ))
        .await?;
    let mut delays = Vec::new();
    while delays.len() < EVENTS && events.arrived < end {
        let event = events.next().await?.context("the stream ended")?;
        let said = wire::value(event, r#""message":""#).and_then(|text| text.parse::<u64>().ok());
        match said {
            Some(at) => delays.push(events.arrived.saturating_sub(at)),
            // An answer here means that the host dropped some events, and no more will come.
            None => break,
        }
    }
    anyhow::ensure!(
        delays.len() * 2 > EVENTS,
        "only {} events came",
        delays.len()
    );
    Ok(delays)
}
