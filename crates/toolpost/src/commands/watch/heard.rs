//! The messages from the readers of the inputs to the view.

use tokio::sync::mpsc;

use super::frames::{ApprovalFrame, StreamOpeningFrame};

/// The size of the queue of messages. A faster input waits.
pub(super) const ROOM: usize = 64;

/// A message of an input.
#[derive(Debug)]
pub(super) enum WatchInputMessage {
    /// A JSON text.
    Json(String),
    /// A note for the user.
    Note(String),
    /// The next data has an unspecific type, so it must prove to be tool events. With a name for it.
    Unproven(String),
    /// A host lists its open calls.
    Opening(StreamOpeningFrame),
    /// A host reports that an approval was requested or answered.
    Approval(ApprovalFrame),
    /// The state of the connection.
    Link(StreamLinkStatus),
    /// The end of the input, with its error.
    End(anyhow::Result<()>),
}

/// The state of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamLinkStatus {
    /// Connected.
    Up,
    /// The connection broke, and is being reopened.
    Lost { why: String },
    /// Connected again.
    Back,
    /// The watched session was closed.
    Closed,
}

pub(super) type WatchInputSender = mpsc::Sender<WatchInputMessage>;
