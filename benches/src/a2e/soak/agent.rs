//! One agent: it calls, and it reads its stream in its own way.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::watch, task::JoinHandle};

use super::{Phase, account::Account};
use crate::a2e::wire::{Events, HANDSHAKE, Sender};

/// The lifetime of a dropped stream.
const STREAM_LASTS: Duration = Duration::from_secs(1);
/// The pause between two calls of an agent, so that hours of this fit on a disk.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// One call after another.
    Steady,
    /// Reads more slowly than it calls.
    Slow,
    /// Drops its stream every second and resumes without its last event id.
    Forgetting,
    /// Drops its stream every second and resumes with its last event id.
    Remembering,
    /// Sends many requests twice: at once, or after their answer.
    Repeating,
}

impl Habit {
    pub(super) const ALL: [Self; 5] = [
        Self::Steady,
        Self::Slow,
        Self::Forgetting,
        Self::Remembering,
        Self::Repeating,
    ];

    pub(super) fn of(place: usize) -> Self {
        match place % 8 {
            0..3 => Self::Steady,
            3 => Self::Slow,
            4 => Self::Forgetting,
            5 | 6 => Self::Remembering,
            _ => Self::Repeating,
        }
    }

    /// Whether an answer may come more than once.
    pub(super) fn hears_again(self) -> bool {
        matches!(self, Self::Forgetting | Self::Repeating)
    }

    fn depth(self) -> usize {
        match self {
            Self::Steady => 1,
            Self::Repeating => 4,
            Self::Forgetting | Self::Remembering => 8,
            Self::Slow => 500,
        }
    }

    fn drops_its_stream(self) -> bool {
        matches!(self, Self::Forgetting | Self::Remembering)
    }
}

/// Opens the session and starts its two halves.
pub(super) async fn start(
    address: &str,
    habit: Habit,
    account: Arc<Account>,
    phase: watch::Receiver<Phase>,
) -> anyhow::Result<[JoinHandle<anyhow::Result<()>>; 2]> {
    let mut sender = Sender::open(address).await?;
    sender.send(HANDSHAKE).await?;
    let address = address.to_owned();
    let session = sender.session.clone();
    let listener = Listener {
        address: address.clone(),
        session,
        habit,
        account: Arc::clone(&account),
    };
    let caller = Caller {
        address,
        sender,
        habit,
        account,
    };
    Ok([
        tokio::spawn(caller.call(phase.clone())),
        tokio::spawn(listener.listen(phase)),
    ])
}

struct Caller {
    address: String,
    sender: Sender,
    habit: Habit,
    account: Arc<Account>,
}

impl Caller {
    async fn call(mut self, phase: watch::Receiver<Phase>) -> anyhow::Result<()> {
        let mut number = 0_u64;
        while *phase.borrow() == Phase::Call {
            if self.account.missing() >= self.habit.depth() {
                // Checks again after a while: the end of the phase wakes no waiter.
                let _ =
                    tokio::time::timeout(Duration::from_secs(1), self.account.answered.notified())
                        .await;
                continue;
            }
            number += 1;
            self.account.asks(number);
            self.send(number).await?;
            if self.habit == Habit::Repeating {
                self.repeat(number).await?;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Repeats some requests at once, and some that were answered long ago.
    async fn repeat(&mut self, number: u64) -> anyhow::Result<()> {
        if number.is_multiple_of(5) {
            self.account.asks_again();
            self.send(number).await?;
        }
        if number.is_multiple_of(7) && number > 50 {
            self.account.asks_again();
            self.send(number - 50).await?;
        }
        Ok(())
    }

    async fn send(&mut self, number: u64) -> anyhow::Result<()> {
        let message = message(number, self.habit);
        let mut attempts = 0;
        while let Err(error) = self.sender.send(&message).await {
            attempts += 1;
            anyhow::ensure!(attempts < 3, "a message could not be sent: {error:#}");
            self.account.asks_again();
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.sender = Sender::another(&self.address, &self.sender.session).await?;
        }
        Ok(())
    }
}

/// The same number is the same request. One in four writes.
fn message(number: u64, habit: Habit) -> String {
    if number.is_multiple_of(4) {
        return format!(
            r#"{{"type":"tool/call/req","id":"{number}","tool_name":"store","arguments":{{}}}}"#
        );
    }
    // A slow reader is only slow if it has much to read.
    let text = "many words ".repeat(if habit == Habit::Slow { 200 } else { 5 });
    let arguments = format!(r#"{{"message":"{number}: {text}"}}"#);
    format!(
        r#"{{"type":"tool/call/req","id":"{number}","tool_name":"echo","arguments":{arguments}}}"#
    )
}

struct Listener {
    address: String,
    session: String,
    habit: Habit,
    account: Arc<Account>,
}

impl Listener {
    async fn listen(self, mut phase: watch::Receiver<Phase>) -> anyhow::Result<()> {
        loop {
            let now = *phase.borrow_and_update();
            if now == Phase::Over {
                return Ok(());
            }
            let last = match self.habit {
                Habit::Forgetting => None,
                _ => self.account.last_event(),
            };
            self.account.listens();
            let is_slow = self.habit == Habit::Slow && now == Phase::Call;
            let mut events = if is_slow {
                let mut events = Events::open_narrow(&self.address, &self.session).await?;
                events.piece = 1_024;
                events
            } else {
                Events::open(&self.address, &self.session, last.as_deref()).await?
            };
            let until = match self.habit.drops_its_stream() && now == Phase::Call {
                true => Instant::now() + STREAM_LASTS,
                false => Instant::now() + Duration::from_secs(24 * 60 * 60),
            };
            tokio::select! {
                ended = self.hear(&mut events, is_slow) => ended?,
                () = tokio::time::sleep_until(until.into()) => {}
                _ = phase.changed() => {}
            }
        }
    }

    async fn hear(&self, events: &mut Events, is_slow: bool) -> anyhow::Result<()> {
        let mut read = 0;
        while let Some(event) = events.next().await? {
            self.account.hears(event);
            read += event.len();
            if is_slow && read > events.piece {
                read = 0;
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
        }
        Ok(())
    }
}
