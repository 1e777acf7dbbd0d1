//! Messages of capabilities that plugins of an A2E host file provide. Each message becomes a call of the host, so that
//! it is decided, scheduled and recorded like a tool call. The answers of the plugins are sent unchanged.

use std::{
    collections::HashSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolpost_a2e::{Body, ErrorCode, ErrorMessage, Message, OtherBody, projection};
use toolpost_core::{
    CallRequest, EventDelivery, EventInterest, EventListener, Host, RecordedResult,
    RequestIdentity, request_digest,
};
use toolpost_model::{ErrorClass, Event, EventBody, ModelInput, SessionId, TraceContext};
use toolpost_modules::PluginPort;
use uuid::Uuid;

use super::{
    A2eServerFace,
    capability::A2ePeer,
    conversation::{A2eConversation, NotTaken},
    tools::{begin, claim_id, hand_over, request_id},
};

const NAMESPACE: &str = "a2e";

/// Starts the call for a message.
pub(super) async fn take(peer: &A2ePeer, message: Message) -> Result<(), NotTaken> {
    let conversation = &peer.conversation;
    let Message { id, body, .. } = message;
    let Body::Other(OtherBody { kind, fields }) = body else {
        return Err(
            ErrorMessage::new(ErrorCode::InvalidMessage, "no plugin handles this message").into(),
        );
    };
    let span = |name: &str| fields.get(name).and_then(Value::as_str);
    let span =
        span("traceparent").and_then(|parent| TraceContext::parse(parent, span("tracestate")));
    let mut arguments = Map::new();
    if !id.is_empty() {
        arguments.insert("id".to_owned(), Value::from(id.as_str()));
    }
    arguments.extend(fields);
    let input = ModelInput::value(Value::Object(arguments));
    let Some(key) = claim_id(conversation, &id, request_digest(&kind, &input))? else {
        return Ok(());
    };
    let listener = Arc::new(MessageListener::new(conversation, key, &id));
    let name = kind.strip_suffix("/req").unwrap_or(&kind);
    let tool = format!("{NAMESPACE}.{name}");
    let call = CallRequest::new(Arc::clone(&peer.session), tool, input)
        .identify(RequestIdentity {
            request_id: request_id(&id),
            trace: span.map(Box::new),
            ..RequestIdentity::default()
        })
        .notify(Arc::clone(&listener) as Arc<dyn EventListener>);
    let handle = begin(peer, call).await;
    hand_over(conversation, handle, listener, MessageListener::let_go).await?;
    Ok(())
}

/// Sends the messages of plugins during a request, and their answers.
struct MessageListener {
    conversation: Arc<A2eConversation>,
    /// The key of the request in the outbox.
    key: String,
    req_id: String,
    /// The ids of messages that were sent before the end.
    sent: Mutex<HashSet<String>>,
    is_over: AtomicBool,
}

impl MessageListener {
    fn new(conversation: &Arc<A2eConversation>, key: String, id: &str) -> Self {
        Self {
            conversation: Arc::clone(conversation),
            key,
            req_id: id.to_owned(),
            sent: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Releases the request, because another message answers it.
    fn let_go(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.conversation.outbox.give_up(&self.key);
    }

    fn send(&self, message: Message) {
        // A session that does not read has thousands of unread messages; this message is dropped.
        let _ = self.conversation.outbox.push(message);
    }
}

impl EventListener for MessageListener {
    fn wants(&self) -> EventInterest {
        EventInterest::ToolEvents
    }

    fn hear(&self, event: Event) -> EventDelivery {
        if let EventBody::Message { message } = event.body {
            let message = wire_message(message, &self.req_id);
            self.sent.lock().insert(message.id.clone());
            self.send(message);
        }
        EventDelivery::Taken
    }

    fn ended(&self, answer: &Arc<RecordedResult>) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        let result = answer.result();
        let details = result
            .error
            .as_ref()
            .and_then(|error| error.details.as_ref());
        let found = result
            .structured_content
            .as_ref()
            .or(details)
            .and_then(|value| value.get("responses"));
        // For a call that ran out of time, the timeout is the answer, and not the plugin's own text about being
        // stopped.
        let found = found.filter(|_| result.error_class() != Some(ErrorClass::Timeout));
        match (found.and_then(Value::as_array), &result.error) {
            (Some(responses), _) => {
                let sent = std::mem::take(&mut *self.sent.lock());
                let responses = responses
                    .iter()
                    .map(|one| wire_message(one.clone(), &self.req_id));
                responses
                    .filter(|message| !sent.contains(&message.id))
                    .for_each(|message| self.send(message));
            }
            (None, Some(error)) => {
                let code = projection::error_code(error.class);
                let hint = error
                    .hint
                    .as_ref()
                    .map(|hint| format!("\nhint: {hint}"))
                    .unwrap_or_default();
                let fields = serde_json::json!({
                    "type": "error",
                    "code": code,
                    "message": format!("{}{hint}", error.message),
                    "detail": { "invocation_id": result.invocation_id, "error_class": error.class },
                    "retryable": error.retry.safe,
                });
                self.send(wire_message(fields, &self.req_id));
            }
            // The plugin took the message and gave no answer.
            (None, None) => {}
        }
        self.conversation.outbox.give_up(&self.key);
    }
}

/// Answers the request of a call that is dropped without an end.
impl Drop for MessageListener {
    fn drop(&mut self) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let error = ErrorMessage::new(
            ErrorCode::RuntimeError,
            "the request was dropped before it started",
        )
        .retryable();
        self.send(Message::new(Body::Error(error.to(self.req_id.clone()))));
        self.conversation.outbox.give_up(&self.key);
    }
}

/// Completes a plugin's message with the fields that the protocol requires.
fn wire_message(message: Value, req_id: &str) -> Message {
    let mut fields = match message {
        Value::Object(fields) => fields,
        other => Map::from_iter([("data".to_owned(), other)]),
    };
    let mut text = |key: &str| match fields.shift_remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let kind = text("type");
    let id = text("id");
    let version = text("version");
    let ts = fields.shift_remove("ts").and_then(|ts| ts.as_f64());
    let mut body = Body::Other(OtherBody { kind, fields });
    if !req_id.is_empty() {
        body.answer_to(req_id);
    }
    Message {
        id: if id.is_empty() {
            Uuid::new_v4().simple().to_string()
        } else {
            id
        },
        version: Some(version).filter(|version| !version.is_empty()),
        ts: Some(ts.unwrap_or_else(crate::clock::unix_seconds)),
        body,
    }
}

/// Passes messages that plugins send outside of a request to the agent of their session, and their audit entries to the
/// file.
pub(crate) struct FacePluginPort {
    face: Weak<A2eServerFace>,
    host: Host,
}

impl FacePluginPort {
    pub(crate) fn new(face: &Arc<A2eServerFace>, host: Host) -> Self {
        Self {
            face: Arc::downgrade(face),
            host,
        }
    }

    /// Removes the host's secrets.
    fn redacted(&self, value: &Value) -> Option<Value> {
        serde_json::from_str(&self.host.redacted(&value.to_string())).ok()
    }
}

impl PluginPort for FacePluginPort {
    fn push(&self, session: &SessionId, message: Value) {
        let conversation = self
            .face
            .upgrade()
            .and_then(|face| face.conversation_of(session));
        if let (Some(conversation), Some(message)) = (conversation, self.redacted(&message)) {
            let _ = conversation.outbox.push(wire_message(message, ""));
        }
    }

    fn audit(&self, entry: Value) {
        if let (Some(face), Some(entry)) = (self.face.upgrade(), self.redacted(&entry)) {
            face.settings.audit.write(entry.to_string());
        }
    }
}
