//! Capabilities: the services that a host offers over A2E. `tools` is built in; others can be added with
//! [`ServerBuilder::capability`](crate::ServerBuilder::capability).

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use futures_util::FutureExt as _;

use serde_json::{Map, Value, json};
use toolpost_a2e::{
    Body, CapabilityEntry, CapabilityName, ErrorCode, ErrorMessage, Message, ToolDefinition,
    ToolListResponse,
};
use toolpost_core::{Host, Session, SurfaceEntry};
use toolpost_model::{BoxFuture, Visibility};
use toolpost_modules::LoadedPlugin;

use super::{
    conversation::{A2eConversation, NotTaken},
    outbox::{ListNotTaken, OutboxIdClaim, OutboxToolList},
    tools::behind,
};

/// A part of the protocol: message types and their handler.
///
/// Several capabilities may take the same message type. They are asked in order of priority. Only the first is asked if
/// it is exclusive, and a final answer ends the search. The answers are merged, for example into one list of tools.
pub trait A2eCapability: Send + Sync + 'static {
    /// The capability that the handler belongs to.
    fn name(&self) -> CapabilityName;

    /// The handler's own name, if several handlers belong to one capability.
    fn plugin(&self) -> &str;

    /// The message types that it handles.
    fn messages(&self) -> &'static [&'static str];

    /// Whether the handshake lists it.
    fn is_entry(&self) -> bool {
        true
    }

    /// Handlers with a higher priority are asked first.
    fn priority(&self) -> i32 {
        0
    }

    /// Whether no other handler is asked if this one is first.
    fn exclusive(&self) -> bool {
        false
    }

    /// Extension names that clients may look for.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Handles a message. An error goes to the sender; its `req_id` is filled in.
    fn handle<'a>(
        &'a self,
        peer: &'a A2ePeer,
        message: Message,
    ) -> BoxFuture<'a, Result<CapabilityResponse, ErrorMessage>>;
}

/// The response of a capability to a message.
pub enum CapabilityResponse {
    /// The answer, or a part of it. `req_id` is filled in.
    Answer(CapabilityAnswer),
    /// The capability sends the answer itself; no other handler is asked.
    Taken,
    /// The message belongs to another handler.
    NotMine,
}

impl CapabilityResponse {
    /// An answer.
    pub fn with(body: Body) -> Self {
        Self::Answer(CapabilityAnswer(CapabilityAnswerBody::Body(Box::new(body))))
    }
}

/// An answer before it is sent.
pub struct CapabilityAnswer(CapabilityAnswerBody);

enum CapabilityAnswerBody {
    Body(Box<Body>),
    /// A list that still refers to the catalog.
    Tools(Box<OutboxToolList>),
}

impl CapabilityAnswer {
    pub(super) fn tools(list: OutboxToolList) -> Self {
        Self(CapabilityAnswerBody::Tools(Box::new(list)))
    }

    /// Whether no other handler can add to the answer, because a call has one owner.
    fn is_final(&self) -> bool {
        matches!(&self.0, CapabilityAnswerBody::Body(body) if matches!(**body, Body::ToolCallResponse(_)))
    }

    fn is_list(&self) -> bool {
        match &self.0 {
            CapabilityAnswerBody::Tools(_) => true,
            CapabilityAnswerBody::Body(body) => matches!(**body, Body::ToolListResponse(_)),
        }
    }

    /// Merges two lists of tools.
    fn merge(self, other: Self) -> Self {
        let mut first = self.into_body();
        if let (Body::ToolListResponse(first), Body::ToolListResponse(more)) =
            (&mut first, other.into_body())
        {
            for tool in more.tools {
                // The tool of the handler that was asked first keeps its name.
                if !first.tools.iter().any(|known| known.name == tool.name) {
                    first.tools.push(tool);
                }
            }
        }
        Self(CapabilityAnswerBody::Body(Box::new(first)))
    }

    fn into_body(self) -> Body {
        match self.0 {
            CapabilityAnswerBody::Body(body) => *body,
            CapabilityAnswerBody::Tools(list) => Body::ToolListResponse(ToolListResponse {
                req_id: list.req_id,
                tools: list.tools.iter().map(definition).collect(),
            }),
        }
    }
}

pub(crate) fn definition(tool: &SurfaceEntry) -> ToolDefinition {
    let deferred = tool.visibility == Visibility::Deferred;
    ToolDefinition::of(tool.entry.name(), tool.entry.declaration(), deferred)
}

/// The connected agent, as a capability sees it.
#[derive(Clone)]
pub struct A2ePeer {
    pub(super) conversation: Arc<A2eConversation>,
    pub(super) session: Arc<Session>,
}

impl A2ePeer {
    /// The host.
    pub fn host(&self) -> &Host {
        &self.conversation.face.host
    }

    /// The agent's session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Sends a message to the agent. `false`: thousands of unread messages are waiting.
    pub fn push(&self, body: Body) -> bool {
        self.conversation.outbox.push(Message::new(body)).is_ok()
    }

    /// Whether the agent asked for an extension in its handshake.
    pub fn wants(&self, extension: &str) -> bool {
        self.conversation.wants(extension)
    }
}

