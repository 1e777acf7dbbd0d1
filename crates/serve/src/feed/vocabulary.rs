//! The vocabularies of streams, and their form as server-sent events.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use toolpost_a2a::{
    ToolEvent,
    producer::{ToolCallEnd, took},
    ui_stream::{DONE, UiChunk, UiStream, UiVersion},
};
use toolpost_core::ModuleEvent;
use toolpost_model::{ErrorClass, InvocationId, ToolResult, Verdict};

use super::module_events::module_event_json;

/// The time in milliseconds after which a browser reconnects.
const RETRY_MS: u32 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamVocabulary {
    /// A2A tool events.
    ToolEvents,
    /// The AI SDK's UI message stream, for that version and later ones.
    AiSdk(UiVersion),
}

pub(super) enum FeedFrameWriter {
    ToolEvents,
    AiSdk(UiStream),
}

impl FeedFrameWriter {
    pub(super) fn of(vocabulary: StreamVocabulary) -> Self {
        match vocabulary {
            StreamVocabulary::ToolEvents => Self::ToolEvents,
            StreamVocabulary::AiSdk(version) => Self::AiSdk(UiStream::of_version(version)),
        }
    }

    /// The first frame. It gives the reader an id to reconnect with, in case the stream breaks before the first event.
    /// It also lists the open calls, because a reader that has another call open would wait for its end in vain.
    pub(super) fn opening(&self, place: u64, open: &[InvocationId]) -> Bytes {
        let ids = format!("retry: {RETRY_MS}\nid: {place}\n");
        Bytes::from(match self {
            Self::ToolEvents => {
                format!(
                    "event: opening\n{ids}data: {}\n\n",
                    json(&serde_json::json!({ "open": open }))
                )
            }
            Self::AiSdk(_) => {
                // A new id for every stream, because a page that reconnects creates a new message.
                let message = UiStream::start(format!("msg_{}", InvocationId::new()));
                format!("{ids}\n{}", chunk(&message, None))
            }
        })
    }

    /// Whether the vocabulary can express that a call waits for an answer.
    pub(super) fn tell_approvals(&self) -> bool {
        match self {
            Self::ToolEvents => true,
            Self::AiSdk(stream) => stream.tells_approvals(),
        }
    }

    /// The frame for a question about a call. It is no tool event, so readers of tool events alone ignore it.
    pub(super) fn asked(
        &self,
        call: InvocationId,
        question: InvocationId,
        id: Option<u64>,
    ) -> Option<Bytes> {
        match self {
            Self::ToolEvents => Some(approval(call, question, ApprovalEventState::Asked, id)),
            Self::AiSdk(stream) => {
                let told = stream.approval_requested(&call.to_string(), &question.to_string())?;
                Some(chunk(&told, id).into())
            }
        }
    }

    /// The frame for an answer. `verdict` is present if the record was read.
    pub(super) fn decided(
        &self,
        call: InvocationId,
        question: InvocationId,
        verdict: Option<&Verdict>,
        id: Option<u64>,
    ) -> Option<Bytes> {
        match self {
            Self::ToolEvents => Some(approval(call, question, ApprovalEventState::Decided, id)),
            Self::AiSdk(stream) => {
                let (approved, reason) = match verdict? {
                    Verdict::Allow { .. } => (true, None),
                    Verdict::Deny { feedback } => (false, feedback.as_deref()),
                };
                let told = stream.approval_answered(&question.to_string(), approved, reason)?;
                Some(chunk(&told, id).into())
            }
        }
    }

    /// The frame for an event of a module. It has no id: a reader that reconnects gets the event with the call's
    /// record.
    pub(super) fn module_event(&self, call: InvocationId, event: &ModuleEvent) -> Bytes {
        let data = module_event_json(&call.to_string(), event);
        Bytes::from(match self {
            Self::ToolEvents => format!("event: module-event\ndata: {data}\n\n"),
            Self::AiSdk(_) => chunk(
                &UiChunk::DataModuleEvent {
                    data,
                    transient: true,
                },
                None,
            ),
        })
    }

    /// The frame for a call, with its result if it ended, and with the number of its record if it is on record.
    pub(super) fn frame(
        &mut self,
        event: &ToolEvent,
        end: Option<&ToolResult>,
        id: Option<u64>,
    ) -> Bytes {
        match self {
            Self::ToolEvents => Bytes::from(format!(
                "event: tool-event\n{}data: {}\n\n",
                id_line(id),
                json(event)
            )),
            Self::AiSdk(stream) => {
                let class = end.and_then(ToolResult::error_class);
                let chunks = match class == Some(ErrorClass::ApprovalRejected) {
                    true => stream.denied(event),
                    false => stream.chunks(event),
                };
                let last = chunks.len().saturating_sub(1);
                let frames = chunks.iter().enumerate();
                // Only the last chunk has the id: a reader with that id has received all of them.
                frames
                    .map(|(place, told)| chunk(told, id.filter(|_| place == last)))
                    .collect::<String>()
                    .into()
            }
        }
    }

    /// The last frame.
    pub(super) fn closing(&self, why: StreamEndReason) -> Bytes {
        Bytes::from(match self {
            Self::ToolEvents => {
                format!(
                    "event: closing\ndata: {}\n\n",
                    json(&serde_json::json!({ "reason": why }))
                )
            }
            Self::AiSdk(_) => format!("{}data: {DONE}\n\n", chunk(&UiChunk::Finish, None)),
        })
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamEndReason {
    /// The session is closed; no further events can follow.
    SessionClosed,
    /// The host shuts down. The reader can reconnect to it or to the next host.
    Shutdown,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ApprovalEventState {
    Asked,
    Decided,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalEventBody {
    tool_call_id: InvocationId,
    approval_id: InvocationId,
    state: ApprovalEventState,
}

fn approval(
    call: InvocationId,
    question: InvocationId,
    state: ApprovalEventState,
    id: Option<u64>,
) -> Bytes {
    let told = ApprovalEventBody {
        tool_call_id: call,
        approval_id: question,
        state,
    };
    Bytes::from(format!(
        "event: approval\n{}data: {}\n\n",
        id_line(id),
        json(&told)
    ))
}

/// A comment for people who read the stream.
pub(super) fn remark(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

/// The end of a call as an event. On the streams of sessions, the host's own ids identify calls.
pub(super) fn ended(
    id: InvocationId,
    tool: &str,
    arguments: Option<&Value>,
    result: &ToolResult,
) -> ToolEvent {
    let duration = took(result);
    ToolCallEnd {
        tool_call_id: &id.to_string(),
        tool_name: tool,
        input: arguments,
        result,
        duration,
    }
    .event()
}

fn id_line(id: Option<u64>) -> String {
    id.map(|id| format!("id: {id}\n")).unwrap_or_default()
}

fn chunk(chunk: &UiChunk, id: Option<u64>) -> String {
    format!("{}data: {}\n\n", id_line(id), json(chunk))
}

/// JSON never holds a raw line break, so one data line is enough.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
