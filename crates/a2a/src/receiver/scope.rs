//! Response streams. The id of a call is unique within one of them.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ResponseStreamScope<'a> {
    /// The common stream of payloads and parts that stand alone.
    Bare,
    Task(&'a str),
    Message(&'a str),
    /// The id of a JSON-RPC request, as written.
    Request(&'a str),
}

/// The response streams that hold calls, by identity and by number.
#[derive(Debug, Default)]
pub(super) struct ResponseStreamIndex {
    bare: Option<u64>,
    tasks: HashMap<Box<str>, u64>,
    messages: HashMap<Box<str>, u64>,
    requests: HashMap<Box<str>, u64>,
    streams: HashMap<u64, ResponseStream>,
    next: u64,
}

impl ResponseStreamIndex {
    pub(super) fn number(&self, scope: ResponseStreamScope<'_>) -> Option<u64> {
        match scope {
            ResponseStreamScope::Bare => self.bare,
            ResponseStreamScope::Task(name) => self.tasks.get(name).copied(),
            ResponseStreamScope::Message(name) => self.messages.get(name).copied(),
            ResponseStreamScope::Request(name) => self.requests.get(name).copied(),
        }
    }

    pub(super) fn get(&self, scope: ResponseStreamScope<'_>) -> Option<&ResponseStream> {
        self.number(scope)
            .and_then(|number| self.streams.get(&number))
    }

    pub(super) fn by_number(&mut self, number: u64) -> Option<&mut ResponseStream> {
        self.streams.get_mut(&number)
    }

    pub(super) fn get_mut(
        &mut self,
        scope: ResponseStreamScope<'_>,
    ) -> Option<&mut ResponseStream> {
        let number = self.number(scope)?;
        self.streams.get_mut(&number)
    }

    /// The stream of this scope, created if needed. `step` is the first call that a step of it can have.
    pub(super) fn entry(
        &mut self,
        scope: ResponseStreamScope<'_>,
        step: u64,
    ) -> (u64, &mut ResponseStream) {
        let number = self.number(scope).unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            match scope {
                ResponseStreamScope::Bare => self.bare = Some(number),
                ResponseStreamScope::Task(name) => {
                    self.tasks.insert(name.into(), number);
                }
                ResponseStreamScope::Message(name) => {
                    self.messages.insert(name.into(), number);
                }
                ResponseStreamScope::Request(name) => {
                    self.requests.insert(name.into(), number);
                }
            }
            number
        });
        (
            number,
            self.streams
                .entry(number)
                .or_insert_with(|| ResponseStream::new(scope, step)),
        )
    }

    /// Removes a stream that holds no calls.
    pub(super) fn forget(&mut self, number: u64) {
        let Some(stream) = self.streams.remove(&number) else {
            return;
        };
        match stream.name {
            OwnedStreamScope::Bare => self.bare = None,
            OwnedStreamScope::Task(name) => drop(self.tasks.remove(&name)),
            OwnedStreamScope::Message(name) => drop(self.messages.remove(&name)),
            OwnedStreamScope::Request(name) => drop(self.requests.remove(&name)),
        }
    }
}

#[derive(Debug)]
enum OwnedStreamScope {
    Bare,
    Task(Box<str>),
    Message(Box<str>),
    Request(Box<str>),
}

/// One response stream. It exists while it holds calls.
#[derive(Debug)]
pub(super) struct ResponseStream {
    name: OwnedStreamScope,
    /// The call or calls of each id.
    pub(super) slots: HashMap<Box<str>, CallIdEntry>,
    /// Open approval questions by id, with the call that each one is about.
    pub(super) approvals: HashMap<Box<str>, u64>,
    /// Calls that have not ended.
    pub(super) open: BTreeSet<u64>,
    /// The first call of the current step.
    pub(super) step: u64,
    /// The number of held calls, open or ended.
    pub(super) held: usize,
}

impl ResponseStream {
    fn new(scope: ResponseStreamScope<'_>, step: u64) -> Self {
        let name = match scope {
            ResponseStreamScope::Bare => OwnedStreamScope::Bare,
            ResponseStreamScope::Task(name) => OwnedStreamScope::Task(name.into()),
            ResponseStreamScope::Message(name) => OwnedStreamScope::Message(name.into()),
            ResponseStreamScope::Request(name) => OwnedStreamScope::Request(name.into()),
        };
        Self {
            name,
            slots: HashMap::new(),
            approvals: HashMap::new(),
            open: BTreeSet::new(),
            step,
            held: 0,
        }
    }

    pub(super) fn scope(&self) -> ResponseStreamScope<'_> {
        match &self.name {
            OwnedStreamScope::Bare => ResponseStreamScope::Bare,
            OwnedStreamScope::Task(name) => ResponseStreamScope::Task(name),
            OwnedStreamScope::Message(name) => ResponseStreamScope::Message(name),
            OwnedStreamScope::Request(name) => ResponseStreamScope::Request(name),
        }
    }
}

/// The calls that one id stands for.
#[derive(Debug)]
pub(super) struct CallIdEntry {
    /// The call that receives the events of this id.
    pub(super) current: u64,
    /// Other calls under the same id, by fingerprint. The peer reused the id, and a replay may return to these calls.
    pub(super) others: Option<HashMap<u64, u64>>,
}

impl CallIdEntry {
    /// Removes a call that was taken out. Returns whether the id stands for no call any more.
    pub(super) fn lets_go(&mut self, serial: u64) -> bool {
        let Some(others) = &mut self.others else {
            return self.current == serial;
        };
        others.retain(|_, other| *other != serial);
        if self.current == serial {
            let Some(last) = others.values().max().copied() else {
                return true;
            };
            others.retain(|_, other| *other != last);
            self.current = last;
        }
        if others.is_empty() {
            self.others = None;
        }
        false
    }
}
