//! The `tools` capability: list, search, call, cancel. Each of them uses the host's public entry points.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use toolpost_a2e::{
    Body, CapabilityName, ErrorCode, ErrorMessage, Message, ToolCallRequest, ToolCancelRequest,
    ToolCancelResponse, ToolEventMessage, ToolListRequest, projection,
};
use toolpost_core::{
    AcknowledgementTiming, CallHandle, CallHandleState, CallRequest, EventDelivery, EventInterest,
    EventListener, RecordedResult, RequestIdentity, ToolFilter, request_digest,
};
use toolpost_model::{
    BoxFuture, ErrorClass, Event, InvocationId, ModelInput, RequestId, TraceContext,
};
use uuid::Uuid;

use super::{
    audit::AuditedRequest,
    capability::{A2eCapability, A2ePeer, CapabilityAnswer, CapabilityResponse},
    conversation::{A2eConversation, ConversationTransport},
    outbox::{AnsweredCall, OutboxIdClaim, OutboxToolList, size_of_event},
};

/// The extension for stopping a call, in the handshake's metadata.
pub(super) const CANCEL: &str = "tool/cancel";
/// The extension for notices of changed lists, in the metadata and in the request of a client.
pub(super) const LIST_CHANGED: &str = "tool/list/changed";
/// The limits of the events in an answer: requested events, and events that were not streamed.
const MAX_COLLECTED: CollectLimits = CollectLimits {
    events: 1_000,
    bytes: 1 << 20,
};
const MAX_UNSTREAMED: CollectLimits = CollectLimits {
    events: 100,
    bytes: 16 << 10,
};

/// The host's own tools as a capability.
pub(super) struct ToolsCapability {
    pub(super) plugin: String,
    pub(super) priority: i32,
    pub(super) exclusive: bool,
    /// Whether the handshake lists it, and not only the plugins whose tools it serves.
    pub(super) is_entry: bool,
}

impl A2eCapability for ToolsCapability {
    fn name(&self) -> CapabilityName {
        CapabilityName::Tools
    }

    fn is_entry(&self) -> bool {
        self.is_entry
    }

    fn plugin(&self) -> &str {
        &self.plugin
    }

    fn messages(&self) -> &'static [&'static str] {
        &["tool/list/req", "tool/call/req", "tool/cancel/req"]
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn exclusive(&self) -> bool {
        self.exclusive
    }

    fn extensions(&self) -> &'static [&'static str] {
        &[CANCEL, LIST_CHANGED]
    }

    fn handle<'a>(
        &'a self,
        peer: &'a A2ePeer,
        message: Message,
    ) -> BoxFuture<'a, Result<CapabilityResponse, ErrorMessage>> {
        Box::pin(async move {
            match message.body {
                Body::ToolListRequest(request) => Ok(list(peer, message.id, request).await),
                Body::ToolCallRequest(request)
                    if self.leaves_to_others(peer, &request.tool_name) =>
                {
                    Ok(CapabilityResponse::NotMine)
                }
                Body::ToolCallRequest(request) => call(peer, message.id, request).await,
                Body::ToolCancelRequest(request) => Ok(cancel(peer, request)),
                _ => Ok(CapabilityResponse::NotMine),
            }
        })
    }
}

impl ToolsCapability {
    /// Whether a tool that the host does not have may belong to a capability that is asked later.
    fn leaves_to_others(&self, peer: &A2ePeer, tool: &str) -> bool {
        let takers = peer.conversation.face.registry.takers("tool/call/req");
        let is_last = takers
            .last()
            .is_some_and(|last| last.plugin() == self.plugin);
        !is_last && peer.host().surface(&peer.session).find(tool).is_none()
    }
}

