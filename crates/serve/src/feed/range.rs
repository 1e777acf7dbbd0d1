//! What a stream covers: where it begins, and whose calls it has.

use std::sync::Arc;

use toolpost_core::Session;
use toolpost_model::{Principal, SessionId};

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// With what happens next.
    Now,
    /// With the oldest record.
    Start,
    /// Behind this record: the id of the last event that the reader has.
    After(u64),
}

/// Whose calls a stream tells.
pub(crate) enum Whose {
    /// One session's.
    Session(Arc<Session>),
    /// Everybody's, for this operator.
    Everybody(Principal),
}

impl Whose {
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Session(session) => Some(session.id()),
            Self::Everybody(_) => None,
        }
    }

    /// Who may see what is told.
    pub(super) fn principal(&self) -> &Principal {
        match self {
            Self::Session(session) => session.principal(),
            Self::Everybody(operator) => operator,
        }
    }
}
