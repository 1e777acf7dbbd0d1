//! The cards on a terminal: as many open ones as fit at the bottom, and the ended ones above.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anstyle::Style;
use tokio::time::Instant;
use toolpost_a2a::{CallKey, Receiver, ToolCallPart};

use super::{
    card::{self, CallCardBody, CallCardStatus},
    heard::StreamLinkStatus,
    row::StyledLine,
    screen::{ScreenSize, WatchScreen},
};
use crate::{
    environment,
    terminal::{DIM, GREEN, YELLOW},
};

/// The most lines that wait for the next frame.
const WAITING: usize = 2_000;
/// The text for a session that was closed.
pub(super) const CLOSED: &str = "this session was closed";
/// A call with a start time further back than this has a start time from a wrong clock.
const BELIEVED: Duration = Duration::from_secs(7 * 24 * 3_600);

pub(super) struct CardBoard {
    screen: WatchScreen,
    /// The watched host or session, for the last line.
    watched: String,
    open: BTreeMap<CallKey, OpenCallCard>,
    /// Finished lines that are not drawn yet.
    settled: Vec<StyledLine>,
    /// Calls that wait for an approval, by their ids.
    waiting: BTreeSet<String>,
    link: StreamLinkStatus,
    ended: u64,
    failed: u64,
    turn: usize,
}

struct OpenCallCard {
    /// When this process first saw it.
    seen: Instant,
    /// The last drawing; redone after a change.
    shown: Option<(ToolCallPart, CallCardBody, Instant)>,
}

impl CardBoard {
    pub(super) fn new(watched: String) -> Self {
        Self {
            screen: WatchScreen::new(),
            watched,
            open: BTreeMap::new(),
            settled: Vec::new(),
            waiting: BTreeSet::new(),
            link: StreamLinkStatus::Up,
            ended: 0,
            failed: 0,
            turn: 0,
        }
    }

    pub(super) fn changed(&mut self, key: CallKey, now: Instant) {
        let open = self.open.entry(key).or_insert(OpenCallCard {
            seen: now,
            shown: None,
        });
        open.shown = None;
    }

    pub(super) fn ended(&mut self, key: CallKey, part: &ToolCallPart) {
        self.open.remove(&key);
        self.ended += 1;
        self.failed += u64::from(part.error.is_some());
        self.settled.extend(card::card(
            part,
            &CallCardBody::of(part),
            CallCardStatus::Ended,
        ));
        if self.settled.len() > WAITING {
            // A long recording is drawn in pieces, so that it is not held in memory as a whole.
            self.screen
                .draw(&std::mem::take(&mut self.settled), &[], WatchScreen::size());
        }
    }

    /// A call is open, and its end is not expected any more.
    pub(super) fn lost(&mut self, key: CallKey, part: &ToolCallPart) {
        self.open.remove(&key);
        self.settled.extend(card::card(
            part,
            &CallCardBody::of(part),
            CallCardStatus::Lost,
        ));
    }

    /// Sets the calls that wait for approval.
    pub(super) fn waiting(&mut self, ids: BTreeSet<String>) {
        self.waiting = ids;
    }

    pub(super) fn note(&mut self, note: &str) {
        self.settled.push(
            StyledLine::new()
                .own(YELLOW, "! ")
                .foreign(Style::new(), note, 1_000),
        );
    }

    pub(super) fn link(&mut self, link: StreamLinkStatus) {
        match &link {
            StreamLinkStatus::Up => {}
            StreamLinkStatus::Lost { why } => self.note(&format!("the connection is lost: {why}")),
            StreamLinkStatus::Closed => self.settled.push(StyledLine::new().own(DIM, CLOSED)),
            StreamLinkStatus::Back => self.settled.push(
                StyledLine::new()
                    .own(GREEN, "! ")
                    .own(DIM, "connected again"),
            ),
        }
        self.link = link;
    }

    pub(super) fn draw(&mut self, receiver: &Receiver) {
        self.turn = self.turn.wrapping_add(1);
        let size = WatchScreen::size();
        let mut open = self.open_rows(receiver, size);
        open.push(self.last_line());
        self.screen
            .draw(&std::mem::take(&mut self.settled), &open, size);
    }

    /// Draws a last time. Open calls stay as they were last seen.
    pub(super) fn end(mut self, receiver: &Receiver) {
        for key in std::mem::take(&mut self.open).into_keys() {
            if let Some(part) = receiver.part(key) {
                self.settled.extend(card::card(
                    &part,
                    &CallCardBody::of(&part),
                    CallCardStatus::LeftOpen,
                ));
            }
        }
        self.screen.draw(&self.settled, &[], WatchScreen::size());
    }

    /// The open calls: as cards if they fit, else one line each, else the first of them.
    fn open_rows(&mut self, receiver: &Receiver, size: ScreenSize) -> Vec<StyledLine> {
        // The last line, and the line of the cursor.
        let room = size.lines.saturating_sub(2);
        let all = self.open.len();
        let mut known = Vec::new();
        // Only as many as there are lines.
        for (key, open) in self.open.iter_mut().take(room) {
            if open.shown.is_none() {
                let made = receiver
                    .part(*key)
                    .map(|part| (CallCardBody::of(&part), part));
                open.shown = made.map(|(body, part)| {
                    let began = began(&part, open.seen);
                    (part, body, began)
                });
            }
            if let Some((part, body, began)) = &open.shown {
                let elapsed = Some(began.elapsed());
                let turn = self.turn;
                let standing = if self.waiting.contains(&part.id) {
                    CallCardStatus::Waiting { elapsed, turn }
                } else {
                    CallCardStatus::Running { elapsed, turn }
                };
                known.push((part, body, standing));
            }
        }
        let beyond = all - known.len();
        let cards: Vec<StyledLine> = known
            .iter()
            .flat_map(|(part, body, standing)| card::card(part, body, *standing))
            .collect();
        if beyond == 0 && cards.len() <= room {
            return cards;
        }
        let fit = if beyond == 0 {
            known.len()
        } else {
            known.len().min(room.saturating_sub(1))
        };
        let more = all - fit;
        let mut rows: Vec<StyledLine> = known
            .iter()
            .take(fit)
            .map(|(part, body, standing)| card::compact(part, body, *standing))
            .collect();
        if more > 0 {
            rows.push(StyledLine::new().own(DIM, format!("… {more} more are running")));
        }
        rows
    }

    fn last_line(&self) -> StyledLine {
        let row = match self.link {
            StreamLinkStatus::Up | StreamLinkStatus::Back | StreamLinkStatus::Closed => {
                StyledLine::new().own(DIM, "watching ")
            }
            StreamLinkStatus::Lost { .. } => StyledLine::new().own(YELLOW, "reconnecting to "),
        };
        let failed = if self.failed > 0 {
            format!(", {} failed", self.failed)
        } else {
            String::new()
        };
        let counts = format!(
            " · {} running, {} ended{failed} · Ctrl-C stops",
            self.open.len(),
            self.ended
        );
        row.foreign(DIM, &self.watched, 200).own(DIM, counts)
    }
}

/// The start of a call: its own claim if that is plausible, else the time when this process first saw it.
fn began(part: &ToolCallPart, seen: Instant) -> Instant {
    let said = part
        .started_at
        .as_deref()
        .and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let ago = said.and_then(|at| Duration::try_from(environment::now().duration_since(at)).ok());
    let began = ago
        .filter(|ago| *ago < BELIEVED)
        .and_then(|ago| Instant::now().checked_sub(ago));
    began.unwrap_or(seen).min(seen)
}