async fn list(peer: &A2ePeer, id: String, request: ToolListRequest) -> CapabilityResponse {
    let asked = AuditedRequest::now(&peer.conversation, id.clone(), String::new(), 0);
    let filter = ToolFilter {
        query: request.query,
        kind: Some(request.filter_kind).filter(|kind| !kind.is_empty()),
        tags: request.filter_tags,
        include_deferred: request.include_deferred,
        limit: usize::try_from(request.limit)
            .ok()
            .filter(|limit| *limit > 0),
    };
    let tools = peer.host().list(&peer.session, &filter).await;
    CapabilityResponse::Answer(CapabilityAnswer::tools(OutboxToolList {
        req_id: id,
        filter,
        tools,
        asked,
    }))
}

fn cancel(peer: &A2ePeer, request: ToolCancelRequest) -> CapabilityResponse {
    let ok = peer
        .host()
        .cancel_request(&peer.session, &RequestId::new(request.call_id.as_str()));
    CapabilityResponse::with(Body::ToolCancelResponse(ToolCancelResponse {
        req_id: String::new(),
        call_id: request.call_id,
        ok,
    }))
}

async fn call(
    peer: &A2ePeer,
    id: String,
    request: ToolCallRequest,
) -> Result<CapabilityResponse, ErrorMessage> {
    let conversation = &peer.conversation;
    if !conversation.is_called(&request.session_id) {
        return Err(ErrorMessage::new(
            ErrorCode::Unauthorized,
            "`session_id` names another session",
        ));
    }
    let digest = request_digest(&request.tool_name, &request.arguments);
    match claim_id(conversation, &id, digest)? {
        Some(key) => start(peer, key, id, request).await,
        None => Ok(CapabilityResponse::Taken),
    }
}

async fn start(
    peer: &A2ePeer,
    key: String,
    id: String,
    request: ToolCallRequest,
) -> Result<CapabilityResponse, ErrorMessage> {
    let conversation = &peer.conversation;
    let background = request.background;
    let listener = Arc::new(CallListener::new(conversation, key, &id, &request));
    let mut call = CallRequest::new(
        Arc::clone(&peer.session),
        request.tool_name,
        request.arguments,
    )
    .identify(RequestIdentity {
        request_id: request_id(&id),
        native_call_id: None,
        correlation_id: Some(request.correlation_id).filter(|given| !given.is_empty()),
        trace: TraceContext::parse(&request.traceparent, Some(&request.tracestate)).map(Box::new),
    })
    .notify(Arc::clone(&listener) as Arc<dyn EventListener>);
    call.times.timeout = Some(request.timeout);
    call.times.total_time = Some(request.timeout);
    call.batch = request.batch;
    call.delivery.background = request.background;
    let handle = begin(peer, call).await;
    match handle.standing() {
        CallHandleState::Backgrounded => {
            handle.accepted().await;
            listener.goes_on(handle.invocation_id());
        }
        // A repeat of a background call gets the same answer again.
        CallHandleState::Joined if background => listener.goes_on(handle.invocation_id()),
        CallHandleState::Joined | CallHandleState::UnderWay | CallHandleState::Over(_) => {
            hand_over(conversation, handle, listener, CallListener::let_go).await?;
        }
    }
    Ok(CapabilityResponse::Taken)
}

/// Leaves a started call to its listener; over HTTP only once the call is on record. Conflicting requests are answered
/// here and not by the listener.
pub(super) async fn hand_over<L: EventListener>(
    conversation: &A2eConversation,
    mut handle: CallHandle,
    listener: Arc<L>,
    let_go: fn(&L),
) -> Result<(), ErrorMessage> {
    match handle.standing() {
        CallHandleState::UnderWay => {
            // The call continues without this handle: the next reader of the session gets the answer, so a disconnect
            // does not end the call.
            handle.detach();
            if conversation.transport == ConversationTransport::Http {
                handle.accepted().await;
            }
        }
        CallHandleState::Over(answer)
            if answer.result().error_class() == Some(ErrorClass::RequestConflict) =>
        {
            let_go(&listener);
            return Err(used_for_another());
        }
        CallHandleState::Over(answer) => listener.ended(answer),
        // The call began in an earlier run of the host, without this listener.
        CallHandleState::Joined | CallHandleState::Backgrounded => {
            tokio::spawn(async move { listener.ended(&handle.answer().await) });
        }
    }
    Ok(())
}

