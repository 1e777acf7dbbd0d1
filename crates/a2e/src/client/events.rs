//! The queue of the events of one call. Sending never blocks: events that do not fit are dropped and counted, and so
//! are events that the host dropped before.

use tokio::sync::mpsc;

use crate::ToolEventMessage;

/// An event, and the number of events that were lost right before it.
#[derive(Debug)]
pub(crate) struct DeliveredToolEvent {
    pub(crate) lost_before: u64,
    pub(crate) event: ToolEventMessage,
}

/// A first number above this is a clock, not a count; some hosts number events by the time.
const CLOCK: u64 = 1_000_000_000;

/// The sending end, which takes the host's events.
pub(super) struct EventSender {
    queue: mpsc::Sender<DeliveredToolEvent>,
    numbering: EventNumbering,
    /// The number of events lost since the last one that fitted.
    lost: u64,
}

#[derive(Clone, Copy)]
enum EventNumbering {
    /// No event has arrived.
    Unknown,
    /// The events count 1, 2, 3; the number of the latest one.
    Counts(u64),
    /// The events have no numbers, or numbers that do not count.
    MeansNothing,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum EventQueueOutcome {
    /// The event is queued, or is a repetition.
    On,
    /// The number of events that are newly lost, including this one and those skipped before it.
    Losing(u64),
}

impl EventSender {
    /// Both ends of a queue for `room` events.
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

    /// The number of events lost after the last one that fitted.
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

    /// The number of skipped events. `None`: this event is a repetition.
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
            // Repeated events.
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
