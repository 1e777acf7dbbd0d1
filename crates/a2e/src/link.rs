//! A pair of ends in the same process: messages pass as they are, nothing is written or parsed.

use tokio::sync::mpsc;

use crate::Message;

/// One end of a link. What one end sends, the other receives, in order; a full link makes its sender wait.
pub struct InProcessLink {
    /// Where this end's messages go.
    pub sender: mpsc::Sender<Message>,
    /// Where the other end's messages come from. Ends when the other end is dropped.
    pub receiver: mpsc::Receiver<Message>,
}

impl InProcessLink {
    /// Two ends with room for so many messages each way.
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
