//! A running call.

use std::fmt;

use crate::{
    Body, CallError, ToolEventMessage, ToolResult,
    client::{DeliveredToolEvent, OutstandingRequest, RequestAnswer, unlike},
};

/// A running call. Dropping it asks the host to stop the call; [`detach`](Self::detach) lets it continue.
pub struct ClientCall {
    ticket: OutstandingRequest,
    /// An event that is returned after the report of the loss before it.
    next: Option<ToolEventMessage>,
    /// The answer, if it arrived while events were read.
    answer: Option<RequestAnswer>,
}

/// An event of a call, or a gap between its events.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent {
    /// An event.
    Event(ToolEventMessage),
    /// The number of events that were lost here: dropped by the host, or by this client because the reader was slow.
    Lost(u64),
}

impl ClientCall {
    pub(super) fn new(ticket: OutstandingRequest) -> Self {
        Self {
            ticket,
            next: None,
            answer: None,
        }
    }

    /// The id of the request, 32 hex digits.
    pub fn id(&self) -> String {
        self.ticket.id.simple().to_string()
    }

    /// The next event, if the call was started with [`streaming`](crate::CallOptions::streaming). `None` when the call
    /// has ended or has run out of time; [`result`](Self::result) tells which. Cancellation safe: dropping this future
    /// loses no event.
    pub async fn next_event(&mut self) -> Option<CallEvent> {
        if let Some(event) = self.next.take() {
            return Some(CallEvent::Event(event));
        }
        self.ticket.events.as_ref()?;
        match self.ticket.event().await {
            Some(DeliveredToolEvent {
                lost_before: 0,
                event,
            }) => Some(CallEvent::Event(event)),
            Some(DeliveredToolEvent { lost_before, event }) => {
                self.next = Some(event);
                Some(CallEvent::Lost(lost_before))
            }
            None => {
                if self.answer.is_none() {
                    self.answer = Some(self.ticket.answer().await);
                }
                let lost = self
                    .answer
                    .as_mut()
                    .map_or(0, |answer| std::mem::take(&mut answer.lost));
                (lost > 0).then_some(CallEvent::Lost(lost))
            }
        }
    }

    /// Asks the host to stop the call. `false`: the host does not support that, or the call had ended. A stopped call
    /// still has a result, which reports the cancellation.
    pub async fn cancel(&self) -> Result<bool, CallError> {
        let client = self.ticket.client();
        if self.answer.is_some() || !client.announces("tool/cancel") {
            return Ok(false);
        }
        client.cancel(self.ticket.id).await
    }

    /// Waits for the result. Unread events are dropped.
    pub async fn result(mut self) -> Result<ToolResult, CallError> {
        let answer = match self.answer.take() {
            Some(answer) => answer,
            None => self.ticket.answer().await,
        };
        match answer.outcome? {
            Body::ToolCallResponse(response) => Ok(response.data),
            other => Err(unlike("tool/call/resp", &other)),
        }
    }

    /// Lets the call continue without waiting for its result.
    pub fn detach(self) {
        self.ticket.detach();
    }
}

impl fmt::Debug for ClientCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.ticket.id.simple())
            .finish_non_exhaustive()
    }
}
