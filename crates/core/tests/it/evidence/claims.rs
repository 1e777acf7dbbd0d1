//! An export claims no more than the record tells.

use serde_json::{Value, json};
use toolpost_core::{Export, ExportFormat, RecordKind, StoredRecord};
use toolpost_model::{
    AccessKind, ClassFact, EffectClass, ExecutionKind, SandboxProfile, ToolExecutionSettings,
    ToolSettings,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::world;

/// The states that the draft has words for.
const STATES: &[&str] = &[
    "planned",
    "selected",
    "schema_parse_failed",
    "arguments_ready",
    "validation_failed",
    "pre_hooks_running",
    "awaiting_approval",
    "approved",
    "denied",
    "queued",
    "running",
    "needs_input",
    "partial_result",
    "post_hooks_running",
    "yielded",
    "succeeded",
    "failed",
    "canceled",
    "timed_out",
    "blocked",
];

fn lines(rows: &[StoredRecord]) -> Vec<Value> {
    let mut export = Export::new(ExportFormat::AgentTool);
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

fn of<'a>(lines: &'a [Value], record: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["record"] == record)
}

fn tool(id: &str, kind: ExecutionKind, class: ClassFact, access: &[AccessKind]) -> MockNativeTool {
    let access = access.to_vec();
    MockNativeTool::named(id).declare(move |one| {
        one.interface.execution.kind = kind;
        one.interface.safety.class = class;
        one.interface.permission.access = access;
    })
}

#[tokio::test]
async fn what_may_start_a_program_is_not_said_to_have_no_network() {
    use ClassFact::{Always, ByInput};
    use ExecutionKind::{EmbeddedRuntime, HttpApi, LocalProcess, Shell};
    let code = [AccessKind::CodeExecution];
    let network = [AccessKind::Network];
    let cases = [
        (
            "demo.shell",
            Shell,
            ByInput,
            &code[..],
            "depends_on_sandbox",
        ),
        (
            "demo.command",
            LocalProcess,
            Always(EffectClass::Read),
            &code[..],
            "depends_on_sandbox",
        ),
        (
            "demo.silent",
            LocalProcess,
            Always(EffectClass::Execute),
            &[][..],
            "depends_on_sandbox",
        ),
        (
            "demo.fetch",
            HttpApi,
            Always(EffectClass::Read),
            &network[..],
            "open",
        ),
        (
            "demo.engine",
            EmbeddedRuntime,
            Always(EffectClass::Execute),
            &code[..],
            "open",
        ),
        ("demo.vague", EmbeddedRuntime, ByInput, &[][..], "open"),
        (
            "demo.posts",
            EmbeddedRuntime,
            Always(EffectClass::Network),
            &[][..],
            "open",
        ),
        (
            "demo.reads",
            EmbeddedRuntime,
            Always(EffectClass::Read),
            &[AccessKind::FileRead][..],
            "none",
        ),
        (
            "demo.writes",
            EmbeddedRuntime,
            Always(EffectClass::Write),
            &[AccessKind::FileWrite][..],
            "none",
        ),
    ];
    let host = TestHost::build(|builder| {
        cases
            .iter()
            .fold(builder, |builder, (id, kind, class, access, _)| {
                builder.tool(tool(id, *kind, *class, access))
            })
    })
    .await;
    let lines = lines(&host.records().await);
    for (id, .., expected) in cases {
        let part = format!("{id}/permission@");
        let mut profiles = of(&lines, "permission_profile");
        let profile = profiles
            .find(|one| {
                one["permission_profile_id"]
                    .as_str()
                    .unwrap()
                    .starts_with(&part)
            })
            .unwrap();
        assert_eq!(profile["network_scope"], expected, "{id}");
    }
}

