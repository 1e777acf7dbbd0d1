//! The events of one call on their way to whoever reads them. The way is short and never blocks: what a slow
//! reader has no room for is dropped and counted, and so is what the host dropped before.

use tokio::sync::mpsc;

use crate::ToolEventMessage;

/// An event with how many were lost right before it.
#[derive(Debug)]
pub(crate) struct DeliveredToolEvent {
    pub(crate) lost_before: u64,
    pub(crate) event: ToolEventMessage,
}

/// Beyond this a first number is a clock, not a count; there are hosts that number so.
const CLOCK: u64 = 1_000_000_000;

/// The end that hears the host.
pub(super) struct EventSender {
    queue: mpsc::Sender<DeliveredToolEvent>,
    numbering: EventNumbering,
    /// Lost since the last event that found room.
    lost: u64,
}

#[derive(Clone, Copy)]
enum EventNumbering {
    /// Nothing heard yet.
    Unknown,
    /// 1, 2, 3; the last one heard.
    Counts(u64),
    /// No numbers, or numbers that do not count.
    MeansNothing,
}

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EventQueueOutcome {
    /// It is in the queue, or was heard before.
    On,
    /// So many are newly lost, this one or others before it.
    Losing(u64),
}

impl EventSender {
    /// Both ends, with room for so many events.
    pub(super) fn new(room: usize) -> (Self, mpsc::Receiver<DeliveredToolEvent>) {
        let (queue, receiver) = mpsc::channel(room.max(1));
        (
            Self {
                queue,
                numbering: EventNumbering::Unknown,
                lost: 0,
            },
            receiver,
        )
    }

    /// How many were lost after the last event that found room.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn pass(&mut self, event: ToolEventMessage) -> EventQueueOutcome {
        let mut newly = match self.hole_before(event.seq) {
            Some(hole) => hole,
            None => return EventQueueOutcome::On,
        };
        match self.queue.try_send(DeliveredToolEvent {
            lost_before: self.lost + newly,
            event,
        }) {
            Ok(()) => self.lost = 0,
            Err(_) => {
                newly += 1;
                self.lost += newly;
            }
        }
        if newly == 0 {
            EventQueueOutcome::On
        } else {
            EventQueueOutcome::Losing(newly)
        }
    }

    /// How many numbers were skipped. `None`: this event was heard already.
    fn hole_before(&mut self, seq: u64) -> Option<u64> {
        let last = match self.numbering {
            EventNumbering::Unknown if (1..CLOCK).contains(&seq) => 0,
            EventNumbering::Unknown => {
                self.numbering = EventNumbering::MeansNothing;
                return Some(0);
            }
            EventNumbering::Counts(last) => last,
            EventNumbering::MeansNothing => return Some(0),
        };
        if seq <= last {
            return None;
        }
        self.numbering = EventNumbering::Counts(seq);
        Some(seq - last - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64) -> ToolEventMessage {
        ToolEventMessage {
            kind: "status".to_owned(),
            req_id: String::new(),
            data: serde_json::Map::new(),
            seq,
            at: None,
        }
    }

    #[test]
    fn holes_are_told_before_the_next_event() {
        for (room, given, expected, left_over) in [
            (8, vec![1, 2, 3], vec![(0, 1), (0, 2), (0, 3)], 0),
            (8, vec![3, 4, 8], vec![(2, 3), (0, 4), (3, 8)], 0),
            // Heard twice.
            (8, vec![1, 2, 2, 1, 3], vec![(0, 1), (0, 2), (0, 3)], 0),
            // No room.
            (2, vec![1, 2, 3, 5], vec![(0, 1), (0, 2)], 3),
            // Not a count.
            (8, vec![0, 0, 7], vec![(0, 0), (0, 0), (0, 7)], 0),
            (
                8,
                vec![1_790_000_000_000, 1_790_000_000_000],
                vec![(0, 1_790_000_000_000); 2],
                0,
            ),
        ] {
            let (mut sender, mut receiver) = EventSender::new(room);
            for seq in &given {
                sender.pass(event(*seq));
            }
            let mut heard = Vec::new();
            while let Ok(DeliveredToolEvent { lost_before, event }) = receiver.try_recv() {
                heard.push((lost_before, event.seq));
            }
            assert_eq!((heard, sender.lost()), (expected, left_over), "{given:?}");
        }
    }
}
