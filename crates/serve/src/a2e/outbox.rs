//! What a session still has to hear: bounded, in order, and kept for a while after it was given out.
//!
//! A stream that breaks takes with it whatever lay in its buffers, and a client of this protocol never says what
//! it has read. So everything but events is remembered for some minutes and given out again to a reader that
//! comes back; clients ignore what they have seen. Of answers only the request's id is remembered: the record
//! has the rest.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use toolpost_a2e::{Message, ToolEvent};
use toolpost_core::{Answer, Heard, Listing, ToolFilter};

use super::audit::Asked;

/// Small messages that may wait. A peer that has more of them unread sends without reading.
const MAX_MESSAGES: usize = 16_384;
/// Events that may wait. A reader further behind loses some.
const MAX_EVENTS: usize = 1_024;
/// Answers that may wait, in bytes. A session further behind is not given new calls.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// How much is remembered, and how long.
const MAX_GIVEN: usize = 1_024;
const GIVEN_FOR: Duration = Duration::from_secs(600);

/// Something to be told.
pub(super) enum Item {
    Message(Arc<Message>),
    Event(ToolEvent),
    Answer(Box<AnsweredCall>),
    List(Box<Listed>),
}

/// A call's end, on its way to whoever asked.
pub(super) struct AnsweredCall {
    pub(super) req_id: String,
    pub(super) tool: String,
    pub(super) answer: Arc<Answer>,
    pub(super) events: Vec<ToolEvent>,
}

/// A list of tools, shared with the catalog until it is written.
pub(super) struct Listed {
    pub(super) req_id: String,
    pub(super) filter: ToolFilter,
    pub(super) tools: Vec<Listing>,
    /// Noted when the list is written, which is when its size is known.
    pub(super) asked: Option<Asked>,
}

/// Something to be told again.
#[derive(Clone)]
pub(super) enum Again {
    Message(Arc<Message>),
    Answer(String),
    List(String, ToolFilter),
}

/// Whether readers may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// One, once: a pipe or a link.
    One,
    /// One at a time, each taking over from the one before.
    MayReturn,
}

/// What taking a request id for a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    New,
    /// The same call is under way; its answer will come.
    Same,
    /// Another call is under way under this id.
    Other,
    /// Too much is waiting to be read.
    Behind,
}

/// A small message could not be taken: thousands are waiting.
#[derive(Debug)]
pub(super) struct Flooded;

pub(super) struct Outbox {
    readers: Readers,
    state: Mutex<State>,
    ready: Notify,
    settled: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Item>,
    messages: usize,
    events: usize,
    answer_bytes: usize,
    /// Calls whose answer has not been put in yet, with a digest of what was asked.
    under_way: HashMap<String, u64>,
    given: VecDeque<Given>,
    last: u64,
    /// Which reader is the reader.
    reader: u64,
    attached: bool,
    closed: bool,
}

struct Given {
    number: u64,
    at: Instant,
    again: Again,
}

/// A reader that was let in.
pub(super) struct Attached {
    pub(super) reader: u64,
    /// What an earlier reader may have lost, with its numbers.
    pub(super) again: Vec<(u64, Again)>,
}

