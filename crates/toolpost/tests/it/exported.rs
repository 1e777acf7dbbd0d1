//! An export in the terms of the Agent Tool draft, to be asked about single calls.

use std::collections::BTreeSet;

use serde_json::Value;

/// The lines of `toolpost journal export --format agent-tool`.
pub(crate) struct Exported {
    pub(crate) lines: Vec<Value>,
}

impl Exported {
    pub(crate) fn read(text: &str) -> Self {
        Self {
            lines: text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        }
    }

    /// All records of a kind.
    pub(crate) fn all(&self, record: &str) -> impl Iterator<Item = &Value> {
        self.lines
            .iter()
            .filter(move |line| line["record"] == record)
    }

    /// The invocation with the caller's own id, which no other may have.
    #[track_caller]
    pub(crate) fn call(&self, native: &str) -> &Value {
        let found: Vec<&Value> = self
            .all("invocation")
            .filter(|call| call["native_call_id"] == native)
            .collect();
        assert_eq!(found.len(), 1, "`{native}`: {found:#?}");
        found[0]
    }

    /// The records of a kind about one call, in their order.
    #[track_caller]
    pub(crate) fn about(&self, native: &str, record: &str) -> Vec<&Value> {
        let id = &self.call(native)["invocation_id"];
        self.all(record)
            .filter(|line| line["invocation_id"] == *id)
            .collect()
    }

    #[track_caller]
    pub(crate) fn result(&self, native: &str) -> &Value {
        let results = self.about(native, "result");
        assert_eq!(results.len(), 1, "`{native}`");
        results[0]
    }

    /// Behavior and type of the reason of each decision about a call.
    #[track_caller]
    pub(crate) fn decisions(&self, native: &str) -> Vec<(&str, &str)> {
        let decisions = self.about(native, "permission_decision");
        decisions
            .iter()
            .map(|line| (text(&line["behavior"]), text(&line["reason"]["type"])))
            .collect()
    }

    /// The events of a call, in their order.
    #[track_caller]
    pub(crate) fn events(&self, native: &str) -> Vec<&str> {
        self.about(native, "event")
            .iter()
            .map(|line| text(&line["event_type"]))
            .collect()
    }

    /// The arguments that a reference names.
    #[track_caller]
    pub(crate) fn input(&self, reference: &Value) -> &Value {
        let (id, field) = text(reference).rsplit_once('/').unwrap();
        let owner = self
            .lines
            .iter()
            .find(|line| line["mutation_id"] == id || is_invocation_with_id(line, id));
        let value = &owner.unwrap_or_else(|| panic!("`{reference}` names nothing"))[field];
        assert!(value.is_object(), "`{reference}` names no arguments");
        value
    }

    /// The values that a field has in the records of a kind.
    pub(crate) fn values(&self, record: &str, field: &str) -> BTreeSet<&str> {
        self.all(record)
            .filter_map(|line| line[field].as_str())
            .collect()
    }
}

fn is_invocation_with_id(line: &Value, id: &str) -> bool {
    line["record"] == "invocation" && line["invocation_id"] == id
}

/// A text that must be one.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("a text was expected: {value}"))
}
