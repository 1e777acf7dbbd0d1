//! Calls over HTTP and its stream: a call is a POST and its answer as an event.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use tokio::sync::Notify;

use super::{
    Contender,
    wire::{self, Events, Sender},
};
use crate::{
    children::Served,
    rounds::{Pairs, rate},
};

const ROUND: Duration = Duration::from_millis(1_500);
const ROUNDS: usize = 5;

pub(super) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let floor = Served::start(&["--serve-floor-a2e"])?;
    let ours = Served::start(&["--serve-a2e", &data, "1"])?;
    let floor = Contender::floor(&floor.address);
    let echo = Contender::echo(&ours.address);
    let at_once = Contender {
        message: super::at_once,
        good: super::ANSWERED_AT_ONCE,
        ..Contender::echo(&ours.address)
    };
    let pairs = Pairs::take(ROUNDS, || sessions(echo, 16), || sessions(floor, 16)).await?;
    pairs.tell("A2E over HTTP, 16 sessions, each call on record", "calls/s");
    let pairs = Pairs::take(ROUNDS, || sessions(at_once, 16), || sessions(floor, 16)).await?;
    pairs.tell(
        "A2E over HTTP, 16 sessions, a capability that answers at once",
        "calls/s",
    );
    let pairs = Pairs::take(ROUNDS, || sessions(echo, 1), || sessions(floor, 1)).await?;
    pairs.tell(
        "A2E over HTTP, 1 session, one call after another",
        "calls/s",
    );
    let pairs = Pairs::take(ROUNDS, || callers(echo, 16), || callers(floor, 16)).await?;
    pairs.tell("A2E over HTTP, 1 session, 16 callers", "calls/s");
    Ok(())
}

/// `count` sessions with one caller each.
pub(super) async fn sessions(contender: Contender<'_>, count: usize) -> anyhow::Result<f64> {
    load(contender, count, ROUND).await
}

/// The same for a given time.
pub(super) async fn load(
    contender: Contender<'_>,
    count: usize,
    time: Duration,
) -> anyhow::Result<f64> {
    let mut entered = Vec::new();
    for _ in 0..count {
        entered.push(wire::enter(contender.address).await?);
    }
    let Contender {
        key, good, message, ..
    } = contender;
    let began = Instant::now();
    let tasks = entered.into_iter().map(|(mut sender, mut events)| {
        tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < time {
                let id = format!("{calls:016x}");
                sender.send(&message(&id)).await?;
                wait_for(&mut events, key, good, &id).await?;
                calls += 1;
            }
            Ok(calls)
        })
    });
    rate(began, tasks.collect()).await
}

async fn wait_for(events: &mut Events, key: &str, good: &str, id: &str) -> anyhow::Result<()> {
    loop {
        let event = events.next().await?.context("the stream ended")?;
        if wire::value(event, key) == Some(id) {
            return wire::expect(event, good);
        }
    }
}

/// One session with `count` callers, each with a connection of its own for its messages.
async fn callers(contender: Contender<'_>, count: usize) -> anyhow::Result<f64> {
    let (first, mut events) = wire::enter(contender.address).await?;
    let mut senders = Vec::new();
    for _ in 0..count {
        senders.push(Sender::another(contender.address, &first.session).await?);
    }
    let answered: Arc<Vec<Notify>> = Arc::new((0..count).map(|_| Notify::new()).collect());
    let Contender {
        key, good, message, ..
    } = contender;
    let told = Arc::clone(&answered);
    let reader = tokio::spawn(async move {
        while let Some(event) = events.next().await? {
            let caller = wire::value(event, key).and_then(|id| id.get(..4)?.parse::<usize>().ok());
            if let Some(caller) = caller {
                wire::expect(event, good)?;
                told[caller].notify_one();
            }
        }
        anyhow::Ok(())
    });
    let began = Instant::now();
    let tasks = senders.into_iter().enumerate().map(|(caller, mut sender)| {
        let answered = Arc::clone(&answered);
        tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                sender
                    .send(&message(&format!("{caller:04}{calls:012x}")))
                    .await?;
                answered[caller].notified().await;
                calls += 1;
            }
            Ok(calls)
        })
    });
    tokio::select! {
        calls = rate(began, tasks.collect()) => calls,
        // Ends before the callers only when something is wrong.
        ended = reader => match ended? {
            Ok(()) => anyhow::bail!("the stream ended"),
            Err(error) => Err(error),
        },
    }
}
