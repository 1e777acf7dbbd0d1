//! The arguments of a call in every state that its records have: as the model sent them, and after each change.
//!
//! The export names them, and `toolpost journal show` prints the differences.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    hooks::InputMutation,
    record::{body::CallRecordBody, journal::StoredRecord, story::tells_of_its_way},
};

/// The arguments of a call, from those that the model sent to the last ones. Everything in it has passed redaction.
#[derive(Debug, Default)]
pub struct InputTrail {
    pub(super) changes: Vec<(InputMutation, Timestamp)>,
    /// One more than there are changes. `None`: the records do not have it.
    states: Vec<Option<Value>>,
}

/// One change of a call's arguments.
#[derive(Clone, Copy, Debug)]
pub struct InputChange<'a> {
    /// `hook`, `permission_prompt`, or `runtime` for the operator's settings.
    pub source_type: &'a str,
    /// Which one.
    pub source: &'a str,
    /// The fields at the top of the arguments that differ.
    pub changed_fields: &'a [String],
    /// Why.
    pub reason: &'a str,
    /// The arguments before it, where the records have them.
    pub from: Option<&'a Value>,
    /// The arguments after it, where the records have them.
    pub to: Option<&'a Value>,
}

impl InputTrail {
    /// Reads the records of one call, oldest first.
    pub fn of(rows: &[StoredRecord]) -> Self {
        let mut trail = Self::default();
        for row in rows.iter().filter(|row| tells_of_its_way(row.record.kind)) {
            if let Ok(way) = row.record.read_body::<CallRecordBody<'_>>() {
                let begin = way.begin(row.record.at);
                // What cannot be read is left out.
                let _ = trail.follow(&way, begin);
            }
        }
        trail
    }

    /// Takes in what a record tells of the arguments. `begin` is the moment that its times count from.
    pub(super) fn follow(
        &mut self,
        way: &CallRecordBody<'_>,
        begin: Timestamp,
    ) -> serde_json::Result<()> {
        if let Some(mutations) = &way.mutations {
            extend(&mut self.changes, mutations.read()?, begin, |change| {
                (change.at_us, change.source.clone())
            });
        }
        for place in 0..self.changes.len() {
            if let Some(before) = self.changes[place].0.arguments_before.take() {
                self.note(place, before);
            }
        }
        let newest = self.changes.len();
        if let Some(call) = &way.call {
            if let Some(sent) = &call.model_arguments {
                self.note(0, sent.read_as()?);
            }
            if let Some(arguments) = &call.arguments {
                let state = call.model_arguments.as_ref().map_or(0, |_| newest);
                self.note(state, arguments.read_as()?);
            }
        }
        if let Some(arguments) = &way.arguments {
            self.note(newest, arguments.read_as()?);
        }
        Ok(())
    }

    fn note(&mut self, state: usize, arguments: Value) {
        if self.states.len() <= state {
            self.states.resize(state + 1, None);
        }
        self.states[state] = Some(arguments);
    }

    /// The arguments after so many changes.
    pub(super) fn state(&self, changes: usize) -> Option<&Value> {
        self.states.get(changes)?.as_ref()
    }

    /// What the model sent.
    pub fn sent(&self) -> Option<&Value> {
        self.state(0)
    }

    /// The arguments after the last change.
    pub fn last(&self) -> Option<&Value> {
        self.state(self.changes.len())
    }

    /// The changes, oldest first.
    pub fn changes(&self) -> impl Iterator<Item = InputChange<'_>> {
        self.changes
            .iter()
            .enumerate()
            .map(|(place, (change, _))| InputChange {
                source_type: &change.source_type,
                source: &change.source,
                changed_fields: &change.changed_fields,
                reason: &change.reason,
                from: self.state(place),
                to: self.state(place + 1),
            })
    }
}

impl CallRecordBody<'_> {
    /// The moment that its times count from: the request, or the start of the host that took the call up again. The
    /// last stage was reached just before the record was written.
    pub(super) fn begin(&self, written_at: Timestamp) -> Timestamp {
        let newest = self.transitions.last().map_or(0, |passed| passed.at_us);
        let since = SignedDuration::from_micros(i64::try_from(newest).unwrap_or_default());
        written_at.checked_sub(since).unwrap_or(written_at)
    }
}

/// Something that happened at a moment of a call.
pub(super) trait AtMicros {
    /// When, in microseconds from the request on.
    fn at_us(&self) -> u64;
}

/// Takes in a list that a record tells. Each record of a host holds all that came before it there, so the list takes
/// the place of what that host told; what an earlier host told stays in front of it.
pub(super) fn extend<T: AtMicros, K: PartialEq>(
    known: &mut Vec<(T, Timestamp)>,
    told: Vec<T>,
    begin: Timestamp,
    key: impl Fn(&T) -> K,
) {
    let Some(first) = told.first().map(&key) else {
        return;
    };
    let same = known.iter().position(|(one, _)| key(one) == first);
    known.truncate(same.unwrap_or(known.len()));
    known.extend(told.into_iter().map(|one| {
        let at = super::moment(begin, one.at_us());
        (one, at)
    }));
}
