//! The memory of a thousand open, idle sessions: handshake done, stream open.

use super::{
    Contender,
    wire::{self, Events, Sender},
};
use crate::children::Served;

const COUNT: usize = 1_000;

pub(super) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let ours = Served::start(&["--serve-a2e", &data, "1"])?;
    let [streams, later, all, called] = weigh(&ours, Contender::echo(&ours.address)).await?;
    println!(
        "A2E, {COUNT} open sessions: {streams:.1} KB each with the stream alone ({later:.1} KB in the later half), \
         {all:.1} KB with an idle connection to send by, {called:.1} KB after a call in each"
    );
    let floor = Served::start(&["--serve-floor-a2e"])?;
    let [streams, later, all, called] = weigh(&floor, Contender::floor(&floor.address)).await?;
    println!("the same at the floor: {streams:.1} KB ({later:.1} KB), {all:.1} KB, {called:.1} KB");
    Ok(())
}

/// Kilobytes a session: stream only, the same of the later half, with a second connection, and after a call.
async fn weigh(served: &Served, contender: Contender<'_>) -> anyhow::Result<[f64; 4]> {
    // One-time allocations are made before the measurement.
    super::http::load(contender, 16, std::time::Duration::from_millis(300)).await?;
    settle().await;
    let before = served.memory()?;
    let each = |now: f64| (now - before) * 1_024.0 / COUNT as f64;
    let mut open: Vec<(String, Events)> = Vec::new();
    let mut half = 0.0;
    for place in 0..COUNT {
        if place == COUNT / 2 {
            settle().await;
            half = served.memory()?;
        }
        let (sender, events) = wire::enter(contender.address).await?;
        open.push((sender.session.clone(), events));
    }
    settle().await;
    let streams = each(served.memory()?);
    // The first sessions may reuse memory that was free already; the later ones do not.
    let later = (served.memory()? - half) * 2.0 * 1_024.0 / COUNT as f64;
    let mut senders = Vec::new();
    for (session, _) in &open {
        let mut sender = Sender::another(contender.address, session).await?;
        // An empty message is accepted and has no effect.
        sender.send("").await?;
        senders.push(sender);
    }
    settle().await;
    let all = each(served.memory()?);
    for (sender, (_, events)) in senders.iter_mut().zip(&mut open) {
        sender.send(&(contender.message)("one")).await?;
        while wire::value(events.next().await?.unwrap_or_default(), contender.key) != Some("one") {}
    }
    settle().await;
    Ok([streams, later, all, each(served.memory()?)])
}

async fn settle() {
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
}
