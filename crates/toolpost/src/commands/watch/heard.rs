//! What those who read an input tell those who show it.

use tokio::sync::mpsc;

use super::frames::{ApprovalFrame, StreamOpeningFrame};

/// Messages that may wait to be shown. An input that comes faster waits.
pub(super) const ROOM: usize = 64;

/// Something an input tells.
#[derive(Debug)]
pub(super) enum WatchInputMessage {
    /// A JSON text.
    Json(String),
    /// Something for the person who watches.
    Note(String),
    /// What comes now has a type that says nothing, so it has to show that it holds tool events. With what to call it.
    Unproven(String),
    /// A host says which calls are open there.
    Opening(StreamOpeningFrame),
    /// A host says that somebody is asked about a call, or has answered.
    Approval(ApprovalFrame),
    /// How the connection stands now.
    Link(StreamLinkStatus),
    /// There is nothing more. An error is why.
    End(anyhow::Result<()>),
}

/// How a connection stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamLinkStatus {
    /// It stands.
    Up,
    /// It broke, and is tried again.
    Lost { why: String },
    /// It stands again.
    Back,
    /// What was watched has come to its end.
    Closed,
}

pub(super) type WatchInputSender = mpsc::Sender<WatchInputMessage>;
