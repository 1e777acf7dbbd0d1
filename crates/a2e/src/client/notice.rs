//! What the host says without having been asked, and what becomes of the connection.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::{ErrorMessage, Message};

/// Something that no request is waiting for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HostNotice {
    /// The list of tools is another one now.
    ToolListChanged,
    /// The stream broke and is back, in the same session.
    Reconnected,
    /// The host had forgotten the session; this client is in a new one.
    NewSession,
    /// The host complains about something it cannot name.
    HostError(Arc<ErrorMessage>),
    /// A message of another kind.
    Push(Arc<Message>),
    /// So many notices were not heard because this reader was too slow.
    Missed(u64),
}

/// A reader of notices, from the moment it was made on.
#[derive(Debug)]
pub struct HostNotices(pub(super) broadcast::Receiver<HostNotice>);

impl HostNotices {
    /// The next one. `None`: the client is gone.
    pub async fn next(&mut self) -> Option<HostNotice> {
        match self.0.recv().await {
            Ok(notice) => Some(notice),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(HostNotice::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