/// The capabilities of a host, by message type and by name.
pub(super) struct CapabilityRegistry {
    capabilities: Vec<Arc<dyn A2eCapability>>,
    /// Message types that only the host's own tools handle.
    own: Vec<&'static str>,
    by_type: HashMap<&'static str, Vec<Arc<dyn A2eCapability>>>,
    /// The handshake entries of plugins, in the order of their file.
    plugins: Vec<CapabilityEntry>,
    /// The capability of each message type of plugins.
    plugin_types: HashMap<String, CapabilityName>,
}

impl CapabilityRegistry {
    /// `tools` are the host's own; they are asked after other handlers of the same priority.
    pub(super) fn new(
        mut capabilities: Vec<Arc<dyn A2eCapability>>,
        tools: Arc<dyn A2eCapability>,
        plugins: &[LoadedPlugin],
    ) -> Self {
        let mut entries = Vec::new();
        let mut plugin_types = HashMap::new();
        for plugin in plugins {
            let capability = CapabilityName::from_word(&plugin.capability);
            for kind in &plugin.messages {
                plugin_types
                    .entry(kind.clone())
                    .or_insert_with(|| capability.clone());
            }
            let mut metadata = plugin.metadata.clone();
            if capability == CapabilityName::Tools {
                metadata.insert("extensions".to_owned(), json!(tools.extensions()));
            }
            entries.push(CapabilityEntry {
                capability,
                enabled: true,
                metadata,
            });
        }
        let others: HashSet<_> = capabilities
            .iter()
            .flat_map(|capability| capability.messages())
            .copied()
            .collect();
        let own = tools
            .messages()
            .iter()
            .copied()
            .filter(|kind| !others.contains(kind))
            .collect();
        capabilities.push(tools);
        // The sort is stable: at equal priority, handlers are asked in the order of their registration.
        capabilities.sort_by_key(|capability| std::cmp::Reverse(capability.priority()));
        let mut by_type: HashMap<_, Vec<_>> = HashMap::new();
        for capability in &capabilities {
            for kind in capability.messages() {
                by_type
                    .entry(*kind)
                    .or_default()
                    .push(Arc::clone(capability));
            }
        }
        Self {
            capabilities,
            own,
            by_type,
            plugins: entries,
            plugin_types,
        }
    }

    fn is_own(&self, kind: &str) -> bool {
        self.own.contains(&kind)
    }

    /// The handlers of a message type in the order in which they are asked.
    pub(super) fn takers(&self, kind: &str) -> &[Arc<dyn A2eCapability>] {
        let takers = self.by_type.get(kind).map_or(&[][..], Vec::as_slice);
        match takers {
            [first, ..] if first.exclusive() => &takers[..1],
            takers => takers,
        }
    }

    /// The capability of a plugin's message type.
    pub(super) fn of_plugins(&self, kind: &str) -> Option<&CapabilityName> {
        self.plugin_types.get(kind)
    }

    /// The entries of each requested capability, one for each plugin, in the order of the request.
    pub(super) fn negotiate(&self, asked: &[String]) -> Vec<CapabilityEntry> {
        let mut accepted: Vec<CapabilityEntry> = Vec::new();
        for name in asked.iter().map(|word| CapabilityName::from_word(word)) {
            if accepted.iter().any(|entry| entry.capability == name) {
                continue;
            }
            let own = self
                .capabilities
                .iter()
                .filter(|one| one.is_entry() && one.name() == name);
            accepted.extend(own.map(|capability| CapabilityEntry {
                capability: name.clone(),
                enabled: true,
                metadata: metadata(&**capability),
            }));
            accepted.extend(
                self.plugins
                    .iter()
                    .filter(|entry| entry.capability == name)
                    .cloned(),
            );
        }
        accepted
    }
}

fn metadata(capability: &dyn A2eCapability) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(capability.plugin()));
    metadata.insert("type".to_owned(), json!(capability.name()));
    metadata.insert("priority".to_owned(), json!(capability.priority()));
    metadata.insert("exclusive".to_owned(), json!(capability.exclusive()));
    if !capability.extensions().is_empty() {
        metadata.insert("extensions".to_owned(), json!(capability.extensions()));
    }
    metadata
}

/// Passes a message to its handlers. The host's own tools take a message quickly, so they are asked in place. Other
/// handlers may take long and run in their own tokio task.
pub(super) async fn dispatch(peer: &A2ePeer, message: Message) -> Result<(), NotTaken> {
    let conversation = &peer.conversation;
    if conversation.face.registry.is_own(message.body.kind()) {
        return ask_all(peer, message).await;
    }
    let id = message.id.clone();
    let key = others_key(&id);
    // A repeat of a running or answered request is not handled again.
    if !id.is_empty() {
        match conversation.outbox.begin(&key, None) {
            OutboxIdClaim::New => {}
            OutboxIdClaim::Same | OutboxIdClaim::Other => return Ok(()),
            OutboxIdClaim::Behind => return Err(behind().into()),
        }
        // The claim comes before this look at the remembered answers. An answer is pushed before its claim is released,
        // so a repeat finds either the claim or the answer. In the other order, the first request could end between the
        // two steps, and the repeat would be handled a second time.
        if conversation.outbox.repeat(&id) {
            conversation.outbox.give_up(&key);
            return Ok(());
        }
    }
    let Ok(place) = Arc::clone(&conversation.handling).try_acquire_owned() else {
        conversation.outbox.give_up(&key);
        let reason = "too many requests of this session are being handled";
        return Err(ErrorMessage::new(ErrorCode::RuntimeError, reason)
            .retryable()
            .into());
    };
    let peer = peer.clone();
    tokio::spawn(async move {
        if let Err(NotTaken::Refused(error)) = ask_all(&peer, message).await {
            peer.conversation.refuse(id, *error);
        }
        peer.conversation.outbox.give_up(&key);
        drop(place);
    });
    Ok(())
}

