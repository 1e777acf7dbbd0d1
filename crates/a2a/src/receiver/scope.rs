//! Response streams: where a call's id means something.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

/// What a response stream is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope<'a> {
    /// Nothing: payloads and parts that stand alone.
    Bare,
    Task(&'a str),
    Message(&'a str),
    /// The id of a JSON-RPC request, as it is written.
    Request(&'a str),
}

/// The streams that hold calls, by what they are known by.
#[derive(Debug, Default)]
pub(super) struct Streams {
    bare: Option<u64>,
    tasks: HashMap<Box<str>, u64>,
    messages: HashMap<Box<str>, u64>,
    requests: HashMap<Box<str>, u64>,
    streams: HashMap<u64, Stream>,
    next: u64,
}

impl Streams {
    pub(super) fn number(&self, scope: Scope<'_>) -> Option<u64> {
        match scope {
            Scope::Bare => self.bare,
            Scope::Task(name) => self.tasks.get(name).copied(),
            Scope::Message(name) => self.messages.get(name).copied(),
            Scope::Request(name) => self.requests.get(name).copied(),
        }
    }

    pub(super) fn get(&self, scope: Scope<'_>) -> Option<&Stream> {
        self.number(scope)
            .and_then(|number| self.streams.get(&number))
    }

    pub(super) fn by_number(&mut self, number: u64) -> Option<&mut Stream> {
        self.streams.get_mut(&number)
    }

    pub(super) fn get_mut(&mut self, scope: Scope<'_>) -> Option<&mut Stream> {
        let number = self.number(scope)?;
        self.streams.get_mut(&number)
    }

    /// The stream of this name, new if it is. `step` is the first call that a step of it can have.
    pub(super) fn entry(&mut self, scope: Scope<'_>, step: u64) -> (u64, &mut Stream) {
        let number = self.number(scope).unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            match scope {
                Scope::Bare => self.bare = Some(number),
                Scope::Task(name) => drop(self.tasks.insert(name.into(), number)),
                Scope::Message(name) => drop(self.messages.insert(name.into(), number)),
                Scope::Request(name) => drop(self.requests.insert(name.into(), number)),
            }
            number
        });
        (
            number,
            self.streams
                .entry(number)
                .or_insert_with(|| Stream::new(scope, step)),
        )
    }

    /// Forgets a stream that holds no call any more.
    pub(super) fn forget(&mut self, number: u64) {
        let Some(stream) = self.streams.remove(&number) else {
            return;
        };
        match stream.name {
            Name::Bare => self.bare = None,
            Name::Task(name) => drop(self.tasks.remove(&name)),
            Name::Message(name) => drop(self.messages.remove(&name)),
            Name::Request(name) => drop(self.requests.remove(&name)),
        }
    }
}

/// A scope that owns its text.
#[derive(Debug)]
enum Name {
    Bare,
    Task(Box<str>),
    Message(Box<str>),
    Request(Box<str>),
}

/// One response stream. It exists while it holds calls.
#[derive(Debug)]
pub(super) struct Stream {
    name: Name,
    /// Where each id leads.
    pub(super) slots: HashMap<Box<str>, Slot>,
    /// Questions to people, by their id, with the call that each is about.
    pub(super) approvals: HashMap<Box<str>, u64>,
    /// Calls that have not ended.
    pub(super) open: BTreeSet<u64>,
    /// The first call of the step that runs.
    pub(super) step: u64,
    /// Calls that are held, open or not.
    pub(super) held: usize,
}

impl Stream {
    fn new(scope: Scope<'_>, step: u64) -> Self {
        let name = match scope {
            Scope::Bare => Name::Bare,
            Scope::Task(name) => Name::Task(name.into()),
            Scope::Message(name) => Name::Message(name.into()),
            Scope::Request(name) => Name::Request(name.into()),
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

    /// What it is known by.
    pub(super) fn scope(&self) -> Scope<'_> {
        match &self.name {
            Name::Bare => Scope::Bare,
            Name::Task(name) => Scope::Task(name),
            Name::Message(name) => Scope::Message(name),
            Name::Request(name) => Scope::Request(name),
        }
    }
}

/// The calls that one id has meant.
#[derive(Debug)]
pub(super) struct Slot {
    /// The one that events go to.
    pub(super) current: u64,
    /// Others under the same id, by their fingerprints: a peer reused the id, and a replay may come back to them.
    pub(super) others: Option<HashMap<u64, u64>>,
}

impl Slot {
    /// Forgets a call that was taken out. Says whether the id leads nowhere now.
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