#[tokio::test]
async fn only_what_is_confined_for_certain_is_said_to_be() {
    let set = |name: &str, sandbox: SandboxProfile| {
        (
            name.to_owned(),
            ToolSettings {
                execution: ToolExecutionSettings {
                    sandbox: Some(sandbox),
                    ..ToolExecutionSettings::default()
                },
                ..ToolSettings::default()
            },
        )
    };
    let settings: std::collections::HashMap<String, ToolSettings> = [
        set("free", SandboxProfile::None),
        set("kept", SandboxProfile::ReadOnly),
    ]
    .into();
    let class = ClassFact::Always(EffectClass::Execute);
    let host = TestHost::build(|builder| {
        builder
            .tool(tool("demo.free", ExecutionKind::Shell, class, &[]))
            .tool(tool("demo.kept", ExecutionKind::Shell, class, &[]))
            .tool(tool("demo.usual", ExecutionKind::LocalProcess, class, &[]))
            .tool(tool(
                "demo.inside",
                ExecutionKind::EmbeddedRuntime,
                class,
                &[],
            ))
            .settings(settings)
    })
    .await;
    let lines = lines(&host.records().await);
    // What the host gives where nothing is set for the tool is not in the record, so it is not claimed.
    for (id, expected) in [
        ("demo.free", json!(false)),
        ("demo.kept", json!(true)),
        ("demo.usual", Value::Null),
        ("demo.inside", json!(false)),
    ] {
        let part = format!("{id}/execution@");
        let mut profiles = of(&lines, "execution_profile");
        let profile = profiles
            .find(|one| {
                one["execution_profile_id"]
                    .as_str()
                    .unwrap()
                    .starts_with(&part)
            })
            .unwrap();
        assert_eq!(profile["sandboxed"], expected, "{id}");
    }
}

#[tokio::test]
async fn of_a_host_whose_start_was_removed_neither_version_nor_limits_are_told() {
    let mut rows = world::records().await;
    let whole = lines(&rows);
    assert!(of(&whole, "scheduler_policy").all(|policy| policy["max_parallel"].as_u64() > Some(0)));
    rows.retain(|row| row.record.kind != RecordKind::HostStarted);
    let lines = lines(&rows);
    assert!(of(&lines, "event").all(|event| event["source"] == "toolpost"));
    assert!(of(&lines, "tool_surface").all(|surface| surface["producer"].is_null()));
    let policies: Vec<&Value> = of(&lines, "scheduler_policy").collect();
    assert!(!policies.is_empty());
    for field in ["max_parallel", "max_parallel_in_session", "max_queued"] {
        assert!(
            policies.iter().all(|policy| policy.get(field).is_none()),
            "{field}"
        );
    }
}

#[tokio::test]
async fn states_are_in_the_words_of_the_draft_and_ours_beside_them() {
    let lines = lines(&world::records().await);
    for call in of(&lines, "invocation") {
        let passed = call["status_transitions"].as_array().unwrap().iter();
        for state in passed.map(|one| &one["status"]).chain([&call["status"]]) {
            assert!(
                STATES.contains(&state.as_str().unwrap()),
                "`{state}` in {call}"
            );
        }
    }
    let unknown = of(&lines, "invocation")
        .find(|call| call["outcome"] == "unknown")
        .unwrap();
    assert_eq!(unknown["status"], "failed");
    let stages = of(&lines, "invocation")
        .filter_map(|call| call["status_transitions"].as_array())
        .flatten();
    let stages: Vec<&Value> = stages.map(|one| &one["stage"]).collect();
    assert!(stages.contains(&&json!("decide")) && stages.contains(&&json!("map")));
}

#[tokio::test]
async fn a_decision_that_asks_names_its_question_and_its_end() {
    let lines = lines(&world::records().await);
    let (asking, others): (Vec<&Value>, Vec<&Value>) =
        of(&lines, "permission_decision").partition(|decision| decision["behavior"] == "ask");
    assert_eq!(asking.len(), 3);
    for decision in asking {
        assert_eq!(
            decision["ask_id"], decision["invocation_id"],
            "its own call raised the question"
        );
        let end: jiff::Timestamp = decision["expires_at"].as_str().unwrap().parse().unwrap();
        assert!(end > decision["decided_at"].as_str().unwrap().parse().unwrap());
    }
    assert!(
        others
            .iter()
            .all(|decision| decision["expires_at"].is_null() && decision["ask_id"].is_null())
    );
}

#[tokio::test]
async fn a_batch_and_a_single_call_are_scheduled_by_policies_of_their_own() {
    let lines = lines(&world::records().await);
    let policies: Vec<&Value> = of(&lines, "scheduler_policy").collect();
    for call in of(&lines, "invocation") {
        let reference = &call["scheduler_policy_ref"];
        let policy = policies
            .iter()
            .find(|policy| policy["scheduler_policy_id"] == *reference)
            .unwrap();
        let scope = if call["batch"].is_null() {
            "call"
        } else {
            "batch"
        };
        assert_eq!(policy["scope"], scope);
        assert!(
            reference.as_str().unwrap().contains(&format!("/{scope}/")),
            "{reference}"
        );
    }
}
