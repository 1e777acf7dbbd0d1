//! Cancellation of calls.

use std::borrow::Cow;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use toolpost_model::Principal;

use super::{LateAnswer, LiveCall, PipelineCall};
use crate::record::body::CancellationBody;

/// Why a call was canceled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// A caller or an operator requested it.
    Requested,
    /// The caller disconnected.
    CallerGone,
    /// The host is shutting down.
    Shutdown,
    /// The session was closed.
    SessionClosed,
    /// The parent call was stopped.
    ParentStopped,
    /// Another call of its batch failed.
    SiblingFailed {
        /// The place of that call.
        place: u32,
    },
}

/// A request to stop a call.
#[derive(Debug)]
pub(crate) struct CallCancellation {
    pub(super) reason: CancelReason,
    /// `None` if the host canceled the call.
    pub(super) by: Option<Principal>,
    pub(super) requested_at: Timestamp,
}

impl LiveCall {
    /// Cancels the call. `by` is the principal that requested it, or `None` for the host.
    pub(crate) fn cancel(&self, reason: CancelReason, by: Option<&Principal>) {
        // The first reason is kept, because that one stopped the work.
        let cancellation = CallCancellation {
            reason,
            by: by.cloned(),
            requested_at: crate::port::now(),
        };
        let is_first = self.stop.cancellation.set(cancellation).is_ok();
        self.stop.token.cancel();
        if let Some(watch) = self.audience.witnesses.as_ref().filter(|_| is_first) {
            watch.canceled(reason);
        }
    }

    pub(crate) fn cancel_reason(&self) -> Option<CancelReason> {
        let from_above = self.stop.is_nested && self.stop.token.is_cancelled();
        let own = self
            .stop
            .cancellation
            .get()
            .map(|cancellation| cancellation.reason);
        own.or(from_above.then_some(CancelReason::ParentStopped))
    }

    /// The first cancellation of this call itself. A cancellation of its parent is not included.
    pub(crate) fn cancellation(&self) -> Option<&CallCancellation> {
        self.stop.cancellation.get()
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.stop.token
    }
}

impl PipelineCall {
    /// The record of the call's cancellation, if it was canceled.
    pub(super) fn cancellation_body(&self) -> Option<CancellationBody> {
        let reason = self.live.cancel_reason()?;
        let requested = self.live.cancellation();
        let by = requested.and_then(|cancellation| cancellation.by.as_ref());
        let obeyed = match self.progress.met.late {
            Some(LateAnswer::Discarded) => None,
            // The host stops a call that does not run yet, at the time of this record.
            Some(LateAnswer::Told | LateAnswer::Unheard) | None => Some(
                self.progress
                    .met
                    .work_ended_at
                    .unwrap_or_else(crate::port::now),
            ),
        };
        Some(CancellationBody {
            reason: reason.as_str().into(),
            by: by.map(|principal| principal.name.clone()),
            role: by.map(|principal| principal.role),
            requested_at: requested.map(|cancellation| cancellation.requested_at),
            acknowledged_at: obeyed,
        })
    }
}

impl CancelReason {
    /// The code in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::CallerGone => "caller_gone",
            Self::Shutdown => "shutdown",
            Self::SessionClosed => "session_closed",
            Self::ParentStopped => "parent_stopped",
            Self::SiblingFailed { .. } => "sibling_failed",
        }
    }

    /// The reason as text.
    pub fn explain(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Requested => "it was canceled on request",
            Self::CallerGone => "the caller disconnected",
            Self::Shutdown => "the host is shutting down",
            Self::SessionClosed => "its session was closed",
            Self::ParentStopped => "its parent call was stopped",
            Self::SiblingFailed { place } => {
                return Cow::Owned(format!("call {place} of its batch did not succeed"));
            }
        })
    }
}
