//! In which words a stream tells of calls, and how they look as server-sent events.

use bytes::Bytes;
use serde::Serialize;
use toolpost_a2a::{
    ToolEvent,
    producer::Ended,
    ui_stream::{DONE, UiChunk, UiStream},
};
use toolpost_model::{InvocationId, ToolResult};

/// How long a browser waits before it comes back.
const RETRY_MS: u32 = 2_000;

/// The words that a reader asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Vocabulary {
    /// A2A tool events.
    #[default]
    ToolEvents,
    /// The AI SDK's UI message stream, as version 5 and later read it.
    AiSdk,
}

/// Writes the frames of one stream.
pub(super) enum Words {
    ToolEvents,
    AiSdk(UiStream),
}

impl Words {
    pub(super) fn of(vocabulary: Vocabulary) -> Self {
        match vocabulary {
            Vocabulary::ToolEvents => Self::ToolEvents,
            Vocabulary::AiSdk => Self::AiSdk(UiStream::new()),
        }
    }

    /// The first words. They give the reader an id to come back with, should the stream break before anything happens.
    pub(super) fn opening(&self, place: u64) -> Bytes {
        let mut frames = format!("retry: {RETRY_MS}\nid: {place}\n\n");
        match self {
            Self::ToolEvents => {}
            Self::AiSdk(_) => {
                // Of its own for every stream: a page that comes back makes another message.
                let message = UiStream::start(format!("msg_{}", InvocationId::new()));
                frames.push_str(&chunk(&message, None));
            }
        }
        Bytes::from(frames)
    }

    /// What happened to a call; with the number of its record, where it is on record.
    pub(super) fn frame(&mut self, event: &ToolEvent, id: Option<u64>) -> Bytes {
        match self {
            Self::ToolEvents => {
                Bytes::from(format!("event: tool-event\n{}data: {}\n\n", id_line(id), json(event)))
            }
            Self::AiSdk(stream) => {
                let chunks = stream.chunks(event);
                let last = chunks.len().saturating_sub(1);
                let frames = chunks.iter().enumerate();
                // A reader that has the last one has them all.
                frames
                    .map(|(place, told)| chunk(told, id.filter(|_| place == last)))
                    .collect::<String>()
                    .into()
            }
        }
    }

    /// The last words.
    pub(super) fn closing(&self) -> Option<Bytes> {
        match self {
            Self::ToolEvents => None,
            Self::AiSdk(_) => Some(Bytes::from(format!("{}data: {DONE}\n\n", chunk(&UiChunk::Finish, None)))),
        }
    }
}

/// Something for whoever reads the stream by eye.
pub(super) fn remark(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

/// The end of a call, as an event. On a session's stream calls go by the host's own ids.
pub(super) fn ended(
    id: InvocationId,
    tool: &str,
    arguments: Option<&serde_json::Value>,
    result: &ToolResult,
) -> ToolEvent {
    let duration = std::time::Duration::from_micros(result.timings.total_us);
    Ended { tool_call_id: &id.to_string(), tool_name: tool, input: arguments, result, duration }.event()
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
