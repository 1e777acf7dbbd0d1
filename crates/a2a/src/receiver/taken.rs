//! What is remembered of calls that were taken out, so that a replay does not bring them back. A fixed number of
//! fingerprints, the oldest forgotten first: nothing here grows with what a peer sends.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
};

use super::scope::ResponseStreamScope;

#[derive(Debug, Default)]
pub(super) struct TakenCallMemory {
    hasher: RandomState,
    known: HashMap<u64, TakenCallKnowledge>,
    oldest: VecDeque<u64>,
}

/// What is known of an id or of one call under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenCallKnowledge {
    /// The id was taken before anybody told the call itself, so that a call that comes late belongs to it.
    Undescribed,
    Described,
}

/// What an event about a call that is not held can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenCallMatch {
    /// Nothing was taken under this id, as far as is remembered.
    Nothing,
    /// The same call was, or one that nobody had described.
    Same,
    /// Another one was.
    Other,
}

impl TakenCallMemory {
    /// Remembers a call, at most so many of them.
    pub(super) fn remember(
        &mut self,
        scope: ResponseStreamScope<'_>,
        id: &str,
        call: u64,
        described: bool,
        most: usize,
    ) {
        let memory = if described {
            TakenCallKnowledge::Described
        } else {
            TakenCallKnowledge::Undescribed
        };
        for key in [
            self.hasher.hash_one((scope, id)),
            self.hasher.hash_one((scope, id, call)),
        ] {
            if self.known.insert(key, memory).is_none() {
                self.oldest.push_back(key);
            }
        }
        while self.oldest.len() > most.saturating_mul(2) {
            if let Some(key) = self.oldest.pop_front() {
                self.known.remove(&key);
            }
        }
    }

    pub(super) fn knows(&self, scope: ResponseStreamScope<'_>, id: &str) -> bool {
        !self.known.is_empty() && self.known.contains_key(&self.hasher.hash_one((scope, id)))
    }

    /// What a whole call with this fingerprint is; without one, nothing tells it from those that were taken.
    pub(super) fn recall(
        &self,
        scope: ResponseStreamScope<'_>,
        id: &str,
        call: Option<u64>,
    ) -> TakenCallMatch {
        match self.known.get(&self.hasher.hash_one((scope, id))) {
            None => TakenCallMatch::Nothing,
            Some(TakenCallKnowledge::Undescribed) => TakenCallMatch::Same,
            Some(TakenCallKnowledge::Described) => match call {
                Some(call)
                    if !self
                        .known
                        .contains_key(&self.hasher.hash_one((scope, id, call))) =>
                {
                    TakenCallMatch::Other
                }
                Some(_) | None => TakenCallMatch::Same,
            },
        }
    }
}
