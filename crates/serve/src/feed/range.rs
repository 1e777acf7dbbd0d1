//! The range of a stream: the record that it begins with, and the sessions that it covers.

use std::sync::Arc;

use toolpost_core::Session;
use toolpost_model::{Principal, SessionId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedStart {
    /// Only new events.
    Now,
    /// From the oldest record on.
    Start,
    /// After this record: the id of the reader's last event.
    After(u64),
}

/// The sessions that a stream covers.
pub(crate) enum StreamScope {
    Session(Arc<Session>),
    /// All sessions, for this operator.
    Everybody(Principal),
}

impl StreamScope {
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Session(session) => Some(session.id()),
            Self::Everybody(_) => None,
        }
    }

    /// The reader's rights decide which calls the stream shows.
    pub(super) fn principal(&self) -> &Principal {
        match self {
            Self::Session(session) => session.principal(),
            Self::Everybody(operator) => operator,
        }
    }
}
