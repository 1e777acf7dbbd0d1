//! The messages that a session's agent has not received yet: bounded, in order, and kept for a while after delivery.
//!
//! A stream that breaks loses the contents of its buffers, and clients of this protocol never confirm what they have
//! read. Therefore everything except events is remembered for some minutes and delivered again to a returning reader;
//! clients ignore repetitions. Of an answer only the request's id is remembered, because the record holds the rest.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use toolpost_a2e::{Body, Message, ToolEventMessage};
use toolpost_core::{EventDelivery, RecordedResult, SurfaceEntry, ToolFilter};

use super::audit::AuditedRequest;

/// The most small messages that wait. A peer with more unread messages does not read at all.
const MAX_MESSAGES: usize = 16_384;
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// The same limit for a peer without a handshake.
const MAX_STRANGERS_MESSAGES: usize = 64;
/// The most events that wait. A slower reader loses events.
const MAX_EVENTS: usize = 1_024;
const MAX_EVENT_BYTES: usize = 4 << 20;
/// The most bytes of answers that wait. A session with more gets no new calls.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The limits of the remembered items.
const MAX_GIVEN: usize = 1_024;
const GIVEN_FOR: Duration = Duration::from_secs(600);
/// The most bytes of remembered items that a returning reader gets, newest first.
const MAX_AGAIN_BYTES: usize = 16 << 20;
/// The memory of a message or an event besides its text.
const ENVELOPE: usize = 256;

pub(super) enum OutboxItem {
    Message(Arc<Message>),
    Event(ToolEventMessage),
    Answer(Box<AnsweredCall>),
    List(Box<OutboxToolList>),
}

/// The end of a call, on its way to the caller.
pub(super) struct AnsweredCall {
    /// The key under which the call began: the request's id, or a generated one if it had none.
    pub(super) key: String,
    pub(super) req_id: String,
    pub(super) tool: String,
    pub(super) answer: Arc<RecordedResult>,
    pub(super) events: Vec<ToolEventMessage>,
    /// Whether the tool belongs to a plugin.
    pub(super) is_of_plugin: bool,
}

/// A list of tools. Its entries are shared with the catalog until the list is written.
pub(super) struct OutboxToolList {
    pub(super) req_id: String,
    pub(super) filter: ToolFilter,
    pub(super) tools: Vec<SurfaceEntry>,
    /// The audit entry. It is completed when the list is written, because only then its size is known.
    pub(super) asked: Option<AuditedRequest>,
}

