//! Tool events as chunks of the AI SDK's UI message stream, so that a `useChat` page shows a host's calls.
//!
//! Without another wish, only the chunks that version 5 of the SDK knows, because every later one takes them too. Versions 6
//! and 7 have chunks for approvals. A stream is `data:` lines of
//! server-sent events, one chunk each, then [`DONE`], under the header [`HEADER`].

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde::Serialize;
use serde_json::Value;

use crate::ToolEvent;

/// The header that marks such a stream, and its value.
pub const HEADER: (&str, &str) = ("x-vercel-ai-ui-message-stream", "v1");
/// The last `data:` of a stream. Not JSON.
pub const DONE: &str = "[DONE]";

/// One chunk of the stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum UiChunk {
    /// The message begins.
    Start {
        /// Its id.
        message_id: String,
    },
    /// A call begins.
    ToolInputAvailable {
        /// Which call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments.
        input: Value,
        /// Always: the page's code knows nothing of this host's tools.
        dynamic: bool,
    },
    /// A call succeeded.
    ToolOutputAvailable {
        /// Which call.
        tool_call_id: String,
        /// What came of it.
        output: Value,
        /// As above.
        dynamic: bool,
    },
    /// A call did not.
    ToolOutputError {
        /// Which call.
        tool_call_id: String,
        /// What a person may read of it.
        error_text: String,
        /// As above.
        dynamic: bool,
    },
    /// A person is asked about a call. From version 6 on.
    ToolApprovalRequest {
        /// Which question.
        approval_id: String,
        /// Which call.
        tool_call_id: String,
    },
    /// A person answered. From version 7 on.
    ToolApprovalResponse {
        /// Which question.
        approval_id: String,
        /// What was answered.
        approved: bool,
        /// And why, where that was said.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A call did not run, because a person said no. From version 6 on.
    ToolOutputDenied {
        /// Which call.
        tool_call_id: String,
    },
    /// A module emitted an event during a call. The SDK hands such data to the page and keeps it out of the message.
    DataModuleEvent {
        /// The event and its call.
        data: Value,
        /// Always.
        transient: bool,
    },
    /// The message is complete.
    Finish,
}

/// Which version of the SDK reads a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UiVersion {
    /// Version 5, and every later one without a word of approvals.
    #[default]
    V5,
    /// Version 6: questions, and calls that were denied.
    V6,
    /// Version 7: answers too.
    V7,
}

/// Turns the events of one stream into chunks.
///
/// A reader of the SDK fails on an end without its call, so a call that was not seen is told right before its end. So is
/// one that ends with other arguments than it began with: the end itself has no room for them. Of the calls that are
/// open, a hash of their arguments is remembered.
#[derive(Clone, Debug, Default)]
pub struct UiStream {
    version: UiVersion,
    open: HashMap<String, u64>,
}

impl UiStream {
    /// One that has seen no event.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for a reader of that version.
    pub fn of_version(version: UiVersion) -> Self {
        Self {
            version,
            ..Self::default()
        }
    }

    /// Whether its reader knows of approvals.
    pub fn tells_approvals(&self) -> bool {
        self.version >= UiVersion::V6
    }

    /// A person is asked about a call that was told.
    pub fn approval_requested(&self, tool_call_id: &str, approval_id: &str) -> Option<UiChunk> {
        self.tells_approvals()
            .then(|| UiChunk::ToolApprovalRequest {
                approval_id: approval_id.to_owned(),
                tool_call_id: tool_call_id.to_owned(),
            })
    }

    /// A person answered.
    pub fn approval_answered(
        &self,
        approval_id: &str,
        approved: bool,
        reason: Option<&str>,
    ) -> Option<UiChunk> {
        (self.version >= UiVersion::V7).then(|| UiChunk::ToolApprovalResponse {
            approval_id: approval_id.to_owned(),
            approved,
            reason: reason.map(str::to_owned),
        })
    }

    /// The chunks of the end of a call that did not run because a person said no.
    pub fn denied(&mut self, event: &ToolEvent) -> Vec<UiChunk> {
        let mut chunks = self.chunks(event);
        if self.tells_approvals()
            && let Some(end) = chunks.last_mut()
        {
            *end = UiChunk::ToolOutputDenied {
                tool_call_id: event.tool_call_id().to_owned(),
            };
        }
        chunks
    }

    /// The first chunk.
    pub fn start(message_id: impl Into<String>) -> UiChunk {
        UiChunk::Start {
            message_id: message_id.into(),
        }
    }

    /// The chunks of an event: one, or two for an end whose call was not seen or whose arguments were changed.
    pub fn chunks(&mut self, event: &ToolEvent) -> Vec<UiChunk> {
        let tool_call_id = event.tool_call_id().to_owned();
        let end = match event {
            ToolEvent::Call {
                tool_name, input, ..
            } => {
                self.open.insert(tool_call_id.clone(), hash(input.as_ref()));
                return vec![input_available(tool_call_id, tool_name, input.as_ref())];
            }
            ToolEvent::Result { output, .. } => UiChunk::ToolOutputAvailable {
                tool_call_id: tool_call_id.clone(),
                output: output.clone(),
                dynamic: true,
            },
            ToolEvent::Error { error, .. } => UiChunk::ToolOutputError {
                tool_call_id: tool_call_id.clone(),
                error_text: error.message.clone(),
                dynamic: true,
            },
        };
        let begun_with = self.open.remove(&tool_call_id);
        match event {
            ToolEvent::Call { .. } => vec![end],
            ToolEvent::Result {
                tool_name, input, ..
            }
            | ToolEvent::Error {
                tool_name, input, ..
            } => {
                let is_told = begun_with
                    .is_some_and(|known| input.is_none() || known == hash(input.as_ref()));
                if is_told {
                    return vec![end];
                }
                vec![
                    input_available(tool_call_id, tool_name, input.as_ref()),
                    end,
                ]
            }
        }
    }
}

fn hash(input: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    input.map(Value::to_string).hash(&mut hasher);
    hasher.finish()
}

fn input_available(tool_call_id: String, tool_name: &str, input: Option<&Value>) -> UiChunk {
    UiChunk::ToolInputAvailable {
        tool_call_id,
        tool_name: tool_name.to_owned(),
        input: input
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        dynamic: true,
    }
}
