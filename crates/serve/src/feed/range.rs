//! The range of a stream: the record that it begins with, and the sessions that it covers.

use std::sync::Arc;

use toolpost_core::Session;
use toolpost_model::{Principal, SessionId};

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedStart {
    /// With what happens next.
    Now,
    /// With the oldest record.
    Start,
    /// Behind this record: the id of the last event that the reader has.
    After(u64),
}

/// The sessions that a stream covers.
pub(crate) enum StreamScope {
    /// One session.
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
