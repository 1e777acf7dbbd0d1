//! Capabilities: what a host offers over this protocol beside the handshake. `tools` is one entry; others can be
//! added with [`ServerBuilder::capability`](crate::ServerBuilder::capability).

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use futures_util::FutureExt as _;

use serde_json::{Map, Value, json};
use toolpost_a2e::{
    Body, CapabilityEntry, CapabilityName, ErrorCode, ErrorMessage, Message, ToolDefinition, ToolListResponse,
};
use toolpost_core::{Host, Listing, Session};
use toolpost_model::{BoxFuture, Visibility};

use super::{
    conversation::{Conversation, NotTaken},
    outbox::{Begun, ListNotTaken, Listed},
    tools::behind,
};

/// A part of the protocol: message types, and who handles them.
///
/// Several capabilities may take the same type. They are asked in order of priority; the answers of all of them are
/// merged into one, unless the first is exclusive, or one of them answers by itself.
pub trait Capability: Send + Sync + 'static {
    /// Which capability it is part of.
    fn name(&self) -> CapabilityName;

    /// Its own name, where several are part of one capability.
    fn plugin(&self) -> &str;

    /// The types of the messages it takes.
    fn messages(&self) -> &'static [&'static str];

    /// The higher, the earlier it is asked.
    fn priority(&self) -> i32 {
        0
    }

    /// Where it is the first to be asked, whether it is the only one.
    fn exclusive(&self) -> bool {
        false
    }

    /// Words for extensions that clients may look for.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Handles a message. An error goes to the sender, with the request it answers filled in.
    fn handle<'a>(&'a self, peer: &'a Peer, message: Message)
    -> BoxFuture<'a, Result<Handled, ErrorMessage>>;
}

/// What became of a message.
pub enum Handled {
    /// This is the answer, or part of it. `req_id` is filled in.
    Answer(Answered),
    /// The answer was pushed, or will be: nobody else is asked.
    Taken,
    /// It is somebody else's.
    NotMine,
}

impl Handled {
    /// An answer.
    pub fn with(body: Body) -> Self {
        Self::Answer(Answered(Part::Body(Box::new(body))))
    }
}

/// An answer before it is sent.
pub struct Answered(Part);

enum Part {
    Body(Box<Body>),
    /// A list that is still the catalog's own.
    Tools(Box<Listed>),
}

impl Answered {
    pub(super) fn tools(list: Listed) -> Self {
        Self(Part::Tools(Box::new(list)))
    }

    /// Whether nobody else can have anything to add: a call has one owner.
    fn is_final(&self) -> bool {
        matches!(&self.0, Part::Body(body) if matches!(**body, Body::ToolCallResponse(_)))
    }

    /// Joins two answers to one request: lists are joined, fields the first does not have are taken from the other.
    fn merge(self, other: Self) -> Self {
        let mut first = self.into_body();
        match (&mut first, other.into_body()) {
            (Body::ToolListResponse(first), Body::ToolListResponse(more)) => {
                for tool in more.tools {
                    // A name is one tool's; whoever was asked first has it.
                    if !first.tools.iter().any(|known| known.name == tool.name) {
                        first.tools.push(tool);
                    }
                }
            }
            (Body::Other(first), Body::Other(more)) if first.kind == more.kind => {
                for (name, value) in more.fields {
                    match (first.fields.get_mut(&name), value) {
                        (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                        (Some(_), _) => {}
                        (None, value) => {
                            first.fields.insert(name, value);
                        }
                    }
                }
            }
            _ => {}
        }
        Self(Part::Body(Box::new(first)))
    }

    fn into_body(self) -> Body {
        match self.0 {
            Part::Body(body) => *body,
            Part::Tools(list) => Body::ToolListResponse(ToolListResponse {
                req_id: list.req_id,
                tools: list.tools.iter().map(definition).collect(),
            }),
        }
    }
}

/// A listed tool as the protocol describes it.
pub(crate) fn definition(tool: &Listing) -> ToolDefinition {
    let deferred = tool.visibility == Visibility::Deferred;
    ToolDefinition::of(tool.entry.name(), tool.entry.declaration(), deferred)
}

/// The agent at the other end, as a capability sees it.
#[derive(Clone)]
pub struct Peer {
    pub(super) conversation: Arc<Conversation>,
    pub(super) session: Arc<Session>,
}

impl Peer {
    /// The host.
    pub fn host(&self) -> &Host {
        &self.conversation.face.host
    }

    /// Its session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Sends it something it may not have asked for. `false`: thousands of messages wait for it already.
    pub fn push(&self, body: Body) -> bool {
        self.conversation.outbox.push(Message::new(body)).is_ok()
    }

