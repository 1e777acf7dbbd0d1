//! One session with everything that can become of a call, and what its export tells of it: the whole record of one host's
//! life, a kill and the next life.

mod script;
mod shape;
mod stage;

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use self::{
    script::{PARENT, STATE},
    stage::{SECRET, Stage},
};
use super::exported::{Exported, text};

#[test]
fn a_session_with_everything_in_it_is_told_whole_by_its_export() {
    let stage = Stage::new();
    script::play(&stage);
    let exported = stage.export();
    keep_for_readers(&exported);
    shape::check_words_and_references(&exported);
    check_schema(&stage);
    check_ends(&exported);
    check_reasons(&exported);
    check_inputs(&exported);
    check_identity(&exported);
    check_policies(&exported);
    check_traces(&exported);
    check_stops(&exported);
    check_discovery(&exported);
    let all: String = exported.lines.iter().map(Value::to_string).collect();
    assert!(
        !all.contains(SECRET),
        "a secret of the environment is on record"
    );
    let verified = stage.run(&["journal", "verify", "--json"]).json();
    assert_eq!(
        (&verified["clean"], &verified["open_invocations"]),
        (&json!(true), &json!([])),
        "{verified}"
    );
}

/// Leaves the export where other programs can be tried on it.
fn keep_for_readers(exported: &Exported) {
    let text: String = exported
        .lines
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(
        concat!(env!("CARGO_TARGET_TMPDIR"), "/complete-record.jsonl"),
        text,
    )
    .unwrap();
}

/// The journal's own records of the session fit the schema that is printed for them.
fn check_schema(stage: &Stage) {
    let schema = stage
        .home
        .run(&["reference", "evidence-schema"])
        .expect(0)
        .json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for line in stage.run(&["journal", "export"]).stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let problem = validator
            .validate(&line)
            .err()
            .map(|error| error.to_string());
        assert_eq!(problem, None, "{line}");
    }
}

fn check_ends(exported: &Exported) {
    for (id, status, outcome, disposition, class) in [
        ("inline", "succeeded", "succeeded", "inline", ""),
        ("empty", "succeeded", "succeeded", "empty", ""),
        ("preview", "succeeded", "succeeded", "preview", ""),
        ("ref", "succeeded", "succeeded", "ref_only", ""),
        ("redact", "redacted", "succeeded", "redacted", ""),
        ("drop", "too_large", "succeeded", "dropped", ""),
        (
            "withheld",
            "succeeded",
            "succeeded",
            "synthetic",
            "hook_blocked",
        ),
        ("partial", "partial_succeeded", "partial", "preview", ""),
        ("failed", "failed", "failed", "inline", "execution_failed"),
        (
            "invalid",
            "failed",
            "failed",
            "synthetic",
            "invalid_arguments",
        ),
        ("nowhere", "failed", "failed", "synthetic", "unknown_tool"),
        (
            "unseen",
            "failed",
            "failed",
            "synthetic",
            "schema_not_loaded",
        ),
        (
            "denied",
            "denied",
            "denied",
            "synthetic",
            "permission_denied",
        ),
        (
            "closed",
            "denied",
            "denied",
            "synthetic",
            "permission_denied",
        ),
        ("no", "rejected", "denied", "synthetic", "approval_rejected"),
        (
            "impatient",
            "rejected",
            "rejected",
            "synthetic",
            "approval_pending",
        ),
        ("canceled", "canceled", "canceled", "synthetic", "canceled"),
        ("late", "timed_out", "timed_out", "synthetic", "timeout"),
        (
            "sibling",
            "synthetic_error",
            "canceled",
            "synthetic",
            "sibling_canceled",
        ),
        (
            "killed",
            "synthetic_error",
            "unknown",
            "synthetic",
            "outcome_unknown",
        ),
    ] {
        let result = exported.result(id);
        let told = ["status", "outcome", "disposition"].map(|field| text(&result[field]));
        let told_class = result["error"]["error_class"].as_str().unwrap_or("");
        assert_eq!(
            (told, told_class),
            ([status, outcome, disposition], class),
            "`{id}`: {result:#}"
        );
        assert!(
            !text(&result["model_facing_content"][0]["text"]).is_empty(),
            "`{id}`: {result:#}"
        );
        assert_eq!(result["is_empty"], disposition == "empty", "`{id}`");
    }
    assert_eq!(
        exported.values("result", "outcome").len(),
        8,
        "every outcome"
    );
    assert_eq!(
        exported.values("result", "disposition").len(),
        7,
        "every disposition"
    );
    assert_eq!(exported.result("survivor")["outcome"], "succeeded");
    assert_eq!(exported.result("leaks")["redaction_state"], "redacted");
}

