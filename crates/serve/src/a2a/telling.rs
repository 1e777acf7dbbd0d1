//! Shows a task's calls as messages and artifacts: events, questions and results.

use serde_json::{Map, Value, json};
use toolpost_a2a::{
    CANONICAL_URI, ToolEvent, ToolEventError,
    producer::{ToolCallEnd, ToolCallStart, shown, took},
    wire::{Artifact, Message, MessageRole, Part, PartContent},
};
use toolpost_model::{ToolResult, visible_line};

use super::task::{CallOfTask, TaskQuestion};

/// The answer to a message of text alone, which contains no calls.
pub(super) const HOW_TO: &str = "This agent runs tools. Send a message with a data part such as \
    {\"type\":\"tool-call\",\"toolCallId\":\"1\",\"toolName\":\"NAME\",\"input\":{}}.\n\
    The agent card lists the tools as skills.";

/// The error of a call without a recorded end.
const LOST: &str = "the end of the call is unknown; the call may or may not have taken effect";

/// The user's message as the task shows it: only the recorded calls.
pub(super) fn remade(message_id: &str, calls: &[CallOfTask], task: &str, context: &str) -> Message {
    let part = |call: &CallOfTask| {
        let mut told = json!({
            "type": "tool-call",
            "toolCallId": call.tool_call_id,
            "toolName": call.tool,
        });
        if let Some(input) = &call.input {
            told["input"] = shown(input);
        }
        Part::data(told)
    };
    Message {
        role: MessageRole::User,
        ..Message::agent(message_id, calls.iter().map(part).collect()).within(task, context)
    }
}

pub(super) fn begun(call: &CallOfTask) -> ToolEvent {
    let tool_call_id = call.tool_call_id.as_str();
    let tool_name = call.tool.as_str();
    ToolCallStart {
        tool_call_id,
        tool_name,
        input: call.input.as_ref(),
        at: call.began_at,
    }
    .event()
}

pub(super) fn ended(call: &CallOfTask, executed: Option<&Value>, result: &ToolResult) -> ToolEvent {
    let duration = took(result);
    let tool_call_id = call.tool_call_id.as_str();
    let tool_name = call.tool.as_str();
    ToolCallEnd {
        tool_call_id,
        tool_name,
        input: executed,
        result,
        duration,
    }
    .event()
}

/// The end of a call that is not running and has no recorded end.
pub(super) fn lost(call: &CallOfTask) -> ToolEvent {
    ToolEvent::Error {
        tool_call_id: call.tool_call_id.clone(),
        tool_name: call.tool.clone(),
        input: None,
        error: ToolEventError {
            message: LOST.to_owned(),
        },
        duration_ms: None,
    }
}

/// The artifact of a successful call: the structured content as data, texts as text, the rest as files.
pub(super) fn artifact(call: &CallOfTask, result: &ToolResult) -> Artifact {
    let mut parts = Vec::new();
    parts.extend(result.structured_content.clone().map(Part::data));
    for piece in &result.content {
        parts.extend(piece.reading().map(|text| Part::text(&*text)));
        if let Some((data, media_type)) = piece.encoded() {
            let content = PartContent::Raw(data.to_owned());
            parts.push(Part {
                content,
                media_type: Some(media_type.to_owned()),
                ..Part::text("")
            });
        }
    }
    for kept in &result.artifacts {
        let told = json!({
            "artifact": kept.id, "name": kept.name, "mediaType": kept.media_type, "size": kept.size,
            "path": format!("/artifacts/{}", kept.id),
        });
        parts.push(Part::data(told));
    }
    if parts.is_empty() {
        parts.push(Part::text(result.model_text()));
    }
    let mut artifact = Artifact::new(&call.tool_call_id, parts);
    artifact.name = Some(call.tool.clone());
    artifact.description = result.summary.clone();
    artifact.metadata = Some(object(json!({
        "toolCallId": call.tool_call_id,
        "invocationId": call.invocation_id,
    })));
    artifact
}

/// The open questions for readers of the task: the oldest one in words, and all of them as data.
pub(super) fn questions(
    calls: &[CallOfTask],
    open: &[TaskQuestion],
) -> Option<(String, Map<String, Value>)> {
    let (first, others) = open.split_first()?;
    let told = |question: &TaskQuestion| {
        json!({
            "approvalId": question.ask_id,
            "toolCallId": calls[question.place].tool_call_id,
            "toolName": calls[question.place].tool,
            "expiresAt": format!("{:.3}", question.expires_at),
        })
    };
    let call = &calls[first.place];
    // The reason is meant for callers too. The rest of the question, such as full paths, is only for operators.
    let mut text = format!(
        "`{}` (call `{}`) waits for an operator's answer: {}. Without an answer until {:.0}, it is denied.",
        visible_line(&call.tool),
        visible_line(&call.tool_call_id),
        visible_line(&first.reason),
        first.expires_at,
    );
    match others.len() {
        0 => {}
        1 => text.push_str(" One more question is open."),
        more => text.push_str(&format!(" {more} more questions are open.")),
    }
    let mut metadata = object(told(first));
    metadata.remove("toolName");
    metadata.insert("open".to_owned(), open.iter().map(told).collect());
    Some((text, metadata))
}

/// The remark about calls that were not begun before the host stopped.
pub(super) fn not_begun(missing: usize, begun: usize) -> Option<String> {
    let all = missing + begun;
    (missing > 0).then(|| {
        format!(
            "{missing} of the {all} calls of this message had not started when the host stopped, and will not \
             start; send them in a new message"
        )
    })
}

pub(super) fn event_message(id: String, event: &ToolEvent) -> Message {
    let mut message = Message::agent(id, vec![Part::event(event)]);
    message.extensions.push(CANONICAL_URI.to_owned());
    message
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
