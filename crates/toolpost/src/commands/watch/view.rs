//! How calls are shown: as cards on a terminal, as a line for each change elsewhere, or as JSON.

use std::collections::BTreeSet;

use tokio::time::Instant;
use toolpost_a2a::{CallKey, CallPartChange, CallPhase, Receiver, ToolCallPart};

use super::{
    board::{CLOSED, CardBoard},
    card::{self, CallCardStatus},
    heard::StreamLinkStatus,
};
use crate::terminal::{self, DIM, YELLOW, clean, printable, styled};

/// The width of lines for files and programs.
const LINE: usize = 400;

/// The form in which calls are shown.
pub(super) enum WatchView {
    /// Cards, drawn in place.
    Cards(Box<CardBoard>),
    /// A line at the start and the end of each call.
    Lines {
        /// Calls that were announced.
        begun: BTreeSet<CallKey>,
    },
    /// The part at each change.
    Json,
}

impl WatchView {
    pub(super) fn choose(json: bool, watched: String) -> Self {
        if json {
            Self::Json
        } else if terminal::draws() {
            Self::Cards(Box::new(CardBoard::new(watched)))
        } else {
            Self::Lines {
                begun: BTreeSet::new(),
            }
        }
    }

    /// Handles changed calls. Ended ones are removed from the receiver.
    pub(super) fn show(&mut self, changes: &[CallPartChange], receiver: &mut Receiver) {
        for change in changes {
            match change.step {
                // One text may contain a call from its beginning to its end, and then only the end is shown.
                CallPhase::Started | CallPhase::Called | CallPhase::Progressed
                    if receiver.is_open(change.call) =>
                {
                    self.changed(change.call, receiver);
                }
                CallPhase::Started
                | CallPhase::Called
                | CallPhase::Progressed
                | CallPhase::Ended => {}
            }
        }
        for (key, part) in receiver.take_ended() {
            self.ended(key, &part);
        }
    }

    fn changed(&mut self, key: CallKey, receiver: &Receiver) {
        match self {
            Self::Cards(board) => board.changed(key, Instant::now()),
            Self::Lines { begun } => {
                if let Some(part) = receiver.part(key)
                    && begun.insert(key)
                {
                    print_news(
                        &part,
                        CallCardStatus::Running {
                            elapsed: None,
                            turn: 0,
                        },
                    );
                }
            }
            Self::Json => {
                if let Some(part) = receiver.part(key) {
                    print_json(&part);
                }
            }
        }
    }

    fn ended(&mut self, key: CallKey, part: &ToolCallPart) {
        match self {
            Self::Cards(board) => board.ended(key, part),
            Self::Lines { begun } => {
                begun.remove(&key);
                print_news(part, CallCardStatus::Ended);
            }
            Self::Json => print_json(part),
        }
    }

    /// Open calls of a host that is gone. If their ends arrive after all, they are shown.
    pub(super) fn lost(&mut self, keys: &[CallKey], receiver: &Receiver) {
        for key in keys.iter().filter(|key| receiver.is_open(**key)) {
            let Some(part) = receiver.part(*key) else {
                continue;
            };
            match self {
                Self::Cards(board) => board.lost(*key, &part),
                Self::Lines { begun } => {
                    begun.remove(key);
                    print_news(&part, CallCardStatus::Lost);
                }
                Self::Json => {
                    let note = format!(
                        "call `{}` has no result: the host that ran it is gone",
                        part.id
                    );
                    terminal::warn(printable(&note));
                }
            }
        }
    }

    /// Sets the calls that wait for approval; the call `new` has just begun to wait.
    pub(super) fn waiting(
        &mut self,
        ids: BTreeSet<String>,
        new: Option<&str>,
        receiver: &Receiver,
    ) {
        match self {
            Self::Cards(board) => board.waiting(ids),
            Self::Lines { .. } => {
                let is_new = |part: &ToolCallPart| new == Some(part.id.as_str());
                if let Some((_, part)) = receiver.parts().find(|(_, part)| is_new(part)) {
                    print_news(
                        &part,
                        CallCardStatus::Waiting {
                            elapsed: None,
                            turn: 0,
                        },
                    );
                }
            }
            // The JSON of a part cannot show this.
            Self::Json => {}
        }
    }

    /// Shows a note to the user.
    pub(super) fn note(&mut self, note: &str) {
        match self {
            Self::Cards(board) => board.note(note),
            Self::Lines { .. } | Self::Json => terminal::warn(printable(note)),
        }
    }

    /// The connection changed.
    pub(super) fn link(&mut self, link: &StreamLinkStatus) {
        let said = match link {
            StreamLinkStatus::Up => None,
            StreamLinkStatus::Lost { why } => {
                Some(format!("the connection is lost ({why}); trying again"))
            }
            StreamLinkStatus::Back => Some("connected again".to_owned()),
            StreamLinkStatus::Closed => Some(CLOSED.to_owned()),
        };
        match self {
            Self::Cards(board) => board.link(link.clone()),
            Self::Lines { .. } | Self::Json => {
                if let Some(said) = said {
                    anstream::eprintln!("{}", styled(DIM, printable(&clean(&said))));
                }
            }
        }
    }

    /// Draws the next frame, if this view draws.
    pub(super) fn tick(&mut self, receiver: &Receiver) {
        match self {
            Self::Cards(board) => board.draw(receiver),
            Self::Lines { .. } | Self::Json => {}
        }
    }

    /// All inputs have ended.
    pub(super) fn end(self, receiver: &Receiver) {
        match self {
            Self::Cards(board) => board.end(receiver),
            Self::Lines { begun } => {
                for key in &begun {
                    if let Some(part) = receiver.part(*key) {
                        print_news(&part, CallCardStatus::LeftOpen);
                    }
                }
            }
            Self::Json => {}
        }
        let left_out = receiver.tally().beyond_bounds;
        if left_out > 0 {
            anstream::eprintln!(
                "{} {left_out} events are not shown: too many calls were open",
                styled(YELLOW, "warning:")
            );
        }
    }
}

fn print_news(part: &ToolCallPart, standing: CallCardStatus) {
    terminal::print_text(format_args!("{}\n", card::news(part, standing).plain(LINE)));
}

fn print_json(part: &ToolCallPart) {
    let text = serde_json::to_string(part).unwrap_or_default();
    terminal::print_text(format_args!("{text}\n"));
}
