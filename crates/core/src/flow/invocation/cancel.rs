//! Why calls are stopped.

use std::borrow::Cow;

/// Why a call was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Somebody asked for it.
    Requested,
    /// The caller went away.
    CallerGone,
    /// The host is going away.
    Shutdown,
    /// The session was closed.
    SessionClosed,
    /// The call that made it was stopped.
    ParentStopped,
    /// Another call of its batch failed.
    SiblingFailed {
        /// The place of that call.
        place: u32,
    },
}

impl CancelReason {
    /// Why, for people.
    pub fn explain(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Requested => "it was canceled on request",
            Self::CallerGone => "the caller went away",
            Self::Shutdown => "the host is shutting down",
            Self::SessionClosed => "its session was closed",
            Self::ParentStopped => "the call that made it was stopped",
            Self::SiblingFailed { place } => {
                return Cow::Owned(format!("call {place} of its batch did not succeed"));
            }
        })
    }
}
