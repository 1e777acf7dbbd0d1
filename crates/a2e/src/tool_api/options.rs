//! Options for listing and calling tools.

use std::time::Duration;

use serde_json::Value;
use toolpost_model::{BatchPlace, ModelInput};

use crate::{CallError, ToolCallRequest, ToolListRequest};

/// A selection of tools. The default lists all tools that are not deferred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListOptions {
    /// Limits the list to tools with all of these tags.
    pub tags: Vec<String>,
    /// Search words; empty lists all tools.
    pub query: String,
    /// Whether the list includes deferred tools.
    pub include_deferred: bool,
    /// Limits the list to tools of this kind; empty for all.
    pub kind: String,
    /// The most tools of the list; 0 for all. Hosts without this extension send all.
    pub limit: u64,
}

impl ListOptions {
    /// All tools that are not deferred.
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
    /// The default time limit of a call.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// The default number of events that wait for a reader.
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

    /// Sets the time limit of the call. The host gets whole seconds, rounded up; the client waits five seconds longer
    /// for the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets an id for related calls, for the host's record.
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

    /// Asks for the events in the result. Hosts without this extension leave them out.
    #[must_use]
    pub fn collect_events(mut self) -> Self {
        self.collect_events = true;
        self
    }

    /// Sets the call's place among the calls of one turn. Hosts without this extension run the call on its own.
    #[must_use]
    pub fn batch(mut self, place: BatchPlace) -> Self {
        self.batch = Some(place);
        self
    }

    /// Asks for an answer at once, with the id of the continuing call. Hosts without this extension answer at the end
    /// of the call.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.background = true;
        self
    }

    /// Sets the number of events that may wait for a reader. Further events are lost.
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