/// The outbox key of a request to other handlers. It differs from the request's id, because the host's own tools use
/// that id as the key of a call if they are asked too.
pub(super) fn others_key(id: &str) -> String {
    format!("\u{1}{id}")
}

/// Asks all handlers of a message and sends the combined answer.
async fn ask_all(peer: &A2ePeer, message: Message) -> Result<(), NotTaken> {
    let conversation = &peer.conversation;
    let id = message.id.clone();
    let mut answers: Vec<CapabilityAnswer> = Vec::new();
    let mut refusal = None;
    let takers = conversation.face.registry.takers(message.body.kind());
    let mut message = Some(message);
    for (place, capability) in takers.iter().enumerate() {
        let is_last = place + 1 == takers.len();
        let Some(given) = (if is_last {
            message.take()
        } else {
            message.clone()
        }) else {
            break;
        };
        match handled(&**capability, peer, given).await {
            Ok(CapabilityResponse::Taken) => return Ok(()),
            Ok(CapabilityResponse::NotMine) => {}
            Ok(CapabilityResponse::Answer(part)) => {
                let is_final = part.is_final();
                match answers
                    .iter()
                    .position(CapabilityAnswer::is_list)
                    .filter(|_| part.is_list())
                {
                    Some(first) => {
                        let merged = answers.remove(first).merge(part);
                        answers.insert(first, merged);
                    }
                    None => answers.push(part),
                }
                if is_final {
                    break;
                }
            }
            Err(mut error) => {
                error.capability_name = capability.name().as_str().to_owned();
                refusal = refusal.or(Some(error));
            }
        }
    }
    if answers.is_empty() {
        return Err(match refusal {
            Some(error) => error.into(),
            None => ErrorMessage::new(
                ErrorCode::InvalidMessage,
                "no capability handles this message",
            )
            .into(),
        });
    }
    answers
        .into_iter()
        .try_for_each(|answer| send_answer(conversation, &id, answer))
}

fn send_answer(
    conversation: &A2eConversation,
    id: &str,
    answer: CapabilityAnswer,
) -> Result<(), NotTaken> {
    match answer.0 {
        CapabilityAnswerBody::Tools(list) => match conversation.outbox.push_list(*list) {
            Ok(()) => Ok(()),
            Err(ListNotTaken::Behind) => Err(behind().into()),
            Err(ListNotTaken::Flooded) => Err(NotTaken::Flooded),
        },
        CapabilityAnswerBody::Body(mut body) => {
            body.answer_to(id);
            conversation
                .outbox
                .push(Message::new(*body))
                .map_err(|_| NotTaken::Flooded)
        }
    }
}

/// Turns a panic of a capability into an error.
async fn handled(
    capability: &dyn A2eCapability,
    peer: &A2ePeer,
    message: Message,
) -> Result<CapabilityResponse, ErrorMessage> {
    let handling = AssertUnwindSafe(async { capability.handle(peer, message).await });
    handling.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(capability = capability.plugin(), "a capability panicked");
        Err(ErrorMessage::new(
            ErrorCode::RuntimeError,
            "the capability failed",
        ))
    })
}

/// The most characters of an unknown message type that an error repeats.
const MAX_SHOWN: usize = 100;
/// The prefixes of the message types of the protocol's capabilities.
const FAMILIES: [&str; 10] = [
    "skill",
    "toolkit",
    "env",
    "proc",
    "memory",
    "learn",
    "chain",
    "multi_agent",
    "planning",
    "mcp",
];

/// The error for a message type without a handler. Requests of capabilities that this host does not offer get another
/// error than invalid messages.
pub(super) fn nobody_takes(kind: &str) -> ErrorMessage {
    let shown: String = kind
        .chars()
        .take(MAX_SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    let is_of_capability = match kind.split_once('/') {
        Some(("tool" | "handshake" | "invoke", _)) | None => false,
        Some((family, _)) => FAMILIES.contains(&family) || kind.ends_with("/req"),
    };
    match is_of_capability {
        true => {
            let message = format!("this host has no capability for `{shown}`");
            ErrorMessage::new(ErrorCode::CapabilityMissing, message)
        }
        false => {
            let message = format!("messages of type `{shown}` are not supported");
            ErrorMessage::new(ErrorCode::InvalidMessage, message)
        }
    }
}