    /// Whether it asked for an extension in its handshake.
    pub fn wants(&self, extension: &str) -> bool {
        self.conversation.wants(extension)
    }
}

/// The capabilities of a host, by message type and by name.
pub(super) struct Registry {
    capabilities: Vec<Arc<dyn Capability>>,
    /// Types that only the host's own tools take.
    own: Vec<&'static str>,
    by_type: HashMap<&'static str, Vec<Arc<dyn Capability>>>,
}

impl Registry {
    /// `tools` are the host's own, asked after others of the same priority.
    pub(super) fn new(mut capabilities: Vec<Arc<dyn Capability>>, tools: Arc<dyn Capability>) -> Self {
        let others: HashSet<_> =
            capabilities.iter().flat_map(|capability| capability.messages()).copied().collect();
        let own = tools.messages().iter().copied().filter(|kind| !others.contains(kind)).collect();
        capabilities.push(tools);
        // Stable: of equals, whoever was added first is asked first.
        capabilities.sort_by_key(|capability| std::cmp::Reverse(capability.priority()));
        let mut by_type: HashMap<_, Vec<_>> = HashMap::new();
        for capability in &capabilities {
            for kind in capability.messages() {
                by_type.entry(*kind).or_default().push(Arc::clone(capability));
            }
        }
        Self { capabilities, own, by_type }
    }

    fn is_own(&self, kind: &str) -> bool {
        self.own.contains(&kind)
    }

    /// Who takes messages of a type, first asked first.
    pub(super) fn takers(&self, kind: &str) -> &[Arc<dyn Capability>] {
        let takers = self.by_type.get(kind).map_or(&[][..], Vec::as_slice);
        match takers {
            [first, ..] if first.exclusive() => &takers[..1],
            takers => takers,
        }
    }

    /// One entry for each capability that was asked for and is served, in the order it was asked for.
    pub(super) fn negotiate(&self, asked: &[String]) -> Vec<CapabilityEntry> {
        let mut accepted: Vec<CapabilityEntry> = Vec::new();
        for name in asked.iter().filter_map(|word| CapabilityName::from_word(word)) {
            if accepted.iter().any(|entry| entry.capability == name) {
                continue;
            }
            let Some(first) = self.capabilities.iter().find(|capability| capability.name() == name) else {
                continue;
            };
            accepted.push(CapabilityEntry { capability: name, enabled: true, metadata: metadata(&**first) });
        }
        accepted
    }
}

fn metadata(capability: &dyn Capability) -> Map<String, Value> {
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

/// Hands a message to whoever takes it. The host's own tools are quick to take one; others may take their time, so
/// they get a task.
pub(super) async fn dispatch(peer: &Peer, message: Message) -> Result<(), NotTaken> {
    let conversation = &peer.conversation;
    if conversation.face.registry.is_own(message.body.kind()) {
        return ask_all(peer, message).await;
    }
    let id = message.id.clone();
    let key = others_key(&id);
    // A repeat of a request that is under way or was answered is not handled twice.
    if !id.is_empty() {
        match conversation.outbox.begin(&key, None) {
            Begun::New => {}
            Begun::Same | Begun::Other => return Ok(()),
            Begun::Behind => return Err(behind().into()),
        }
        if conversation.outbox.repeat(&id) {
            conversation.outbox.give_up(&key);
            return Ok(());
        }
    }
    let Ok(place) = Arc::clone(&conversation.handling).try_acquire_owned() else {
        conversation.outbox.give_up(&key);
        let reason = "too many requests of this session are being handled";
        return Err(ErrorMessage::new(ErrorCode::RuntimeError, reason).retryable().into());
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

/// What a request to other capabilities is under way under. Not its id: the host's own tools, where they are asked
/// too, take that for their call.
pub(super) fn others_key(id: &str) -> String {
    format!("\u{1}{id}")
}

/// Asks everybody who takes a message, and sends the one answer they come to.
async fn ask_all(peer: &Peer, message: Message) -> Result<(), NotTaken> {
    let conversation = &peer.conversation;
    let id = message.id.clone();
    let mut answer: Option<Answered> = None;
    let mut refusal = None;
    let takers = conversation.face.registry.takers(message.body.kind());
    let mut message = Some(message);
    for (place, capability) in takers.iter().enumerate() {
        let is_last = place + 1 == takers.len();
        let Some(given) = (if is_last { message.take() } else { message.clone() }) else { break };
        match handled(&**capability, peer, given).await {
            Ok(Handled::Taken) => return Ok(()),
            Ok(Handled::NotMine) => {}
            Ok(Handled::Answer(part)) => {
                let is_final = part.is_final();
                answer = Some(match answer {
                    Some(first) => first.merge(part),
                    None => part,
                });
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
    match (answer, refusal) {
        (Some(Answered(Part::Tools(list))), _) => match conversation.outbox.push_list(*list) {
            Ok(()) => Ok(()),
            Err(ListNotTaken::Behind) => Err(behind().into()),
            Err(ListNotTaken::Flooded) => Err(NotTaken::Flooded),
        },
        (Some(answer), _) => {
            let mut body = answer.into_body();
            body.answer_to(&id);
            conversation.outbox.push(Message::new(body)).map_err(|_| NotTaken::Flooded)
        }
        (None, Some(error)) => Err(error.into()),
        (None, None) => {
            Err(ErrorMessage::new(ErrorCode::InvalidMessage, "nobody here takes this message").into())
        }
    }
}

/// A capability that panics is one that could not answer.
async fn handled(
    capability: &dyn Capability,
    peer: &Peer,
    message: Message,
) -> Result<Handled, ErrorMessage> {
    let handling = AssertUnwindSafe(async { capability.handle(peer, message).await });
    handling.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(capability = capability.plugin(), "a capability panicked");
        Err(ErrorMessage::new(ErrorCode::RuntimeError, "the capability failed"))
    })
}
