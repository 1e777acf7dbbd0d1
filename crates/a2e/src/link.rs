//! A pair of connected ends in one process. Messages pass as values; nothing is serialized.

use tokio::sync::mpsc;

use crate::Message;

/// One end of a link. The other end receives the messages in the order of sending; a full link makes its sender wait.
pub struct InProcessLink {
    /// The queue of messages to the other end.
    pub sender: mpsc::Sender<Message>,
    /// The queue of messages from the other end. Ends when the other end is dropped.
    pub receiver: mpsc::Receiver<Message>,
}

impl InProcessLink {
    /// Two ends with room for `room` messages in each direction.
    pub fn pair(room: usize) -> (Self, Self) {
        let (to_there, from_here) = mpsc::channel(room);
        let (to_here, from_there) = mpsc::channel(room);
        (
            Self {
                sender: to_there,
                receiver: from_there,
            },
            Self {
                sender: to_here,
                receiver: from_here,
            },
        )
    }
}
