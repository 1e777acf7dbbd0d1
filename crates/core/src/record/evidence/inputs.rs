//! The arguments of a call in every state that its records have: the model input, and the arguments after each change.
//!
//! The export names them, and `toolpost journal show` prints the differences.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    hooks::InputMutation,
    record::{body::CallRecordBody, journal::StoredRecord, story::tells_of_its_way},
};

/// The arguments of a call, from the model input to the last ones. All of them are redacted.
#[derive(Debug, Default)]
pub struct InputTrail {
    pub(super) changes: Vec<(InputMutation, Timestamp)>,
    /// One more than the number of changes. `None`: the records do not have it.
    states: Vec<Option<Value>>,
}

/// One change of a call's arguments.
#[derive(Clone, Copy, Debug)]
pub struct InputChange<'a> {
    /// `hook`, `permission_prompt`, or `runtime` for the operator's settings.
    pub source_type: &'a str,
    /// The name of the hook, the operator or the setting.
    pub source: &'a str,
    /// The top-level fields that differ.
    pub changed_fields: &'a [String],
    /// The reason of the change.
    pub reason: &'a str,
    /// The arguments before it, if the records have them.
    pub from: Option<&'a Value>,
    /// The arguments after it, if the records have them.
    pub to: Option<&'a Value>,
}

impl InputTrail {
    /// Reads the records of one call, oldest first.
    pub fn of(rows: &[StoredRecord]) -> Self {
        let mut trail = Self::default();
        for row in rows.iter().filter(|row| tells_of_its_way(row.record.kind)) {
            if let Ok(way) = row.record.read_body::<CallRecordBody<'_>>() {
                let begin = way.begin(row.record.at);
                // Unreadable records are left out.
                let _ = trail.follow(&way, begin);
            }
        }
        trail
    }

    /// Adds the arguments of a record. Its times count from `begin`.
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

    /// The arguments after `changes` changes.
    pub(super) fn state(&self, changes: usize) -> Option<&Value> {
        self.states.get(changes)?.as_ref()
    }

    /// The model input.
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
    /// The start of the record's times: the request, or the start of the host that resumed the call. The last stage was
    /// reached just before the record was written.
    pub(super) fn begin(&self, written_at: Timestamp) -> Timestamp {
        let newest = self.transitions.last().map_or(0, |passed| passed.at_us);
        let since = SignedDuration::from_micros(i64::try_from(newest).unwrap_or_default());
        written_at.checked_sub(since).unwrap_or(written_at)
    }
}

/// An event of a call with a time.
pub(super) trait AtMicros {
    /// The time in microseconds after the request.
    fn at_us(&self) -> u64;
}

/// Merges a list from a record. Each record of a host repeats the host's earlier entries, so the list replaces those of
/// the same host; entries of an earlier host stay in front of it.
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