/// The request id of a message. A message without an id cannot be repeated.
pub(super) fn request_id(message: &str) -> Option<RequestId> {
    (!message.is_empty()).then(|| RequestId::new(message))
}

/// Claims the id of a message and returns the outbox key of its answer. `None`: the request is running, or its answer
/// is there.
pub(super) fn claim_id(
    conversation: &A2eConversation,
    id: &str,
    digest: [u8; 32],
) -> Result<Option<String>, ErrorMessage> {
    // A call without an id cannot be repeated, but it is answered and counted as usual.
    let key = if id.is_empty() {
        format!("\u{0}{}", Uuid::new_v4().simple())
    } else {
        id.to_owned()
    };
    match conversation.outbox.begin(&key, Some(digest)) {
        OutboxIdClaim::New => Ok(Some(key)),
        OutboxIdClaim::Same => Ok(None),
        OutboxIdClaim::Other => Err(used_for_another()),
        OutboxIdClaim::Behind => Err(behind()),
    }
}

/// Starts a call of the conversation. Over HTTP, the message is acknowledged before the call ends.
pub(super) async fn begin(peer: &A2ePeer, call: CallRequest) -> CallHandle {
    let transport = peer.conversation.transport;
    let acknowledged = match transport {
        ConversationTransport::Http => AcknowledgementTiming::OnceOnRecord,
        ConversationTransport::Stdio
        | ConversationTransport::Rejoined
        | ConversationTransport::InProcess => AcknowledgementTiming::AtTheEnd,
    };
    let call = call.record_face(transport.face()).acknowledge(acknowledged);
    peer.host().start(call).await
}

fn used_for_another() -> ErrorMessage {
    ErrorMessage::new(
        ErrorCode::InvalidMessage,
        "this id was used for another call in this session",
    )
}

pub(super) fn behind() -> ErrorMessage {
    ErrorMessage::new(
        ErrorCode::SlowReader,
        "the answers of this session are not being read; read them before calling more tools",
    )
    .retryable()
}

/// Receives the events and the end of a call for the session that made it.
pub(super) struct CallListener {
    conversation: Arc<A2eConversation>,
    /// The outbox key of the call.
    key: String,
    req_id: String,
    tool: String,
    streaming: bool,
    background: bool,
    collected: Option<Mutex<CollectedEvents>>,
    /// Whether the caller asked for the events. Otherwise only results of plugins include them, because their clients
    /// expect that.
    collects_for_all: bool,
    asked: Option<AuditedRequest>,
    /// Whether the caller was answered, or the end must not be sent.
    is_told: AtomicBool,
}

/// Events that wait for the answer that will include them.
struct CollectedEvents {
    limits: CollectLimits,
    events: Vec<ToolEventMessage>,
    bytes: usize,
}

impl CollectedEvents {
    fn new(limits: CollectLimits) -> Self {
        Self {
            limits,
            events: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, event: &ToolEventMessage) {
        let size = size_of_event(event);
        if self.events.len() < self.limits.events && self.bytes + size <= self.limits.bytes {
            self.bytes += size;
            self.events.push(event.clone());
        }
    }
}

#[derive(Clone, Copy)]
struct CollectLimits {
    events: usize,
    bytes: usize,
}

impl CallListener {
    fn new(
        conversation: &Arc<A2eConversation>,
        key: String,
        id: &str,
        request: &ToolCallRequest,
    ) -> Self {
        let bytes = match &request.arguments {
            ModelInput::Text(text) => text.len(),
            ModelInput::Value(_) => 0,
        };
        Self {
            conversation: Arc::clone(conversation),
            key,
            req_id: id.to_owned(),
            // The answer repeats the name as the caller sent it, which can be any text.
            tool: conversation
                .face
                .host
                .redacted(&request.tool_name)
                .into_owned(),
            streaming: request.streaming,
            background: request.background,
            collected: match (request.collect_events, request.streaming) {
                (true, _) => Some(Mutex::new(CollectedEvents::new(MAX_COLLECTED))),
                (false, false) if !conversation.face.plugins().is_empty() => {
                    Some(Mutex::new(CollectedEvents::new(MAX_UNSTREAMED)))
                }
                (false, _) => None,
            },
            collects_for_all: request.collect_events,
            asked: AuditedRequest::now(
                conversation,
                id.to_owned(),
                request.correlation_id.clone(),
                bytes,
            ),
            is_told: AtomicBool::new(false),
        }
    }

