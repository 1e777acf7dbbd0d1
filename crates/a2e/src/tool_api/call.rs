//! A call under way.

use std::fmt;

use crate::{
    Body, CallError, ToolEventMessage, ToolResult,
    client::{DeliveredToolEvent, OutstandingRequest, RequestAnswer, unlike},
};

/// A call under way. Dropping it asks the host to stop it; [`detach`](Self::detach) lets it go on.
pub struct ClientCall {
    ticket: OutstandingRequest,
    /// An event that was heard and waits until the loss before it has been told.
    next: Option<ToolEventMessage>,
    /// The answer, where it came while events were read.
    answer: Option<RequestAnswer>,
}

/// Something that happened on the way of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent {
    /// An event.
    Event(ToolEventMessage),
    /// So many events were lost here: dropped by the host, or by this client because they were read too slowly.
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

    /// The next event, where the call was started with [`streaming`](crate::CallOptions::streaming). `None` when
    /// the call has ended, or has run out of time; [`result`](Self::result) then knows more. May be dropped and
    /// called again without losing anything.
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

    /// Asks the host to stop the call. `false`: the host cannot do that, or the call had ended. A call that is
    /// stopped has a result all the same, which tells so.
    pub async fn cancel(&self) -> Result<bool, CallError> {
        let client = self.ticket.client();
        if self.answer.is_some() || !client.announces("tool/cancel") {
            return Ok(false);
        }
        client.cancel(self.ticket.id).await
    }

    /// Waits for the result. Events that were not read are dropped.
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

    /// Lets the call go on without anybody waiting for it.
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
