//! The entry of one waiting request.

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    Body,
    client::{error::CallError, events::EventSender},
};

/// The answer that a waiting request gets.
#[derive(Debug)]
pub(crate) struct RequestAnswer {
    pub(crate) outcome: Result<Body, CallError>,
    /// The number of events lost after the last one that was read.
    pub(crate) lost: u64,
}

pub(crate) struct RouterEntry {
    pub(super) answer: oneshot::Sender<RequestAnswer>,
    pub(super) events: Option<EventSender>,
    pub(super) progress: RequestSendProgress,
    /// The message as sent, for transports that may have to repeat it.
    pub(super) text: Bytes,
    pub(super) abandoned: Option<AbandonedRequestAction>,
    /// Released together with the entry.
    _slot: Option<OwnedSemaphorePermit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestSendProgress {
    /// The host does not have the request.
    OnItsWay,
    /// The request was sent, and the host has not confirmed it.
    MayHaveArrived,
    /// The host took the request in this session of the client.
    Taken { session: u64 },
}

/// The action for an abandoned request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbandonedRequestAction {
    /// The request continues.
    Silent,
    /// The host is asked to stop the request.
    Cancel,
}

/// The state of an entry, for the task that sends the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterEntryState {
    /// The caller waits for the answer.
    Waiting,
    /// The caller stopped waiting.
    Abandoned(AbandonedRequestAction),
    /// The request was answered or removed.
    Over,
}

impl RouterEntry {
    pub(crate) fn new(
        answer: oneshot::Sender<RequestAnswer>,
        events: Option<EventSender>,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            answer,
            events,
            progress: RequestSendProgress::OnItsWay,
            text: Bytes::new(),
            abandoned: None,
            _slot: Some(slot),
        }
    }

    pub(super) fn for_handshake(answer: oneshot::Sender<RequestAnswer>) -> Self {
        Self {
            answer,
            events: None,
            progress: RequestSendProgress::OnItsWay,
            text: Bytes::new(),
            abandoned: None,
            _slot: None,
        }
    }

    /// For transports that lose no messages.
    pub(crate) fn handed_over(self) -> Self {
        Self {
            progress: RequestSendProgress::Taken { session: 0 },
            ..self
        }
    }

    /// For transports that may have to repeat the message.
    pub(crate) fn sent_as(self, text: Bytes) -> Self {
        Self { text, ..self }
    }

    pub(super) fn standing(&self) -> RouterEntryState {
        self.abandoned
            .map_or(RouterEntryState::Waiting, RouterEntryState::Abandoned)
    }

    pub(super) fn settle(self, outcome: Result<Body, CallError>) {
        let lost = self.events.as_ref().map_or(0, EventSender::lost);
        // Sending fails only if the caller stopped waiting.
        let _ = self.answer.send(RequestAnswer { outcome, lost });
    }
}
