//! Exports of a real record: they fit their schema, and everything they name is in them.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};
use toolpost_core::{Export, ExportFormat, StandsOn, StoredRecord, evidence_schema};

use super::world::{self, SECRET};

pub(super) fn lines(format: ExportFormat, rows: &[StoredRecord]) -> Vec<Value> {
    let mut export = Export::new(format);
    let mut lines = Vec::new();
    for row in rows {
        export.take(row, &mut lines).unwrap();
    }
    export.finish(&mut lines);
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(super) fn of<'a>(lines: &'a [Value], record: &str) -> Vec<&'a Value> {
    lines
        .iter()
        .filter(|line| line["record"] == record)
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no `{field}` in {value}"))
}

#[tokio::test]
async fn every_line_fits_the_generated_schema_and_tells_nothing_that_it_does_not_describe() {
    let rows = world::records().await;
    let schema = evidence_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines = lines(ExportFormat::Jsonl, &rows);
    assert_eq!(lines.len(), rows.len());
    for (line, row) in lines.iter().zip(&rows) {
        if let Err(error) = validator.validate(line) {
            panic!("{error} at {}: {line:#}", error.instance_path());
        }
        assert_eq!(
            (&line["record"], line["seq"].as_u64()),
            (&json!(row.record.kind.as_str()), Some(row.seq))
        );
        assert_eq!(
            line["body"],
            serde_json::from_str::<Value>(&row.record.body).unwrap()
        );
    }
    let kinds: BTreeSet<&str> = lines.iter().map(|line| text(line, "record")).collect();
    let expected = [
        "asked",
        "catalog",
        "decided",
        "ended",
        "host_started",
        "session_closed",
        "session_opened",
        "started",
        "surface",
    ];
    assert!(
        expected.iter().all(|kind| kinds.contains(kind)),
        "{kinds:?}"
    );

    for wrong in [
        json!({}),
        json!({ "record": "ended" }),
        json!({ "record": "started", "seq": "x" }),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    let mut undescribed: BTreeSet<String> = BTreeSet::new();
    let known = schema.to_string();
    for line in lines
        .iter()
        .filter(|line| line["invocation_id"].is_string())
    {
        for name in line["body"].as_object().unwrap().keys() {
            if !known.contains(&format!("\"{name}\":")) {
                undescribed.insert(name.clone());
            }
        }
    }
    assert!(
        undescribed.is_empty(),
        "describe these in `record/body/call.rs`: {undescribed:?}"
    );
}

#[tokio::test]
async fn the_record_holds_twelve_kinds_of_outcome_and_each_is_told_apart() {
    let rows = world::records().await;
    let lines = lines(ExportFormat::AgentTool, &rows);
    let kinds: BTreeSet<(String, String, String, String)> = of(&lines, "result")
        .into_iter()
        .map(|result| {
            let class = result["error"]["error_class"].as_str().unwrap_or_default();
            let [status, outcome, disposition] =
                ["status", "outcome", "disposition"].map(|field| text(result, field).to_owned());
            (status, outcome, disposition, class.to_owned())
        })
        .collect();
    for expected in [
        ("succeeded", "succeeded", "inline", ""),
        ("succeeded", "succeeded", "empty", ""),
        ("succeeded", "succeeded", "preview", ""),
        ("partial_succeeded", "partial", "inline", ""),
        ("failed", "failed", "inline", "execution_failed"),
        ("failed", "failed", "synthetic", "invalid_arguments"),
        ("failed", "failed", "synthetic", "unknown_tool"),
        ("failed", "failed", "synthetic", "schema_not_loaded"),
        ("denied", "denied", "synthetic", "hook_blocked"),
        ("denied", "denied", "synthetic", "policy_blocked"),
        ("rejected", "denied", "synthetic", "approval_rejected"),
        ("canceled", "canceled", "synthetic", "canceled"),
        (
            "synthetic_error",
            "canceled",
            "synthetic",
            "sibling_canceled",
        ),
        ("timed_out", "timed_out", "synthetic", "timeout"),
        ("synthetic_error", "unknown", "synthetic", "outcome_unknown"),
    ] {
        let (status, outcome, disposition, class) = expected;
        let expected = (
            status.to_owned(),
            outcome.to_owned(),
            disposition.to_owned(),
            class.to_owned(),
        );
        assert!(
            kinds.contains(&expected),
            "{expected:?} is not in {kinds:#?}"
        );
    }
    let redacted = of(&lines, "result")
        .into_iter()
        .filter(|result| result["redaction_state"] == "redacted");
    assert!(
        redacted.count() >= 2,
        "a secret in the output, and one in the arguments"
    );
    let all = lines.iter().map(Value::to_string).collect::<String>();
    assert!(!all.contains(SECRET) && !all.contains("sesame-sesame"));
}

/// Fields that name another record, and the field of the record they name.
const REFERENCES: &[(&str, &str)] = &[
    ("surface_id", "surface_id"),
    ("interface_ref", "interface_id"),
    ("execution_profile_ref", "execution_profile_id"),
    ("permission_profile_ref", "permission_profile_id"),
    ("permission_decision_refs", "decision_id"),
    ("hook_refs", "hook_id"),
    ("hook_ref", "hook_id"),
    ("mutation_refs", "mutation_id"),
    ("persistence_refs", "decision_id"),
    ("result_ref", "result_id"),
    ("progress_ref", "progress_id"),
    ("scheduler_policy_ref", "scheduler_policy_id"),
    ("parent_invocation_id", "invocation_id"),
    ("tool_refs", "tool_id"),
    ("loaded_tools", "tool_id"),
    ("deferred_tools", "tool_id"),
];

/// The records that define each kind of id.
fn defined(lines: &[Value]) -> HashMap<&'static str, HashSet<String>> {
    let defines = [
        ("tool_declaration", "tool_id"),
        ("tool_interface", "interface_id"),
        ("execution_profile", "execution_profile_id"),
        ("permission_profile", "permission_profile_id"),
        ("tool_surface", "surface_id"),
        ("invocation", "invocation_id"),
        ("input_mutation", "mutation_id"),
        ("permission_decision", "decision_id"),
        ("result_persistence", "decision_id"),
        ("hook", "hook_id"),
        ("scheduler_policy", "scheduler_policy_id"),
        ("progress", "progress_id"),
        ("result", "result_id"),
        ("event", "event_id"),
    ];
    let mut defined: HashMap<&str, HashSet<String>> = HashMap::new();
    for (record, field) in defines {
        let found = of(lines, record);
        assert!(!found.is_empty(), "no `{record}`");
        for line in found {
            let id = text(line, field).to_owned();
            let is_new = defined.entry(field).or_default().insert(id.clone());
            assert!(is_new, "two records are called `{id}`");
        }
    }
    defined
}

