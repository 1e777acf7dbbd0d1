//! The requests and answers of one agent.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::a2e::wire;

/// The number of answers whose text is kept, to compare repeats with.
const COMPARED: u64 = 4_096;

#[derive(Default)]
pub(super) struct Account {
    state: Mutex<State>,
    pub(super) answered: Notify,
}

#[derive(Default)]
struct State {
    counts: Counts,
    open: HashSet<u64>,
    texts: HashMap<u64, u64>,
    last_event: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) asked: u64,
    pub(super) answered: u64,
    /// Repeated answers.
    pub(super) again: u64,
    /// Repeated answers that differ from the first one.
    pub(super) differing: u64,
    /// Answers that say the call failed.
    pub(super) failed: u64,
    /// Errors in place of an answer.
    pub(super) refused: u64,
    pub(super) streams: u64,
    /// Requests sent once more.
    pub(super) reposts: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.again += other.again;
        self.differing += other.differing;
        self.failed += other.failed;
        self.refused += other.refused;
        self.streams += other.streams;
        self.reposts += other.reposts;
    }
}

impl Account {
    pub(super) fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    pub(super) fn missing(&self) -> usize {
        self.state.lock().open.len()
    }

    pub(super) fn last_event(&self) -> Option<String> {
        self.state.lock().last_event.clone()
    }

    pub(super) fn asks(&self, number: u64) {
        let mut state = self.state.lock();
        state.counts.asked += 1;
        state.open.insert(number);
    }

    pub(super) fn asks_again(&self) {
        self.state.lock().counts.reposts += 1;
    }

    pub(super) fn listens(&self) {
        self.state.lock().counts.streams += 1;
    }

    pub(super) fn hears(&self, event: &[u8]) {
        let mut state = self.state.lock();
        if let Some(rest) = event.strip_prefix(b"id: ") {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            state.last_event = Some(String::from_utf8_lossy(&rest[..end]).into_owned());
        }
        match wire::value(event, r#""type":""#) {
            Some("tool/call/resp") => {}
            Some("error") => {
                state.counts.refused += 1;
                if state.counts.refused == 1 {
                    println!("refused: {}", String::from_utf8_lossy(event));
                }
                return;
            }
            _ => return,
        }
        let Some(number) =
            wire::value(event, r#""req_id":""#).and_then(|id| id.parse::<u64>().ok())
        else {
            state.counts.refused += 1;
            return;
        };
        let text = said(event);
        if state.open.remove(&number) {
            state.counts.answered += 1;
            state.texts.insert(number, text);
            if let Some(old) = number.checked_sub(COMPARED) {
                state.texts.remove(&old);
            }
        } else {
            state.counts.again += 1;
            let before = state.texts.get(&number).copied();
            if before.is_some_and(|before| before != text) {
                state.counts.differing += 1;
            }
        }
        if memchr::memmem::find(event, br#""success":true"#).is_none() {
            state.counts.failed += 1;
        }
        drop(state);
        self.answered.notify_one();
    }
}

/// A hash of the event without its number.
fn said(event: &[u8]) -> u64 {
    let from = memchr::memmem::find(event, b"data:").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    event[from..].hash(&mut hasher);
    hasher.finish()
}