impl Outbox {
    pub(super) fn new(readers: Readers) -> Self {
        Self { readers, state: Mutex::default(), ready: Notify::new(), settled: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mut state: MutexGuard<'_, State>, item: Item) {
        state.queue.push_back(item);
        drop(state);
        self.ready.notify_one();
    }

    /// A small message: an answer of the protocol itself, an error, a notice.
    pub(super) fn push(&self, message: Message) -> Result<(), Flooded> {
        let mut state = self.state();
        if state.messages >= MAX_MESSAGES {
            return Err(Flooded);
        }
        state.messages += 1;
        self.put(state, Item::Message(Arc::new(message)));
        Ok(())
    }

    pub(super) fn push_list(&self, list: Listed) -> Result<(), Flooded> {
        let mut state = self.state();
        // A list is pointers until it is written, yet each takes a place for every tool.
        if state.messages >= MAX_MESSAGES || state.answer_bytes > MAX_ANSWER_BYTES {
            return Err(Flooded);
        }
        state.messages += 1;
        state.answer_bytes += list.tools.len() * size_of::<Listing>();
        self.put(state, Item::List(Box::new(list)));
        Ok(())
    }

    pub(super) fn push_event(&self, event: ToolEvent) -> Heard {
        let mut state = self.state();
        if state.events >= MAX_EVENTS || state.closed {
            return Heard::Lost;
        }
        state.events += 1;
        self.put(state, Item::Event(event));
        Heard::Taken
    }

    /// Takes an id for a call.
    pub(super) fn begin(&self, req_id: &str, digest: u64) -> Begun {
        let mut state = self.state();
        match state.under_way.get(req_id) {
            Some(earlier) if *earlier == digest => Begun::Same,
            Some(_) => Begun::Other,
            None if state.answer_bytes > MAX_ANSWER_BYTES => Begun::Behind,
            None => {
                state.under_way.insert(req_id.to_owned(), digest);
                Begun::New
            }
        }
    }

    pub(super) fn is_under_way(&self, req_id: &str) -> bool {
        self.state().under_way.contains_key(req_id)
    }

    /// A call that gets no answer of its own after all.
    pub(super) fn give_up(&self, req_id: &str) {
        self.state().under_way.remove(req_id);
        self.settled.notify_waiters();
    }

    /// A call's end. Never refused: how much may wait is seen to when calls begin.
    pub(super) fn push_answer(&self, answered: AnsweredCall) {
        let mut state = self.state();
        state.under_way.remove(&answered.req_id);
        let is_settled = state.under_way.is_empty();
        state.answer_bytes += answered.answer.json().len();
        self.put(state, Item::Answer(Box::new(answered)));
        if is_settled {
            self.settled.notify_waiters();
        }
    }

    /// Resolves when no call is under way.
    pub(super) async fn settled(&self) {
        loop {
            let changed = self.settled.notified();
            if self.state().under_way.is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Nothing more will come: the reader ends when it has read what is there.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.ready.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Whether somebody reads, or something is under way.
    pub(super) fn is_in_use(&self) -> bool {
        let state = self.state();
        state.attached || !state.under_way.is_empty()
    }

    /// What the last host may not have delivered.
    pub(super) fn remember(&self, answers: impl Iterator<Item = String>) {
        let mut state = self.state();
        let at = Instant::now();
        state.given.extend(answers.map(|req_id| Given { number: 0, at, again: Again::Answer(req_id) }));
    }

    /// Lets a reader in. An earlier one ends. `after` is the last number it knows to have read.
    pub(super) fn attach(&self, after: Option<u64>) -> Attached {
        let mut state = self.state();
        state.reader += 1;
        state.attached = true;
        state.forget();
        let unread = state.given.iter().filter(|given| after.is_none_or(|after| given.number > after));
        let again = unread.map(|given| (given.number, given.again.clone())).collect();
        let reader = state.reader;
        drop(state);
        self.ready.notify_waiters();
        Attached { reader, again }
    }

    /// A reader is gone. Another may be in its place already.
    pub(super) fn detach(&self, reader: u64) {
        let mut state = self.state();
        if state.reader == reader {
            state.attached = false;
        }
    }

    /// The next things to be told, numbered; as many as are there and about as much as `room` says. `None`: all
    /// was told, or another reader has taken over.
    pub(super) async fn take(&self, reader: u64, room: usize) -> Option<Vec<(u64, Item)>> {
        loop {
            let changed = self.ready.notified();
            {
                let mut state = self.state();
                if state.reader != reader {
                    // The wake-up may have been meant for whoever took over.
                    drop(state);
                    self.ready.notify_one();
                    return None;
                }
                if !state.queue.is_empty() {
                    return Some(state.give_out(room, self.readers));
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl State {
    fn give_out(&mut self, room: usize, readers: Readers) -> Vec<(u64, Item)> {
        let mut batch = Vec::with_capacity(self.queue.len().min(64));
        let mut size = 0;
        while size < room
            && let Some(item) = self.queue.pop_front()
        {
            size += match &item {
                Item::Message(_) => {
                    self.messages -= 1;
                    256
                }
                Item::Event(_) => {
                    self.events -= 1;
                    256
                }
                Item::Answer(answered) => {
                    let length = answered.answer.json().len();
                    self.answer_bytes -= length;
                    length
                }
                Item::List(list) => {
                    self.messages -= 1;
                    self.answer_bytes -= list.tools.len() * size_of::<Listing>();
                    list.tools.len() * 512
                }
            };
            self.last += 1;
            if readers == Readers::MayReturn {
                self.note(self.last, &item);
            }
            batch.push((self.last, item));
        }
        batch
    }

    fn note(&mut self, number: u64, item: &Item) {
        let again = match item {
            Item::Event(_) => return,
            Item::Message(message) => Again::Message(Arc::clone(message)),
            // What came without an id cannot be told apart from anything else.
            Item::Answer(answered) if answered.req_id.is_empty() => return,
            Item::Answer(answered) => Again::Answer(answered.req_id.clone()),
            Item::List(list) => Again::List(list.req_id.clone(), list.filter.clone()),
        };
        if self.given.len() >= MAX_GIVEN {
            self.given.pop_front();
        }
        self.given.push_back(Given { number, at: Instant::now(), again });
    }

    fn forget(&mut self) {
        while self.given.front().is_some_and(|given| given.at.elapsed() > GIVEN_FOR) {
            self.given.pop_front();
        }
    }
}
