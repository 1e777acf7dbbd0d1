//! Unrequested messages of the host, and changes of the connection.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::{ErrorMessage, Message};

/// A message or change that no request waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HostNotice {
    /// The list of tools changed.
    ToolListChanged,
    /// The stream broke and was reopened in the same session.
    Reconnected,
    /// The host had forgotten the session; the client has a new one.
    NewSession,
    /// An error of the host that belongs to no request.
    HostError(Arc<ErrorMessage>),
    /// A message of another kind.
    Push(Arc<Message>),
    /// The number of notices that this reader missed because it was too slow.
    Missed(u64),
}

/// A reader of notices, beginning with the first one after its creation.
#[derive(Debug)]
pub struct HostNotices(pub(super) broadcast::Receiver<HostNotice>);

impl HostNotices {
    /// The next notice. `None`: the client is gone.
    pub async fn next(&mut self) -> Option<HostNotice> {
        match self.0.recv().await {
            Ok(notice) => Some(notice),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(HostNotice::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
