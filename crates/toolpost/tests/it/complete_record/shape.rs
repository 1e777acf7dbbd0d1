//! What every record of an export has: its fields, the words they may hold, and ids that lead somewhere.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::exported::{Exported, text};

/// The field with a record's own id, and the fields that it is never without.
const FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "tool_declaration",
        "tool_id",
        &["namespace", "name", "description", "lifecycle", "tool_kind"],
    ),
    (
        "tool_interface",
        "interface_id",
        &["tool_id", "model_input_schema", "runtime_input_schema"],
    ),
    (
        "execution_profile",
        "execution_profile_id",
        &["execution_kind"],
    ),
    (
        "permission_profile",
        "permission_profile_id",
        &["risk_level"],
    ),
    ("tool_surface", "surface_id", &["scope"]),
    ("deferred_tool", "tool_id", &["name", "loading_state"]),
    (
        "scheduler_policy",
        "scheduler_policy_id",
        &["ordering_policy"],
    ),
    (
        "invocation",
        "invocation_id",
        &["tool_id", "status", "created_at", "actor_ref", "surface_id"],
    ),
    (
        "input_mutation",
        "mutation_id",
        &["invocation_id", "source_type", "created_at"],
    ),
    ("hook", "hook_id", &["hook_event", "invocation_id"]),
    (
        "permission_decision",
        "decision_id",
        &["invocation_id", "behavior", "decided_at", "reason"],
    ),
    (
        "progress",
        "progress_id",
        &["invocation_id", "sequence", "status", "timestamp"],
    ),
    (
        "result",
        "result_id",
        &["invocation_id", "status", "created_at", "is_error"],
    ),
    (
        "result_persistence",
        "decision_id",
        &["invocation_id", "strategy", "created_at"],
    ),
    ("event", "event_id", &["event_type", "source", "time"]),
];

/// The words that a field may hold.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "tool_declaration",
        "lifecycle",
        "draft available disabled requires_setup deferred deprecated retired",
    ),
    (
        "permission_profile",
        "risk_level",
        "low medium high critical",
    ),
    (
        "deferred_tool",
        "loading_state",
        "loaded deferred discoverable pending_provider unavailable",
    ),
    (
        "scheduler_policy",
        "ordering_policy",
        "preserve_terminal_order allow_unordered serial",
    ),
    ("scheduler_policy", "interrupt_behavior", "cancel block"),
    (
        "scheduler_policy",
        "sibling_failure_policy",
        "ignore cancel_siblings cancel_dependent",
    ),
    (
        "invocation",
        "status",
        "planned selected schema_parse_failed arguments_ready validation_failed pre_hooks_running awaiting_approval \
         approved denied queued running needs_input partial_result post_hooks_running yielded succeeded failed canceled \
         timed_out blocked",
    ),
    (
        "input_mutation",
        "source_type",
        "hook permission_prompt adapter migration runtime",
    ),
    (
        "hook",
        "hook_event",
        "pre_tool_use post_tool_use post_tool_use_failure",
    ),
    (
        "permission_decision",
        "behavior",
        "allow ask deny passthrough",
    ),
    (
        "result",
        "status",
        "succeeded partial_succeeded failed denied rejected redacted too_large canceled timed_out synthetic_error",
    ),
    (
        "result_persistence",
        "strategy",
        "inline preview_and_persist ref_only redact drop_with_reason never_persist",
    ),
];

/// Fields that name other records.
const REFERENCES: &[&str] = &[
    "surface_id",
    "interface_ref",
    "execution_profile_ref",
    "permission_profile_ref",
    "permission_decision_refs",
    "hook_refs",
    "hook_ref",
    "mutation_refs",
    "persistence_refs",
    "result_ref",
    "result_id",
    "progress_ref",
    "scheduler_policy_ref",
    "parent_invocation_id",
    "invocation_id",
];

pub(super) fn check_words_and_references(exported: &Exported) {
    let fields: HashMap<&str, (&str, &[&str])> = FIELDS
        .iter()
        .map(|(record, id, fields)| (*record, (*id, *fields)))
        .collect();
    let mut known: HashSet<&str> = HashSet::new();
    for line in &exported.lines {
        let record = text(&line["record"]);
        let (id, needed) = fields
            .get(record)
            .unwrap_or_else(|| panic!("`{record}` is no kind of record"));
        assert_eq!(line["schema_version"], "0.2.0");
        for field in needed.iter().chain([id]) {
            assert!(
                !line[field].is_null(),
                "`{record}` without `{field}`: {line}"
            );
        }
        known.insert(text(&line[id]));
    }
    for (record, ..) in FIELDS.iter().filter(|(record, ..)| *record != "progress") {
        assert!(
            exported.all(record).next().is_some(),
            "the session left no `{record}`"
        );
    }
    for (record, field, words) in WORDS {
        let words: HashSet<&str> = words.split_whitespace().collect();
        for told in exported.values(record, field) {
            assert!(words.contains(told), "`{told}` is no {field} of a {record}");
        }
    }
    let mut followed = 0;
    for line in &exported.lines {
        for place in REFERENCES
            .iter()
            .flat_map(|field| [&line[field], &line["data"][field]])
        {
            for id in named(place) {
                assert!(known.contains(id), "`{id}` is in no record: {line}");
                followed += 1;
            }
        }
    }
    assert!(followed > 500, "{followed}");
}

fn named(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
