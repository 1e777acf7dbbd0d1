//! Keeps the events of a call.

use tokio::sync::mpsc;
use toolpost_model::{Event, EventBody, Stage};

/// Receives events from a call and hands them out.
pub struct CallEventRecorder {
    events: mpsc::Receiver<Event>,
}

impl CallEventRecorder {
    /// A recorder, and the sender to put into a call request.
    pub fn new(capacity: usize) -> (mpsc::Sender<Event>, Self) {
        let (sender, events) = mpsc::channel(capacity);
        (sender, Self { events })
    }

    /// The next event.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// All events until the call drops its sender.
    pub async fn all(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.events.recv().await {
            events.push(event);
        }
        events
    }

    /// The stages among the events.
    pub fn stages(events: &[Event]) -> Vec<Stage> {
        let stage = |event: &Event| match event.body {
            EventBody::Stage { stage } => Some(stage),
            _ => None,
        };
        events.iter().filter_map(stage).collect()
    }
}
