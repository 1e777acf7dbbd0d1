//! Converts outbox items to bytes.

use toolpost_a2e::{
    Body, ErrorCode, ErrorMessage, Message,
    codec::{MessageFraming, OutgoingMessage, VERSION, encode_into, id_in},
    projection::{CallResponseView, MAX_TEXT},
};
use toolpost_core::SurfaceEntry;
use uuid::Uuid;

use super::{
    capability::definition,
    outbox::{AnsweredCall, OutboxItem, OutboxToolList},
};

/// Appends an item in its frame.
pub(super) fn write(out: &mut Vec<u8>, item: &OutboxItem, framing: MessageFraming) {
    match item {
        OutboxItem::Message(message) => {
            encode_into(out, &OutgoingMessage::from(&**message), framing);
        }
        OutboxItem::Event(event) => {
            let id = event.message_id();
            let ts = event.at.or_else(now);
            let message = OutgoingMessage {
                kind: "tool/event",
                id: &id,
                version: VERSION,
                ts,
                body: event,
            };
            encode_into(out, &message, framing);
        }
        OutboxItem::Answer(answered) => {
            let most = if framing == MessageFraming::Event {
                MAX_TEXT
            } else {
                usize::MAX
            };
            let body = response(answered, most);
            let id = answered.answer.result().invocation_id.to_hex();
            let ts = Some(body.ts());
            encode_into(
                out,
                &OutgoingMessage {
                    kind: "tool/call/resp",
                    id: &id,
                    version: VERSION,
                    ts,
                    body,
                },
                framing,
            );
        }
        OutboxItem::List(list) => {
            let body = ListView {
                req_id: &list.req_id,
                tools: ToolDefinitionList(&list.tools),
            };
            let id = Uuid::new_v4().simple().to_string();
            let message = OutgoingMessage {
                kind: "tool/list/resp",
                id: &id,
                version: VERSION,
                ts: now(),
                body,
            };
            let before = out.len();
            encode_into(out, &message, framing);
            if let Some(asked) = &list.asked {
                asked.listed(out.len() - before);
            }
        }
    }
}

fn now() -> Option<f64> {
    Some(crate::clock::unix_seconds())
}

/// The item as a message, for a peer in this process.
pub(super) fn message(item: OutboxItem) -> Message {
    match item {
        OutboxItem::Message(message) => std::sync::Arc::unwrap_or_clone(message),
        OutboxItem::Event(event) => Message::unnamed(Body::ToolEvent(event)),
        OutboxItem::Answer(answered) => {
            let response = response(&answered, usize::MAX).to_message();
            Message {
                id: answered.answer.result().invocation_id.to_hex(),
                version: None,
                ts: Some(response.created_at),
                body: Body::ToolCallResponse(response),
            }
        }
        OutboxItem::List(list) => {
            let OutboxToolList {
                req_id,
                tools,
                asked,
                ..
            } = *list;
            if let Some(asked) = asked {
                asked.listed(0);
            }
            let tools = tools.iter().map(definition).collect();
            Message::new(Body::ToolListResponse(toolpost_a2e::ToolListResponse {
                req_id,
                tools,
            }))
        }
    }
}

fn response(answered: &AnsweredCall, most: usize) -> CallResponseView<'_> {
    let AnsweredCall {
        req_id,
        tool,
        answer,
        events,
        is_of_plugin,
        ..
    } = answered;
    let project = if *is_of_plugin {
        CallResponseView::of_plugin
    } else {
        CallResponseView::of
    };
    project(req_id, tool, answer.result(), events, most)
}

/// A list of tools that is serialized directly from the catalog, one tool at a time.
#[derive(serde::Serialize)]
struct ListView<'a> {
    req_id: &'a str,
    tools: ToolDefinitionList<'a>,
}

struct ToolDefinitionList<'a>(&'a [SurfaceEntry]);

impl serde::Serialize for ToolDefinitionList<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(definition))
    }
}

/// The error for a message that is longer than the limit. `head` is its beginning.
pub(super) fn too_large(head: &[u8], limit: usize) -> Box<ErrorMessage> {
    let message =
        format!("the message is over the limit of {limit} bytes (setting `http.body_limit`)");
    Box::new(ErrorMessage::new(ErrorCode::MessageTooLarge, message).to(id_in(head)))
}
