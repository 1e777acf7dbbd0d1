//! One request that waits for its answer.

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    Body,
    client::{error::CallError, events::EventSender},
};

/// What a waiting request gets.
#[derive(Debug)]
pub(crate) struct RequestAnswer {
    pub(crate) outcome: Result<Body, CallError>,
    /// Events lost after the last one that was heard.
    pub(crate) lost: u64,
}

pub(crate) struct RouterEntry {
    pub(super) answer: oneshot::Sender<RequestAnswer>,
    pub(super) events: Option<EventSender>,
    pub(super) progress: RequestSendProgress,
    /// The message as it was sent, where it may have to be sent again.
    pub(super) text: Bytes,
    pub(super) abandoned: Option<AbandonedRequestAction>,
    /// Given back when the entry goes.
    _slot: Option<OwnedSemaphorePermit>,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestSendProgress {
    /// The host does not have it.
    OnItsWay,
    /// It was sent, and the host has not confirmed it.
    MayHaveArrived,
    /// The host has it, in this session of the client's.
    Taken { session: u64 },
}

/// What becomes of a request that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbandonedRequestAction {
    /// It goes on.
    Silent,
    /// The host is asked to stop it.
    Cancel,
}

/// How things stand with a request, for whoever is sending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterEntryState {
    /// Somebody waits for its answer.
    Waiting,
    /// Nobody does any more.
    Abandoned(AbandonedRequestAction),
    /// It is answered, or was forgotten.
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

    /// For wires that lose nothing on the way.
    pub(crate) fn handed_over(self) -> Self {
        Self {
            progress: RequestSendProgress::Taken { session: 0 },
            ..self
        }
    }

    /// For wires that may have to send it again.
    pub(crate) fn sent_as(self, text: Bytes) -> Self {
        Self { text, ..self }
    }

    pub(super) fn standing(&self) -> RouterEntryState {
        self.abandoned
            .map_or(RouterEntryState::Waiting, RouterEntryState::Abandoned)
    }

    pub(super) fn settle(self, outcome: Result<Body, CallError>) {
        let lost = self.events.as_ref().map_or(0, EventSender::lost);
        // An error says that nobody waits any more.
        let _ = self.answer.send(RequestAnswer { outcome, lost });
    }
}