fn named(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_id_is_that_of_a_record_in_the_same_export() {
    let rows = world::records().await;
    let lines = lines(ExportFormat::AgentTool, &rows);
    assert!(!of(&lines, "deferred_tool").is_empty());
    let defined = defined(&lines);
    let mut checked = 0;
    for line in &lines {
        assert_eq!(line["schema_version"], "0.2.0");
        for (field, names) in REFERENCES {
            let places = [&line[field], &line["data"][field]];
            for id in places.into_iter().flat_map(named) {
                assert!(
                    defined[names].contains(id),
                    "`{field}` names `{id}`, which is not there: {line}"
                );
                checked += 1;
            }
        }
        let is_call =
            line["record"] != "event" || line["event_id"].as_str().unwrap().contains("/event/");
        if let Some(id) = line["invocation_id"].as_str().filter(|_| is_call) {
            assert!(defined["invocation_id"].contains(id), "{line}");
        }
    }
    assert!(checked > 200, "{checked}");
    for call in of(&lines, "invocation") {
        let unknown = call["asked_for"] == "no_such_tool";
        assert_eq!(
            defined["tool_id"].contains(text(call, "tool_id")),
            !unknown,
            "{call}"
        );
        assert!(
            call["surface_id"].is_string() && call["created_at"].is_string(),
            "{call}"
        );
    }
}

#[tokio::test]
async fn the_four_inputs_stay_apart() {
    let rows = world::records().await;
    let lines = lines(ExportFormat::AgentTool, &rows);
    let calls = of(&lines, "invocation");
    let of_tool = |id: &str| calls.iter().find(|call| call["tool_id"] == id).unwrap();
    let changed = of_tool("demo.changed");
    assert_eq!(
        (
            &changed["model_input"],
            &changed["observable_input"],
            &changed["permission_input"]
        ),
        (&json!({ "n": 1 }), &json!({ "n": 1 }), &json!({ "n": 2 }))
    );
    let id = text(changed, "invocation_id");
    let decided_on = json!(format!("{id}/permission_input"));
    assert_eq!(
        (&changed["permission_input_ref"], &changed["call_input_ref"]),
        (&decided_on, &decided_on)
    );
    let mutation = of(&lines, "input_mutation")
        .into_iter()
        .find(|line| line["invocation_id"] == id)
        .unwrap();
    assert_eq!(mutation["source_type"], "hook");
    assert_eq!(
        (&mutation["from_input_ref"], &mutation["to_input_ref"]),
        (&json!(format!("{id}/model_input")), &decided_on)
    );

    let denied = of_tool("demo.denied");
    assert!(denied["call_input_ref"].is_null(), "it never ran");
    let unknown = calls
        .iter()
        .find(|call| call["asked_for"] == "no_such_tool")
        .unwrap();
    assert!(unknown["model_input"].is_null() && unknown["unread_bytes"].is_u64());
    let edited = calls
        .iter()
        .find(|call| call["tool_id"] == "demo.asked" && call["call_input"] == json!({ "n": 2 }));
    let edited = edited.unwrap();
    assert_eq!(edited["model_input"], json!({ "n": 1 }));
    let decisions: Vec<&Value> = of(&lines, "permission_decision")
        .into_iter()
        .filter(|line| line["invocation_id"] == edited["invocation_id"])
        .collect();
    let said: Vec<&str> = decisions
        .iter()
        .map(|decision| text(decision, "behavior"))
        .collect();
    assert_eq!(said, ["ask", "allow"]);
    assert_eq!(decisions[1]["user_modified"], true);
}

#[tokio::test]
async fn an_open_call_is_told_as_far_as_it_got() {
    let rows = world::records().await;
    let lines = lines(ExportFormat::AgentTool, &rows);
    let open: Vec<&Value> = of(&lines, "invocation")
        .into_iter()
        .filter(|call| call["ended_at"].is_null())
        .collect();
    assert_eq!(open.len(), 1);
    assert_eq!(
        (&open[0]["status"], &open[0]["tool_id"]),
        (&json!("running"), &json!("demo.dies"))
    );
    assert!(open[0]["result_ref"].is_null());
}

#[tokio::test]
async fn audit_lines_tell_each_call_that_ended_in_the_terms_of_a2e() {
    let rows = world::records().await;
    let lines = lines(ExportFormat::A2eAudit(|class| class.as_str()), &rows);
    let ends = rows
        .iter()
        .filter(|row| row.record.kind == toolpost_core::RecordKind::Ended)
        .count();
    assert_eq!(lines.len(), ends);
    let fields = [
        "ts",
        "session_id",
        "req_id",
        "correlation_id",
        "success",
        "duration_ms",
        "error_code",
        "input_bytes",
        "output_bytes",
    ];
    for line in &lines {
        assert!(
            fields.iter().all(|field| line.get(field).is_some()),
            "{line}"
        );
        assert_eq!(line["success"], line["error_code"].is_null());
    }
    let named = lines.iter().find(|line| line["req_id"] == "r1").unwrap();
    assert_eq!(
        (&named["correlation_id"], &named["tool"]),
        (&json!("turn-1"), &json!("read"))
    );
}

#[tokio::test]
async fn what_a_record_stands_on_can_be_told_from_it() {
    let rows = world::records().await;
    let calls = rows.iter().filter(|row| {
        row.record.invocation_id.is_some() && row.record.kind != toolpost_core::RecordKind::Decided
    });
    let stands: Vec<StandsOn> = calls.map(|row| StandsOn::of(row).unwrap()).collect();
    let calls: HashSet<_> = rows
        .iter()
        .filter_map(|row| row.record.invocation_id)
        .collect();
    assert_eq!(
        stands.iter().filter(|one| one.is_first).count(),
        calls.len(),
        "every call has one first record"
    );
    assert_eq!(
        stands.iter().filter(|one| one.parent.is_some()).count(),
        1,
        "one call made another"
    );
}
