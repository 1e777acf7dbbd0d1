//! `cargo xtask bench a2e-soak --minutes N`: 64 sessions with different habits, for a long time. Every call must be
//! answered even if its streams break, and the server's memory must not grow without end.

mod account;
mod agent;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tokio::sync::watch;

use crate::children::Served;
use account::Account;
use agent::Habit;

const AGENTS: usize = 64;
const TELL_EVERY: Duration = Duration::from_secs(10);
/// The longest wait for answers after all clients have reconnected.
const LAST_WAIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Call,
    /// Connect again and wait for the missing answers.
    Wait,
    Over,
}

pub(crate) async fn run(words: &[&str]) -> anyhow::Result<()> {
    let minutes: f64 = match words {
        [] => 10.0,
        ["--minutes", minutes] => minutes.parse().context("--minutes needs a number")?,
        _ => bail!("usage: cargo xtask bench a2e-soak [--minutes N]"),
    };
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let served = Served::start(&["--serve-a2e", &data, "1"])?;
    let (tell, phase) = watch::channel(Phase::Call);
    let mut agents = Vec::new();
    for place in 0..AGENTS {
        let habit = Habit::of(place);
        let account = Arc::new(Account::default());
        let tasks =
            agent::start(&served.address, habit, Arc::clone(&account), phase.clone()).await?;
        agents.push((habit, account, tasks));
    }
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(minutes * 60.0);
    let accounts: Vec<(Habit, Arc<Account>)> = agents
        .iter()
        .map(|(habit, account, _)| (*habit, Arc::clone(account)))
        .collect();
    while Instant::now() < end {
        tokio::time::sleep_until((Instant::now() + TELL_EVERY).min(end).into()).await;
        told(began, &served, &accounts)?;
    }
    tell.send_replace(Phase::Wait);
    let patience = Instant::now() + LAST_WAIT;
    while missing(&accounts) > 0 && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Duplicates come a little later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    tell.send_replace(Phase::Over);
    for (_, _, tasks) in agents {
        for task in tasks {
            task.await??;
        }
    }
    told(began, &served, &accounts)?;
    judge(&accounts)
}

fn missing(accounts: &[(Habit, Arc<Account>)]) -> usize {
    accounts.iter().map(|(_, account)| account.missing()).sum()
}

fn told(began: Instant, served: &Served, accounts: &[(Habit, Arc<Account>)]) -> anyhow::Result<()> {
    let mut asked = 0;
    let mut answered = 0;
    let mut again = 0;
    for (_, account) in accounts {
        let counts = account.counts();
        asked += counts.asked;
        answered += counts.answered;
        again += counts.again;
    }
    println!(
        "{:>5.0} s: {asked} calls, {answered} answered, {again} answers more than once, server {:.1} MB",
        began.elapsed().as_secs_f64(),
        served.memory()?
    );
    Ok(())
}

/// Sums by habit, and whether the run is sound.
fn judge(accounts: &[(Habit, Arc<Account>)]) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for habit in Habit::ALL {
        let mut sum = account::Counts::default();
        let mut lost = 0;
        for (_, account) in accounts.iter().filter(|(of, _)| *of == habit) {
            sum.add(&account.counts());
            lost += account.missing();
        }
        println!("{habit:?}: {sum:?}, {lost} missing");
        let fault =
            |what: &str, count: u64| (count > 0).then(|| format!("{habit:?}: {count} {what}"));
        faults.extend(fault("answers are missing", lost as u64));
        faults.extend(fault("answers differ from earlier ones", sum.differing));
        faults.extend(fault("calls failed", sum.failed));
        faults.extend(fault("messages were refused", sum.refused));
        let unasked = if habit.hears_again() { 0 } else { sum.again };
        faults.extend(fault(
            "answers came twice to an agent that lost none",
            unasked,
        ));
    }
    anyhow::ensure!(faults.is_empty(), "{}", faults.join("; "));
    println!("every call was answered");
    Ok(())
}
