//! Remembers calls that were taken out, so that a replay does not bring them back. It keeps a fixed number of
//! fingerprints and drops the oldest first, so its memory does not grow with the events of a peer.

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

/// The state of an id, or of one call under it, when the call was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenCallKnowledge {
    /// No event had described the call, so a late `tool-call` belongs to it.
    Undescribed,
    Described,
}

/// The relation of an event to the calls that were taken out under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenCallMatch {
    /// No remembered call has this id.
    Nothing,
    /// The same call was taken out, or a call that no event had described.
    Same,
    /// Another call was taken out under this id.
    Other,
}

impl TakenCallMemory {
    /// Remembers a call and keeps at most `most` of them.
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

    /// Matches a `tool-call` event by its fingerprint. Without a fingerprint it counts as a repetition.
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