fn check_reasons(exported: &Exported) {
    for (id, decisions) in [
        ("inline", &[("allow", "mode")][..]),
        ("classified", &[("allow", "classifier")]),
        ("denied", &[("deny", "rule")]),
        ("server", &[("allow", "rule")]),
        ("delegated", &[("passthrough", "rule"), ("allow", "policy")]),
        ("closed", &[("passthrough", "rule"), ("deny", "policy")]),
        ("desk", &[("passthrough", "rule"), ("allow", "hook")]),
        ("voted", &[("deny", "hook")]),
        (
            "yes",
            &[("ask", "mode"), ("allow", "permission_prompt_tool")],
        ),
        ("no", &[("ask", "mode"), ("deny", "permission_prompt_tool")]),
        (
            "rule-asks",
            &[("ask", "rule"), ("allow", "permission_prompt_tool")],
        ),
        (
            "caution",
            &[("ask", "safety_check"), ("deny", "permission_prompt_tool")],
        ),
        (
            "opaque",
            &[
                ("ask", "subcommand_results"),
                ("deny", "permission_prompt_tool"),
            ],
        ),
        (
            "survivor",
            &[("ask", "mode"), ("allow", "permission_prompt_tool")],
        ),
        ("invalid", &[]),
    ] {
        assert_eq!(exported.decisions(id), decisions, "`{id}`");
    }
    let told: BTreeSet<&str> = exported
        .all("permission_decision")
        .map(|line| text(&line["reason"]["type"]))
        .collect();
    let documented = [
        "classifier",
        "hook",
        "mode",
        "permission_prompt_tool",
        "policy",
        "rule",
        "safety_check",
    ];
    let documented = documented
        .into_iter()
        .chain(["subcommand_results"])
        .collect();
    assert_eq!(
        told, documented,
        "docs/evidence.md lists the types of reasons that are told"
    );

    let delegate = exported.about("closed", "permission_decision")[0];
    assert_eq!(
        (
            &delegate["delegate"]["authority"],
            &delegate["delegate"]["reason"]
        ),
        (&json!("opa"), &json!("closed"))
    );
    let answered = exported.about("no", "permission_decision")[1];
    assert_eq!(
        (&answered["source"], &answered["approval"]["allowed"]),
        (&json!("operator/local"), &json!(false))
    );
    let classified = exported.about("classified", "permission_decision")[0];
    assert_eq!(classified["classified"]["class"], "read", "{classified:#}");
}

fn check_inputs(exported: &Exported) {
    let call = exported.call("edit");
    let refs = ["model", "observable", "permission", "call"]
        .map(|name| &call[format!("{name}_input_ref")]);
    assert_eq!(
        refs.iter().collect::<HashSet<_>>().len(),
        4,
        "four inputs, four references: {refs:?}"
    );
    let filled = |content: &str| json!({ "path": "model.txt", "content": content, "create_directories": true });
    let sent = json!({ "path": "model.txt", "content": "model" });
    let told = refs.map(|reference| exported.input(reference).clone());
    assert_eq!(
        told,
        [sent, filled("model"), filled("by-hook"), filled("person")]
    );
    let changes: Vec<_> = exported
        .about("edit", "input_mutation")
        .iter()
        .map(|change| {
            let from = exported.input(&change["from_input_ref"]);
            let to = exported.input(&change["to_input_ref"]);
            (
                text(&change["source_type"]).to_owned(),
                from.clone(),
                to.clone(),
            )
        })
        .collect();
    let sources: Vec<&str> = changes.iter().map(|(source, ..)| source.as_str()).collect();
    assert_eq!(sources, ["runtime", "hook", "permission_prompt"]);
    for (place, (_, from, to)) in changes.iter().enumerate() {
        assert_eq!((from, to), (&told[place], &told[place + 1]));
    }
    let decisions = exported.about("edit", "permission_decision");
    let decided_on: Vec<&Value> = decisions
        .iter()
        .map(|one| exported.input(&one["input_ref"]))
        .collect();
    assert_eq!(decided_on, [&filled("by-hook"), &filled("person")]);
    assert_eq!(decisions[1]["user_modified"], true);
    let hook = exported.about("edit", "hook");
    assert_eq!((hook.len(), &hook[0]["name"]), (1, &json!("rename")));

    let unchanged = exported.call("inline");
    let refs: HashSet<&Value> = ["model", "observable", "permission", "call"]
        .iter()
        .map(|name| &unchanged[format!("{name}_input_ref")])
        .collect();
    assert_eq!(refs.len(), 1, "one input, one reference");
    for never_ran in ["denied", "no", "closed"] {
        assert_eq!(
            exported.call(never_ran)["call_input_ref"],
            Value::Null,
            "`{never_ran}`"
        );
    }
}

