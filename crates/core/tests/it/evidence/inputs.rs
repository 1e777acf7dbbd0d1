//! The four inputs of a call: what the settings, hooks and a person make of what the model sent, each to be found.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use toolpost_core::{
    AppendStrength, Approvals, CredentialGrant, ExportFormat, Hook, HookCall, HookError,
    HookOutput, HostBuilder, InputTrail, Journal as _, MemoryJournal, RecordKind, StoredRecord,
};
use toolpost_model::{
    ApprovalScope, BoxFuture, EffectClass, PermissionMode, Principal, Secret, ToolInputSettings,
    ToolSettings, Verdict,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::export::{lines, of};

/// Puts its own name into `who`, for calls that have none of its name yet.
struct Rewriter(&'static str);

impl Hook for Rewriter {
    fn name(&self) -> &str {
        self.0
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let mut arguments = call.input.arguments().value().clone();
        arguments["who"] = json!(self.0);
        Box::pin(std::future::ready(Ok(HookOutput::rewrite(
            arguments,
            "its own name",
        ))))
    }
}

fn act() -> MockNativeTool {
    MockNativeTool::named("demo.act").class(EffectClass::Write).output("done").schema(json!({
        "type": "object",
        "properties": {
            "who": { "type": "string" },
            "depth": { "type": "integer" },
            "password": { "type": "string", "x-sensitive": true },
            "list": { "type": "array", "items": { "type": "object", "properties": { "mail": { "type": "string" } } } }
        },
        "required": ["who", "depth"]
    }))
}

fn asking(builder: HostBuilder) -> HostBuilder {
    builder
        .approvals(Approvals::ASK)
        .policy(TestHost::policy(PermissionMode::Bypass, &["ask demo.act"]))
}

fn with_defaults(builder: HostBuilder) -> HostBuilder {
    let defaults = json!({ "depth": 3 }).as_object().unwrap().clone();
    let sensitive = vec!["/list/0/mail".to_owned()];
    let settings = ToolSettings {
        input: ToolInputSettings {
            defaults,
            sensitive,
            ..ToolInputSettings::default()
        },
        ..ToolSettings::default()
    };
    builder.settings(HashMap::from([("demo.act".to_owned(), settings)]))
}

async fn answer_with_edit(host: &TestHost, arguments: Value) {
    let mut changes = host.host.approval_changes();
    let id = loop {
        if let Some(open) = host.host.approvals().first() {
            break open.ask_id;
        }
        changes.changed().await.unwrap();
    };
    let arguments = Some(arguments);
    let verdict = Verdict::Allow {
        scope: ApprovalScope::Once,
        rule: None,
        valid_for_seconds: None,
        arguments,
    };
    host.host
        .decide(id, verdict, &Principal::operator("ann"))
        .await
        .unwrap();
}

/// Finds the value that a reference of an export names.
fn named(lines: &[Value], reference: &Value) -> Value {
    let reference = reference.as_str().unwrap();
    for line in lines {
        let (id, field) = match line["record"].as_str() {
            Some("invocation") => (
                &line["invocation_id"],
                ["model", "observable", "permission", "call"].as_slice(),
            ),
            Some("input_mutation") => (&line["mutation_id"], ["to"].as_slice()),
            _ => continue,
        };
        for field in field {
            let field = format!("{field}_input");
            if reference == format!("{}/{field}", id.as_str().unwrap()) {
                return line[&field].clone();
            }
        }
    }
    panic!("`{reference}` names nothing");
}

/// The values of the four inputs of the one call of an export, and from and to of each change.
fn inputs_of(rows: &[StoredRecord]) -> (Vec<Value>, Vec<(Value, Value)>) {
    let lines = lines(ExportFormat::AgentTool, rows);
    let calls = of(&lines, "invocation");
    assert_eq!(calls.len(), 1);
    let four = ["model", "observable", "permission", "call"]
        .iter()
        .map(|input| named(&lines, &calls[0][format!("{input}_input_ref")]))
        .collect();
    let changes = of(&lines, "input_mutation")
        .iter()
        .map(|change| {
            (
                named(&lines, &change["from_input_ref"]),
                named(&lines, &change["to_input_ref"]),
            )
        })
        .collect();
    (four, changes)
}

fn by(who: &str) -> Value {
    json!({ "who": who, "depth": 1 })
}

#[tokio::test]
async fn a_hook_s_rewrite_and_a_person_s_edit_are_told_apart_from_what_the_model_sent() {
    let tool = act();
    let host = TestHost::build(|b| asking(b).tool(tool.clone()).hook(Rewriter("by-hook"))).await;
    let handle = host.host.start(host.request("act", by("model"))).await;
    answer_with_edit(&host, by("person")).await;
    handle.answer().await;
    assert_eq!(tool.inputs(), [by("person")]);
    let rows = host.records().await;
    let (four, changes) = inputs_of(&rows);
    assert_eq!(
        four,
        [by("model"), by("model"), by("by-hook"), by("person")]
    );
    assert_eq!(
        changes,
        [(by("model"), by("by-hook")), (by("by-hook"), by("person"))]
    );

    let lines = lines(ExportFormat::AgentTool, &rows);
    let decisions = of(&lines, "permission_decision");
    let decided_on: Vec<Value> = decisions
        .iter()
        .map(|one| named(&lines, &one["input_ref"]))
        .collect();
    assert_eq!(
        decided_on,
        [by("by-hook"), by("person")],
        "the one that asked, and the one after the edit"
    );
    assert_eq!(
        named(&lines, &decisions[1]["updated_input_ref"]),
        by("person")
    );
    let call = of(&lines, "invocation")[0];
    let refs =
        ["model", "permission", "call"].map(|input| call[format!("{input}_input_ref")].to_string());
    assert_eq!(
        refs.iter().collect::<std::collections::HashSet<_>>().len(),
        3,
        "{refs:?}"
    );
}

#[tokio::test]
async fn an_edit_under_the_next_host_keeps_what_the_hook_of_the_first_one_changed() {
    let first = TestHost::build(|b| asking(b).tool(act()).hook(Rewriter("by-hook"))).await;
    let _waits = first.host.start(first.request("act", by("model"))).await;
    let mut changes = first.host.approval_changes();
    while first.host.approvals().is_empty() {
        changes.changed().await.unwrap();
    }
    let left = Arc::new(MemoryJournal::default());
    for row in first.records().await {
        left.append(row.record, AppendStrength::Committed)
            .await
            .unwrap();
    }
    let tool = act();
    let next = TestHost::on(Arc::clone(&left), |b| {
        asking(b).tool(tool.clone()).hook(Rewriter("by-hook"))
    })
    .await;
    answer_with_edit(&next, by("person")).await;
    let rows = loop {
        let rows = left.read(0, usize::MAX).await.unwrap();
        if rows.last().unwrap().record.kind == RecordKind::Ended {
            break rows;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(tool.inputs(), [by("person")]);
    let (four, changes) = inputs_of(&rows);
    assert_eq!(
        four,
        [by("model"), by("model"), by("by-hook"), by("person")]
    );
    assert_eq!(
        changes,
        [(by("model"), by("by-hook")), (by("by-hook"), by("person"))]
    );
    let id = rows.last().unwrap().record.invocation_id.unwrap();
    let call = next
        .host
        .recorded_call(id, &Principal::operator("ann"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (call.sent, call.arguments),
        (Some(by("model")), Some(by("person")))
    );
}

#[tokio::test]
async fn settings_and_two_hooks_leave_every_state_on_record_without_its_secrets() {
    let host = TestHost::build(|b| {
        with_defaults(b)
            .tool(act())
            .hook(Rewriter("one"))
            .hook(Rewriter("two"))
            .hook(Rewriter("three"))
    })
    .await;
    host.call(
        "act",
        json!({ "who": "model", "password": "sesame-sesame" }),
    )
    .await;
    let rows = host.records().await;
    let mark = "[redacted:argument]";
    let state = |who: &str| json!({ "who": who, "depth": 3, "password": mark });
    let sent = json!({ "who": "model", "password": mark });
    let (four, changes) = inputs_of(&rows);
    assert_eq!(
        four,
        [sent.clone(), state("model"), state("three"), state("three")]
    );
    let expected = [
        (sent.clone(), state("model")),
        (state("model"), state("one")),
        (state("one"), state("two")),
        (state("two"), state("three")),
    ];
    assert_eq!(changes, expected);
    let all: String = rows.iter().map(|row| row.record.body.as_str()).collect();
    assert!(!all.contains("sesame"), "{all}");

    // For readers in the terminal, from the same records.
    let trail = InputTrail::of(&rows);
    assert_eq!(
        (trail.sent(), trail.last()),
        (Some(&sent), Some(&state("three")))
    );
    let told: Vec<_> = trail
        .changes()
        .map(|change| (change.from.cloned(), change.to.cloned()))
        .collect();
    assert_eq!(told, expected.map(|(from, to)| (Some(from), Some(to))));

    // A record of an earlier version has no states between: they are left out, and nothing else is lost.
    let old: Vec<StoredRecord> = rows.into_iter().map(without_states_between).collect();
    let lines = lines(ExportFormat::AgentTool, &old);
    let changes = of(&lines, "input_mutation");
    assert_eq!(
        (changes.len(), changes[1]["to_input_ref"].is_null()),
        (4, true)
    );
    assert_eq!(named(&lines, &changes[3]["to_input_ref"]), state("three"));
}

fn without_states_between(mut row: StoredRecord) -> StoredRecord {
    let mut body: Value = serde_json::from_str(&row.record.body).unwrap();
    for change in body["mutations"].as_array_mut().into_iter().flatten() {
        change.as_object_mut().unwrap().remove("arguments_before");
    }
    row.record.body = body.to_string();
    row
}

#[tokio::test]
async fn a_call_that_changes_nothing_records_and_names_one_input() {
    let host = TestHost::build(|b| b.tool(act())).await;
    host.call("act", by("model")).await;
    let rows = host.records().await;
    let all: String = rows.iter().map(|row| row.record.body.as_str()).collect();
    assert!(
        !all.contains("model_arguments") && !all.contains("mutations"),
        "{all}"
    );
    assert_eq!(
        all.matches(r#"{"depth":1,"who":"model"}"#).count()
            + all.matches(r#"{"who":"model","depth":1}"#).count(),
        1
    );
    let lines = lines(ExportFormat::AgentTool, &rows);
    let call = of(&lines, "invocation")[0];
    for input in ["model", "observable", "permission", "call"] {
        let reference = call[format!("{input}_input_ref")].as_str().unwrap();
        assert!(reference.ends_with("/model_input"), "{reference}");
    }
    assert!(call["permission_input"].is_null() && call["call_input"].is_null());
}

#[tokio::test]
async fn the_schema_at_run_time_differs_where_the_host_fills_in_hides_or_resolves() {
    let tools = vec!["demo.act".parse().unwrap()];
    let grant = CredentialGrant {
        name: "prod".to_owned(),
        value: Secret::new("a-value"),
        tools,
    };
    let host = TestHost::build(|b| {
        with_defaults(b)
            .credentials(vec![grant])
            .tool(act())
            .tool(MockNativeTool::named("demo.plain"))
    })
    .await;
    host.call("plain", json!({})).await;
    let lines = lines(ExportFormat::AgentTool, &host.records().await);
    let interface = |tool: &str| {
        *of(&lines, "tool_interface")
            .iter()
            .find(|line| line["tool_id"] == tool)
            .unwrap()
    };
    let act = interface("demo.act");
    let plain = interface("demo.plain");
    assert_eq!(plain["model_input_schema"], plain["runtime_input_schema"]);
    let model = &act["model_input_schema"];
    let runtime = &act["runtime_input_schema"];
    assert_eq!(
        (&model["required"], &runtime["required"]),
        (&json!(["who"]), &json!(["who", "depth"]))
    );
    assert_eq!(runtime["properties"]["depth"]["x-filled-in"], true);
    let mail = "/properties/list/items/properties/mail/x-sensitive";
    assert_eq!(
        (model.pointer(mail), runtime.pointer(mail)),
        (None, Some(&json!(true)))
    );
    assert_eq!(
        (&model["x-credentials"], &runtime["x-credentials"]),
        (&Value::Null, &json!(["prod"]))
    );
    assert!(
        !lines
            .iter()
            .any(|line| line.to_string().contains("a-value"))
    );
}