#[derive(Clone)]
pub(super) enum ResendItem {
    Message(Arc<Message>),
    Answer(String),
    List(String, ToolFilter),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboxReaderPolicy {
    /// A single reader: a pipe or a link.
    One,
    /// One reader at a time; a new one replaces the one before.
    MayReturn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboxIdClaim {
    New,
    /// The same call is running; its answer will follow.
    Same,
    /// Another call is running under this id.
    Other,
    /// Too many bytes wait to be read.
    Behind,
}

/// A small message was refused: thousands are waiting, or the outbox is closed.
#[derive(Debug)]
pub(super) struct OutboxOverflow;

#[derive(Debug)]
pub(super) enum ListNotTaken {
    Flooded,
    /// Too many bytes wait to be read.
    Behind,
}

pub(super) struct Outbox {
    readers: OutboxReaderPolicy,
    state: Mutex<OutboxState>,
    ready: Notify,
    settled: Notify,
    drained: Notify,
}

#[derive(Default)]
struct OutboxState {
    queue: VecDeque<OutboxItem>,
    messages: usize,
    message_bytes: usize,
    events: usize,
    event_bytes: usize,
    answer_bytes: usize,
    /// The running requests with a digest of their content; `None` if only the record has the content.
    under_way: HashMap<String, Option<[u8; 32]>>,
    given: VecDeque<DeliveredItem>,
    last: u64,
    reader: u64,
    attached: bool,
    closed: bool,
}

struct DeliveredItem {
    number: u64,
    at: Instant,
    size: usize,
    again: ResendItem,
}

/// A new reader.
pub(super) struct OutboxAttachment {
    pub(super) reader: u64,
    /// The items that an earlier reader may have lost, with their numbers.
    pub(super) again: Vec<(u64, ResendItem)>,
}

impl Outbox {
    /// `first` is the first number of its items. A resumed session must not reuse the numbers of its earlier run.
    pub(super) fn new(readers: OutboxReaderPolicy, first: u64) -> Self {
        Self {
            readers,
            state: Mutex::new(OutboxState {
                last: first,
                ..OutboxState::default()
            }),
            ready: Notify::new(),
            settled: Notify::new(),
            drained: Notify::new(),
        }
    }

    fn put(&self, mut state: MutexGuard<'_, OutboxState>, item: OutboxItem) {
        state.queue.push_back(item);
        drop(state);
        self.ready.notify_one();
    }

    /// Adds a small message: an answer of the protocol itself, an error, a notice.
    pub(super) fn push(&self, mut message: Message) -> Result<(), OutboxOverflow> {
        message.ts.get_or_insert_with(crate::clock::unix_seconds);
        self.push_shared(Arc::new(message), MAX_MESSAGES)
    }

    /// Adds a small message for a peer without a handshake.
    pub(super) fn push_to_stranger(&self, mut message: Message) -> Result<(), OutboxOverflow> {
        message.ts.get_or_insert_with(crate::clock::unix_seconds);
        self.push_shared(Arc::new(message), MAX_STRANGERS_MESSAGES)
    }

    fn push_shared(&self, message: Arc<Message>, most: usize) -> Result<(), OutboxOverflow> {
        let mut state = self.state.lock();
        if state.messages >= most || state.message_bytes > MAX_MESSAGE_BYTES || state.closed {
            return Err(OutboxOverflow);
        }
        state.messages += 1;
        state.message_bytes += size_of_message(&message);
        self.put(state, OutboxItem::Message(message));
        Ok(())
    }

    /// Adds the answer to a claimed request.
    pub(super) fn push_reply(&self, key: &str, message: Message) -> Result<(), OutboxOverflow> {
        let pushed = self.push(message);
        self.give_up(key);
        pushed
    }

    pub(super) fn push_list(&self, list: OutboxToolList) -> Result<(), ListNotTaken> {
        let mut state = self.state.lock();
        if state.messages >= MAX_MESSAGES || state.closed {
            return Err(ListNotTaken::Flooded);
        }
        // A list consists of pointers until it is written, but still has one for every tool.
        if state.answer_bytes > MAX_ANSWER_BYTES {
            return Err(ListNotTaken::Behind);
        }
        state.messages += 1;
        state.answer_bytes += list.tools.len() * size_of::<SurfaceEntry>();
        self.put(state, OutboxItem::List(Box::new(list)));
        Ok(())
    }

    pub(super) fn push_event(&self, event: ToolEventMessage) -> EventDelivery {
        let mut state = self.state.lock();
        if state.events >= MAX_EVENTS || state.event_bytes > MAX_EVENT_BYTES || state.closed {
            return EventDelivery::Lost;
        }
        state.events += 1;
        state.event_bytes += size_of_event(&event);
        self.put(state, OutboxItem::Event(event));
        EventDelivery::Taken
    }

    /// Waits until there is room again, for senders that can wait.
    pub(super) async fn room(&self) {
        loop {
            let changed = self.drained.notified();
            if self.state.lock().has_room() {
                return;
            }
            changed.await;
        }
    }

    /// Claims an id for a request. Without `digest`, only the record has the content of the request.
    pub(super) fn begin(&self, key: &str, digest: Option<[u8; 32]>) -> OutboxIdClaim {
        let mut state = self.state.lock();
        match state.under_way.get(key) {
            Some(earlier) if earlier.is_none() || *earlier == digest => OutboxIdClaim::Same,
            Some(_) => OutboxIdClaim::Other,
            None if state.answer_bytes > MAX_ANSWER_BYTES => OutboxIdClaim::Behind,
            None => {
                state.under_way.insert(key.to_owned(), digest);
                OutboxIdClaim::New
            }
        }
    }

    /// Delivers a remembered answer again. Returns whether the answer is remembered.
    pub(super) fn repeat(&self, req_id: &str) -> bool {
        let answers = |message: &Arc<Message>| message.body.req_id() == Some(req_id);
        let state = self.state.lock();
        if state
            .queue
            .iter()
            .any(|item| matches!(item, OutboxItem::Message(message) if answers(message)))
        {
            return true;
        }
        let found = state
            .given
            .iter()
            .rev()
            .find_map(|given| match &given.again {
                ResendItem::Message(message) if answers(message) => Some(Arc::clone(message)),
                ResendItem::Message(_) | ResendItem::Answer(_) | ResendItem::List(..) => None,
            });
        drop(state);
        found.is_some_and(|message| self.push_shared(message, MAX_MESSAGES).is_ok())
    }

    pub(super) fn is_under_way(&self, key: &str) -> bool {
        self.state.lock().under_way.contains_key(key)
    }

    /// Whether everything was delivered and nothing more can follow.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.closed && state.queue.is_empty()
    }

    /// Whether nothing waits to be delivered, first or again.
    pub(super) fn is_empty(&self) -> bool {
        let mut state = self.state.lock();
        state.forget();
        state.queue.is_empty() && state.given.is_empty()
    }

    /// Releases a request that was answered in another way or gets no answer.
    pub(super) fn give_up(&self, key: &str) {
        self.state.lock().under_way.remove(key);
        self.settled.notify_waiters();
    }

    /// Adds the end of a call. It is never refused: the limit is enforced when calls begin.
    pub(super) fn push_answer(&self, answered: AnsweredCall) {
        let mut state = self.state.lock();
        state.under_way.remove(&answered.key);
        let is_settled = state.under_way.is_empty();
        state.answer_bytes += answered.answer.json().len();
        self.put(state, OutboxItem::Answer(Box::new(answered)));
        if is_settled {
            self.settled.notify_waiters();
        }
    }

    /// Waits until no call is running.
    pub(super) async fn settled(&self) {
        loop {
            let changed = self.settled.notified();
            if self.state.lock().under_way.is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Closes the outbox: its reader ends after the pending items.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_one();
        self.drained.notify_waiters();
    }

    /// Whether a reader is connected or a call is running.
    pub(super) fn is_in_use(&self) -> bool {
        let state = self.state.lock();
        state.attached || !state.under_way.is_empty()
    }

    /// Remembers answers that the last host may not have delivered.
    pub(super) fn remember(&self, answers: impl Iterator<Item = String>) {
        let mut state = self.state.lock();
        for req_id in answers {
            state.last += 1;
            let number = state.last;
            let at = Instant::now();
            state.given.push_back(DeliveredItem {
                number,
                at,
                size: ENVELOPE,
                again: ResendItem::Answer(req_id),
            });
        }
    }

    /// Connects a reader and disconnects an earlier one. `after` is the last number that the reader has received.
    pub(super) fn attach(&self, after: Option<u64>) -> OutboxAttachment {
        let mut state = self.state.lock();
        state.reader += 1;
        state.attached = true;
        state.forget();
        let mut size = 0;
        let unread = state.given.iter().rev().take_while(|given| {
            size += given.size;
            size <= MAX_AGAIN_BYTES && after.is_none_or(|after| given.number > after)
        });
        let mut again: Vec<_> = unread
            .map(|given| (given.number, given.again.clone()))
            .collect();
        again.reverse();
        let reader = state.reader;
        drop(state);
        self.ready.notify_waiters();
        OutboxAttachment { reader, again }
    }

    /// Disconnects a reader, unless another one has replaced it.
    pub(super) fn detach(&self, reader: u64) {
        let mut state = self.state.lock();
        if state.reader == reader {
            state.attached = false;
        }
    }

    /// Waits for the next items and returns them with their numbers, up to about `room` bytes. `None`: everything was
    /// delivered, or another reader has taken over.
    pub(super) async fn take(&self, reader: u64, room: usize) -> Option<Vec<(u64, OutboxItem)>> {
        loop {
            let changed = self.ready.notified();
            {
                let mut state = self.state.lock();
                if state.reader != reader {
                    // `notify_one` may have chosen this reader while its successor waits, so the wake-up is passed on.
                    drop(state);
                    self.ready.notify_one();
                    return None;
                }
                if !state.queue.is_empty() {
                    let batch = state.give_out(room, self.readers);
                    drop(state);
                    self.drained.notify_waiters();
                    return Some(batch);
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl OutboxState {
    fn has_room(&self) -> bool {
        let is_free =
            self.messages < MAX_MESSAGES / 2 && self.message_bytes < MAX_MESSAGE_BYTES / 2;
        is_free || self.closed
    }

    fn give_out(&mut self, room: usize, readers: OutboxReaderPolicy) -> Vec<(u64, OutboxItem)> {
        let mut batch = Vec::with_capacity(self.queue.len().min(64));
        let mut size = 0;
        while size < room
            && let Some(item) = self.queue.pop_front()
        {
            let its_size = match &item {
                OutboxItem::Message(message) => {
                    let length = size_of_message(message);
                    self.messages -= 1;
                    self.message_bytes -= length;
                    length
                }
                OutboxItem::Event(event) => {
                    let length = size_of_event(event);
                    self.events -= 1;
                    self.event_bytes -= length;
                    length
                }
                OutboxItem::Answer(answered) => {
                    let length = answered.answer.json().len();
                    self.answer_bytes -= length;
                    length
                }
                OutboxItem::List(list) => {
                    self.messages -= 1;
                    self.answer_bytes -= list.tools.len() * size_of::<SurfaceEntry>();
                    list.tools.len() * 512
                }
            };
            size += its_size;
            self.last += 1;
            if readers == OutboxReaderPolicy::MayReturn {
                self.note(&item, its_size);
            }
            batch.push((self.last, item));
        }
        batch
    }

    fn note(&mut self, item: &OutboxItem, size: usize) {
        let again = match item {
            OutboxItem::Event(_) => return,
            OutboxItem::Message(message) => ResendItem::Message(Arc::clone(message)),
            // An answer without a request id cannot be recognised as a repetition, so it is not delivered again.
            OutboxItem::Answer(answered) if answered.req_id.is_empty() => return,
            OutboxItem::Answer(answered) => ResendItem::Answer(answered.req_id.clone()),
            OutboxItem::List(list) => ResendItem::List(list.req_id.clone(), list.filter.clone()),
        };
        if self.given.len() >= MAX_GIVEN {
            // Small messages are dropped first, so that thousands of pongs do not evict an answer.
            let is_message = |given: &DeliveredItem| matches!(given.again, ResendItem::Message(_));
            let least = self.given.iter().position(is_message).unwrap_or_default();
            self.given.remove(least);
        }
        self.given.push_back(DeliveredItem {
            number: self.last,
            at: Instant::now(),
            size,
            again,
        });
    }

    fn forget(&mut self) {
        while self
            .given
            .front()
            .is_some_and(|given| given.at.elapsed() > GIVEN_FOR)
        {
            self.given.pop_front();
        }
    }
}

/// The approximate size of a message. Messages of other capabilities can have any size.
fn size_of_message(message: &Message) -> usize {
    let text = match &message.body {
        Body::Error(error) => {
            error.message.len() + error.detail.values().map(size_of_value).sum::<usize>()
        }
        Body::ToolListResponse(list) => list.tools.len() * 1_024,
        Body::ToolCancelResponse(cancel) => cancel.call_id.len(),
        Body::Other(other) => other.kind.len() + size_of_fields(&other.fields),
        _ => 0,
    };
    let heading = message.id.len() + message.version.as_ref().map_or(0, String::len);
    ENVELOPE + heading + message.body.req_id().map_or(0, str::len) + text
}

pub(super) fn size_of_event(event: &ToolEventMessage) -> usize {
    ENVELOPE + event.data.values().map(size_of_value).sum::<usize>()
}

fn size_of_value(value: &Value) -> usize {
    16 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(size_of_value).sum(),
        Value::Object(map) => size_of_fields(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn size_of_fields(fields: &Map<String, Value>) -> usize {
    fields
        .iter()
        .map(|(name, value)| name.len() + size_of_value(value))
        .sum()
}
