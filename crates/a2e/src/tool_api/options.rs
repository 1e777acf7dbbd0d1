//! What to list, and how to call.

use std::time::Duration;

use serde_json::Value;
use toolpost_model::{BatchPlace, ModelInput};

use crate::{CallError, ToolCallRequest, ToolListRequest};

/// Which tools to list. The default lists all that are not deferred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListOptions {
    /// Only tools that have all of these tags.
    pub tags: Vec<String>,
    /// Search words; empty lists everything.
    pub query: String,
    /// Deferred tools too.
    pub include_deferred: bool,
    /// Only tools of this kind; empty for all.
    pub kind: String,
    /// At most so many; 0 for all. Hosts that do not know this extension send all.
    pub limit: u64,
}

impl ListOptions {
    /// Everything that is not deferred.
    pub fn all() -> Self {
        Self::default()
    }

    /// A search among all tools, deferred ones included.
    pub fn search(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            include_deferred: true,
            ..Self::default()
        }
    }

    pub(super) fn request(&self) -> ToolListRequest {
        ToolListRequest {
            filter_kind: self.kind.clone(),
            filter_tags: self.tags.clone(),
            query: self.query.clone(),
            include_deferred: self.include_deferred,
            limit: self.limit,
        }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct CallOptions {
    name: String,
    arguments: Value,
    pub(super) timeout: Duration,
    correlation_id: String,
    pub(super) streaming: bool,
    collect_events: bool,
    batch: Option<BatchPlace>,
    background: bool,
    pub(super) event_room: usize,
}

impl CallOptions {
    /// How long a call may take, unless told otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// Events that wait for a reader, unless told otherwise.
    pub const EVENT_ROOM: usize = 256;

    /// A call without events.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            name: name.into(),
            arguments,
            timeout: Self::TIMEOUT,
            correlation_id: String::new(),
            streaming: false,
            collect_events: false,
            batch: None,
            background: false,
            event_room: Self::EVENT_ROOM,
        }
    }

    /// How long the call may take. The host is told whole seconds, rounded up; its answer is waited for five
    /// seconds longer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// A word for what belongs together, for the host's record.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = id.into();
        self
    }

    /// Asks for events while the call runs, see [`ClientCall::next_event`](crate::ClientCall::next_event).
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.streaming = true;
        self
    }

    /// Asks for the events in the result. Hosts that do not know this extension leave them out.
    #[must_use]
    pub fn collect_events(mut self) -> Self {
        self.collect_events = true;
        self
    }

    /// Gives the call its place among the calls of one turn. Hosts that do not know this extension run it by itself.
    #[must_use]
    pub fn batch(mut self, place: BatchPlace) -> Self {
        self.batch = Some(place);
        self
    }

    /// Asks for an answer at once, with the id under which the call goes on. Hosts that do not know this extension
    /// answer at its end.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.background = true;
        self
    }

    /// How many events may wait for a reader. What comes when there is no more room is lost.
    #[must_use]
    pub fn event_room(mut self, events: usize) -> Self {
        self.event_room = events;
        self
    }

    pub(super) fn request(self) -> Result<ToolCallRequest, CallError> {
        if !self.arguments.is_object() {
            return Err(CallError::Arguments {
                reason: "they must be a JSON object",
            });
        }
        if self.timeout.is_zero() {
            return Err(CallError::Arguments {
                reason: "the timeout must be over 0",
            });
        }
        Ok(ToolCallRequest {
            correlation_id: self.correlation_id,
            streaming: self.streaming,
            timeout: self.timeout,
            collect_events: self.collect_events,
            batch: self.batch,
            background: self.background,
            ..ToolCallRequest::new(self.name, ModelInput::value(self.arguments))
        })
    }
}