fn check_identity(exported: &Exported) {
    for (id, face, tool) in [
        ("inline", "http", "files.read_file"),
        ("over-mcp", "mcp", "files.read_file"),
        ("over-a2a-1", "a2a", "files.read_file"),
        ("over-a2a-2", "a2a", "files.read_file"),
        ("server", "http", "demo.add"),
        ("command", "http", "commands.count_words"),
    ] {
        let call = exported.call(id);
        assert!(text(&call["face"]).starts_with(face), "`{id}`: {call:#}");
        assert_eq!(call["tool_id"], tool, "`{id}`");
        assert_eq!(
            exported.result(id)["outcome"],
            "succeeded",
            "`{id}`: {:#}",
            exported.result(id)
        );
    }
    let native = |id: &str| {
        let tool = &exported.call(id)["tool_id"];
        let declared = exported
            .all("tool_declaration")
            .find(|line| line["tool_id"] == *tool)
            .unwrap();
        declared["external_mappings"].clone()
    };
    assert_eq!(native("server")[0]["native_id"], "add");
    assert_eq!(
        native("command"),
        json!([{ "system": "cli", "native_id": "wc", "template": ["-w", "{path}"] }])
    );
    assert_eq!(
        native("module")[0]["native_id"],
        "read_note",
        "{:#}",
        native("module")
    );
    let outer = &exported.call("nested")["invocation_id"];
    let inner = exported
        .all("invocation")
        .find(|call| call["parent_invocation_id"] == *outer)
        .unwrap();
    assert_eq!(inner["tool_id"], "files.read_file");
    let tenants: Vec<&Value> = exported
        .all("tool_surface")
        .map(|surface| &surface["tenant"])
        .collect();
    assert!(
        tenants.contains(&&json!("acme")) && tenants.contains(&&Value::Null),
        "{tenants:?}"
    );
    assert_eq!(exported.call("of-a-tenant")["actor_ref"], "agent/ci");
    let told = exported.about("module", "event");
    let of_module = told
        .iter()
        .find(|event| event["event_type"] == "module.event")
        .unwrap();
    assert_eq!(of_module["data"]["event"], "artifact:read", "{of_module}");
}

fn check_policies(exported: &Exported) {
    for (id, policies) in [
        ("inline", &["mode/default"][..]),
        ("classified", &["mode/default"]),
        ("denied", &["deny read_file(secret.txt)"]),
        ("delegated", &["delegate opa write_file(delegated/**)"]),
        ("desk", &["delegate desk write_file(desk/**)"]),
        ("rule-asks", &["ask write_file(.ask/**)"]),
        ("server", &["allow demo.*"]),
        ("voted", &[]),
    ] {
        let told = exported.call(id)["policy_refs"].as_array().unwrap();
        let rules: Vec<&str> = told
            .iter()
            .map(|one| text(one).split(" (").next().unwrap())
            .collect();
        assert_eq!(rules, policies, "`{id}`");
        assert!(
            told.iter()
                .all(|one| text(one).starts_with("mode/") || text(one).contains("trusted.yaml:"))
        );
    }
}

fn check_traces(exported: &Exported) {
    for call in exported.all("invocation") {
        let span = &call["telemetry_refs"][0];
        assert!(
            text(&span["traceparent"]).contains(text(&span["trace_id"])),
            "{call:#}"
        );
    }
    for id in ["inline", "over-mcp", "over-a2a-1"] {
        let span = &exported.call(id)["telemetry_refs"][0];
        assert_eq!(
            (&span["trace_id"], &span["parent_span_id"]),
            (&json!(PARENT[3..35]), &json!(PARENT[36..52])),
            "`{id}`"
        );
    }
    assert_eq!(
        exported.call("inline")["telemetry_refs"][0]["tracestate"],
        STATE
    );
    let own = &exported.call("empty")["telemetry_refs"][0];
    let id = text(&exported.call("empty")["invocation_id"]).replace('-', "");
    assert_eq!(
        (&own["trace_id"], &own["parent_span_id"]),
        (&json!(id), &Value::Null)
    );
}

fn check_stops(exported: &Exported) {
    for (id, by) in [
        ("canceled", "agent/agent"),
        ("canceled-by-operator", "operator/local"),
    ] {
        let told = &exported.call(id)["cancellation"];
        let facts = ["reason", "requested_by", "status"].map(|field| text(&told[field]));
        assert_eq!(facts, ["requested", by, "canceled"], "`{id}`");
        assert!(
            text(&told["requested_at"]) <= text(&told["acknowledged_at"]),
            "`{id}`: {told}"
        );
    }
    assert_eq!(
        exported.call("late")["cancellation"],
        Value::Null,
        "nobody stopped it"
    );
    let starts = exported
        .all("event")
        .filter(|event| event["event_type"] == "host.started")
        .count();
    assert_eq!(starts, 2, "{:?}", exported.values("event", "event_type"));
    let killed = exported.result("killed");
    assert_eq!(
        (&killed["is_synthetic"], &killed["error"]["retry"]["safe"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(exported.about("survivor", "result").len(), 1);
}

fn check_discovery(exported: &Exported) {
    let told: Vec<&str> = exported
        .all("event")
        .filter(|event| {
            event["subject"] == "files.file_info" && text(&event["event_type"]).contains("deferred")
        })
        .map(|event| text(&event["event_type"]))
        .collect();
    assert_eq!(told, ["tool.deferred.discovered", "tool.deferred.loaded"]);
    assert_eq!(exported.result("seen")["outcome"], "succeeded");
}
