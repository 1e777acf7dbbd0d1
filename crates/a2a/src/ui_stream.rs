//! Tool events as chunks of the AI SDK's UI message stream, so that a `useChat` page shows a host's calls.
//!
//! By default the stream has only the chunks of version 5 of the SDK, which every later version accepts too. Versions 6
//! and 7 add chunks for approvals. A stream is `data:` lines of server-sent events with one chunk each, then [`DONE`],
//! under the header [`HEADER`].

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
        /// The message's id.
        message_id: String,
    },
    /// A call begins.
    ToolInputAvailable {
        /// The call's id.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments.
        input: Value,
        /// Always true: the page has no code for this host's tools.
        dynamic: bool,
    },
    /// A call succeeded.
    ToolOutputAvailable {
        /// The call's id.
        tool_call_id: String,
        /// The output of the call.
        output: Value,
        /// Always true.
        dynamic: bool,
    },
    /// A call did not succeed.
    ToolOutputError {
        /// The call's id.
        tool_call_id: String,
        /// The reason, for people.
        error_text: String,
        /// Always true.
        dynamic: bool,
    },
    /// A person is asked about a call. From version 6 on.
    ToolApprovalRequest {
        /// The question's id.
        approval_id: String,
        /// The call's id.
        tool_call_id: String,
    },
    /// A person answered. From version 7 on.
    ToolApprovalResponse {
        /// The question's id.
        approval_id: String,
        /// Whether the person approved the call.
        approved: bool,
        /// The reason, if the person gave one.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A call was denied by a person and did not run. From version 6 on.
    ToolOutputDenied {
        /// The call's id.
        tool_call_id: String,
    },
    /// A module emitted an event during a call. The SDK hands such data to the page and keeps it out of the message.
    DataModuleEvent {
        /// The event and its call.
        data: Value,
        /// Always true.
        transient: bool,
    },
    /// The message is complete.
    Finish,
}

/// The version of the SDK that reads a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UiVersion {
    /// Version 5, and later versions without approvals.
    #[default]
    V5,
    /// Version 6: approval questions and denied calls.
    V6,
    /// Version 7: approval answers too.
    V7,
}

/// Turns the events of one stream into chunks.
///
/// The SDK's reader fails on an end without its call, so a call that the stream has not seen is written right before
/// its end. A call that ends with other arguments than it began with is written again too, because the end has no
/// member for arguments. For this the stream keeps a hash of the arguments of each open call.
#[derive(Clone, Debug, Default)]
pub struct UiStream {
    version: UiVersion,
    open: HashMap<String, u64>,
}

impl UiStream {
    /// A stream that has seen no event.
    pub fn new() -> Self {
        Self::default()
    }

    /// A stream for a reader of the given version.
    pub fn of_version(version: UiVersion) -> Self {
        Self {
            version,
            ..Self::default()
        }
    }

    /// Whether the reader's version has chunks for approvals.
    pub fn tells_approvals(&self) -> bool {
        self.version >= UiVersion::V6
    }

    /// The chunk for an approval question about a call that was written before.
    pub fn approval_requested(&self, tool_call_id: &str, approval_id: &str) -> Option<UiChunk> {
        self.tells_approvals()
            .then(|| UiChunk::ToolApprovalRequest {
                approval_id: approval_id.to_owned(),
                tool_call_id: tool_call_id.to_owned(),
            })
    }

    /// The chunk for a person's answer.
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

    /// The chunks for the end of a call that a person denied.
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

    /// The chunks of an event: usually one; two for an end whose call was not seen or whose arguments changed.
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