    /// Answers that the call continues in the background.
    fn goes_on(&self, call: InvocationId) {
        self.is_told.store(true, Ordering::Relaxed);
        let response = projection::backgrounded(&self.req_id, &self.tool, call);
        let message = Message::new(Body::ToolCallResponse(response));
        // If even this message does not fit, the caller has thousands of unread messages.
        let _ = self.conversation.outbox.push_reply(&self.key, message);
    }

    /// Releases the request, because another message answers it.
    fn let_go(&self) {
        self.is_told.store(true, Ordering::Relaxed);
        self.conversation.outbox.give_up(&self.key);
    }

    /// A listener for a call that an earlier host began. Its caller gets the end.
    pub(super) fn of_earlier(
        conversation: &Arc<A2eConversation>,
        req_id: String,
        tool: String,
    ) -> Self {
        let conversation = Arc::clone(conversation);
        let key = req_id.clone();
        Self {
            conversation,
            key,
            req_id,
            tool,
            streaming: false,
            background: false,
            collected: None,
            collects_for_all: false,
            asked: None,
            is_told: AtomicBool::new(false),
        }
    }

    /// Waits for the end of a call that began without this listener.
    pub(super) fn wait_for(self, call: CallHandle) {
        tokio::spawn(async move { self.ended(&call.answer().await) });
    }
}

impl EventListener for CallListener {
    fn wants(&self) -> EventInterest {
        let wanted = (self.streaming || self.collected.is_some()) && !self.background;
        if wanted {
            EventInterest::ToolEvents
        } else {
            EventInterest::Nothing
        }
    }

    fn hear(&self, event: Event) -> EventDelivery {
        let Some(event) = projection::event(&self.req_id, &event) else {
            return EventDelivery::Taken;
        };
        if let Some(collected) = &self.collected {
            collected.lock().add(&event);
        }
        if self.streaming {
            self.conversation.outbox.push_event(event)
        } else {
            EventDelivery::Taken
        }
    }

    fn ended(&self, answer: &Arc<RecordedResult>) {
        let events = self
            .collected
            .as_ref()
            .map(|collected| std::mem::take(&mut collected.lock().events));
        let is_of_plugin = self.conversation.face.is_of_plugin(answer);
        let events = events.filter(|_| self.collects_for_all || is_of_plugin);
        if let Some(asked) = &self.asked {
            asked.answered(&self.conversation, &self.tool, answer);
        }
        // A background call was answered before; its caller asks for the result by the call's id.
        if self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        self.conversation.outbox.push_answer(AnsweredCall {
            key: self.key.clone(),
            req_id: self.req_id.clone(),
            tool: self.tool.clone(),
            answer: Arc::clone(answer),
            events: events.unwrap_or_default(),
            is_of_plugin,
        });
    }
}

/// Answers the request of a call that is dropped without an end: its sender disconnected in the moment of the start, or
/// the host is torn down. The message is sent without waiting.
impl Drop for CallListener {
    fn drop(&mut self) {
        if self.is_told.load(Ordering::Relaxed) {
            return;
        }
        let error = ErrorMessage::new(
            ErrorCode::RuntimeError,
            "the call was dropped before it started",
        )
        .retryable();
        let message = Message::new(Body::Error(error.to(self.req_id.clone())));
        // If even this message does not fit, the caller has thousands of unread messages.
        let _ = self.conversation.outbox.push_reply(&self.key, message);
    }
}
