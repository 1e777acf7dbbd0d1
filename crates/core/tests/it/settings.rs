//! What an operator sets for tools and sources, whoever offers them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolpost_core::{
    CatalogNotice, HookOutput, Journal as _, OperatorSettings, SourceSettings, SourceTrust,
    ToolFilter,
};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, BoxFuture, CallInput, Declaration, EffectClass, EffectOrigin,
    Effects, ErrorClass, FnTool, HiddenReason, HookEvent, HookStanding, Outcome, PermissionMode,
    Principal, PrincipalRole, ResourceAccess, ResourceKey, SandboxProfile, SessionScope, Source,
    SourceError, SourceSession, Tool, ToolCall, ToolFailure, ToolOutput, ToolSet, ToolSettings,
    Visibility, WireNaming,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::hooks::Probe;

fn set(name: &str, change: impl FnOnce(&mut ToolSettings)) -> HashMap<String, ToolSettings> {
    let mut settings = ToolSettings::default();
    change(&mut settings);
    HashMap::from([(name.to_owned(), settings)])
}

async fn listed(host: &TestHost) -> Vec<String> {
    let tools = host.host.list(&host.session, &ToolFilter::default()).await;
    tools
        .iter()
        .map(|tool| tool.entry.name().to_owned())
        .collect()
}

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn a_renamed_tool_goes_by_its_new_name_and_its_id() {
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("files.read_file"))
            .policy(TestHost::policy(PermissionMode::Bypass, &["deny cat"]))
            .settings(set("read_file", |s| {
                s.surface.name = Some("cat".to_owned());
            }))
    })
    .await;
    assert_eq!(host.host.notices(), []);
    assert!(
        host.host.catalog().get("cat").is_some()
            && host.host.catalog().get("files.read_file").is_some()
    );
    assert!(host.host.catalog().get("read_file").is_none());
    // A rule may use the name that people see.
    let result = host.call("cat", json!({})).await;
    assert_eq!(result.outcome, Outcome::Denied);
}

#[tokio::test]
async fn a_new_name_that_is_taken_is_pointed_out_and_not_given() {
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("a.first"))
            .tool(MockNativeTool::named("b.second"))
            .settings(set("b.second", |s| {
                s.surface.name = Some("first".to_owned());
            }))
    })
    .await;
    let tool = "b.second".parse().unwrap();
    let wanted = "first".to_owned();
    let kept = "second".to_owned();
    assert_eq!(
        host.host.notices(),
        [CatalogNotice::RenameTaken { tool, wanted, kept }]
    );
    assert_eq!(listed(&host).await, ["first", "second"]);
}

#[tokio::test]
async fn a_hidden_tool_is_there_for_operators_only() {
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("a.b"))
            .settings(set("a.b", |s| s.surface.hidden = Some(true)))
    })
    .await;
    assert_eq!(listed(&host).await, [""; 0]);
    let surface = host.host.surface(&host.session);
    assert_eq!(
        surface.find("b").unwrap().1,
        Visibility::Blocked(HiddenReason::Role)
    );
    let operator = host.host.default_session(&Principal::operator("local"));
    assert_eq!(operator.principal().role, PrincipalRole::Operator);
    assert_eq!(
        host.host.surface(&operator).find("b").unwrap().1,
        Visibility::Loaded
    );
}

#[tokio::test]
async fn defaults_fill_what_a_call_leaves_out_and_the_record_says_so() {
    let seen = Arc::new(Mutex::new(Value::Null));
    let schema = json!({
        "type": "object", "required": ["path", "depth"],
        "properties": { "path": { "type": "string" }, "depth": { "type": "integer" } }
    });
    let tool = Echo {
        seen: Arc::clone(&seen),
        schema: schema.clone(),
    };
    let host = TestHost::build(|b| {
        b.tool(tool).settings(set("echo", |s| {
            s.input.defaults = object(&json!({ "depth": 3 }));
        }))
    })
    .await;
    let shown = host
        .host
        .catalog()
        .get("echo")
        .unwrap()
        .declaration()
        .input
        .schema
        .clone();
    assert_eq!(
        shown["required"],
        json!(["path"]),
        "what is filled in need not be sent"
    );
    let result = host.call("echo", json!({ "path": "x" })).await;
    assert_eq!(
        (result.outcome, seen.lock().unwrap().clone()),
        (Outcome::Succeeded, json!({ "path": "x", "depth": 3 }))
    );
    let rows = host.journal.records_of(result.invocation_id).await.unwrap();
    let body: Value = serde_json::from_str(&rows.last().unwrap().record.body).unwrap();
    let first: Value = serde_json::from_str(&rows[0].record.body).unwrap();
    assert_eq!(first["call"]["model_arguments"], json!({ "path": "x" }));
    let mutation = body
        .pointer("/mutations/0")
        .unwrap_or_else(|| panic!("{body:#}"));
    assert_eq!(
        (
            &mutation["source_type"],
            &mutation["source"],
            &mutation["changed_fields"]
        ),
        (
            &json!("runtime"),
            &json!("tools.\"a.echo\".defaults"),
            &json!(["depth"])
        )
    );
    host.call("echo", json!({ "path": "x", "depth": 9 })).await;
    assert_eq!(seen.lock().unwrap()["depth"], 9, "what was sent counts");
    // A default is checked like everything else.
    host.host
        .replace_settings(set("echo", |s| {
            s.input.defaults = object(&json!({ "depth": "deep" }));
        }))
        .await;
    let refused = host.call("echo", json!({ "path": "x" })).await;
    assert_eq!(refused.error_class(), Some(ErrorClass::InvalidArguments));
}

#[tokio::test]
async fn sizes_and_sensitive_fields_can_be_set_for_one_tool() {
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("a.small"))
            .tool(MockNativeTool::named("a.large"))
            .settings(set("small", |s| {
                s.input.argument_bytes = Some(60);
                s.input.sensitive = vec!["/note".to_owned(), "/who/mail".to_owned()];
            }))
    })
    .await;
    let long = json!({ "note": "x".repeat(80) });
    let refused = host.call("small", long.clone()).await;
    assert!(
        refused
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("tools.\"a.small\".argument_bytes"),
        "{refused:?}"
    );
    assert_eq!(host.call("large", long).await.outcome, Outcome::Succeeded);
    // A hook's arguments are held to the same.
    let rewriting = Probe::at(HookEvent::Before, move || {
        Ok(HookOutput::rewrite(json!({ "note": "x".repeat(80) }), ""))
    });
    let hooked = TestHost::build(|b| {
        b.tool(MockNativeTool::named("a.small"))
            .hook(rewriting.standing(HookStanding::Guard))
            .settings(set("small", |s| s.input.argument_bytes = Some(60)))
    })
    .await;
    let refused = hooked.call("small", json!({})).await;
    assert_eq!(refused.error_class(), Some(ErrorClass::HookFailed));
    let result = host
        .call(
            "small",
            json!({ "note": "drop-at-dawn", "who": { "mail": "ada@x" } }),
        )
        .await;
    let rows = host.journal.records_of(result.invocation_id).await.unwrap();
    let text = rows
        .iter()
        .map(|row| row.record.body.as_str())
        .collect::<String>();
    assert!(
        !text.contains("drop-at-dawn") && !text.contains("ada@x") && text.contains("redacted"),
        "{text}"
    );
}

#[tokio::test]
async fn a_ceiling_bounds_the_wish_and_the_timeout_is_what_it_gets_without_one() {
    let tool = FnTool::named("a.left")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: serde_json::Map<String, Value>, context| {
            let left = context
                .deadline()
                .saturating_duration_since(std::time::Instant::now());
            async move { Ok::<_, ToolFailure>(left.as_millis().to_string()) }
        });
    let seconds = Duration::from_secs;
    let host = TestHost::build(|b| {
        b.tool(tool).settings(set("left", |s| {
            s.execution.timeout = Some(seconds(20));
            s.execution.ceiling = Some(seconds(200));
        }))
    })
    .await;
    // Bounds far apart: whatever the machine does in between, the one before is not mistaken for the one after.
    for (wish, over, at_most) in [
        (None, 0, 20_000),
        (Some(100), 20_000, 100_000),
        (Some(500), 100_000, 200_000),
    ] {
        let mut request = host.request("left", json!({}));
        request.times.timeout = wish.map(seconds);
        let left: u64 = host
            .host
            .call(request)
            .await
            .result()
            .model_text()
            .parse()
            .unwrap();
        assert!(over < left && left <= at_most, "{wish:?}: {left}");
    }
}

#[tokio::test]
async fn meanings_of_arguments_and_idempotence_are_the_operators_to_say() {
    let command = ArgumentMeaning::of("cmd", ArgumentKind::Command);
    let host = TestHost::build(|b| {
        b.source(Outside).settings(set("outside.send", |s| {
            s.permission.arguments = vec![command.clone()];
            s.execution.idempotent = Some(true);
        }))
    })
    .await;
    let catalog = host.host.catalog();
    let declaration = catalog.get("outside.send").unwrap().declaration();
    assert_eq!(declaration.interface.permission.arguments, [command]);
    let explained = host
        .host
        .explain(host.request("outside.send", json!({})))
        .await;
    let effects = explained.effects.unwrap();
    assert_eq!(
        (effects.class, effects.idempotent),
        (EffectClass::Unknown, true)
    );
}

#[tokio::test]
async fn a_source_is_trusted_as_far_as_the_operator_says() {
    for (trust, class, uses) in [
        (None, EffectClass::Unknown, 1),
        (Some(SourceTrust::Claims), EffectClass::Unknown, 1),
        (Some(SourceTrust::Full), EffectClass::Write, 1),
        (Some(SourceTrust::None), EffectClass::Unknown, 0),
    ] {
        let settings = OfSource(
            "outside",
            SourceSettings {
                trust,
                ..SourceSettings::default()
            },
        );
        let host = TestHost::build(|b| b.source(Outside).settings(settings)).await;
        let effects = host
            .host
            .explain(host.request("outside.send", json!({})))
            .await
            .effects
            .unwrap();
        assert_eq!(
            (effects.class, effects.uses.len()),
            (class, uses),
            "{trust:?}"
        );
        let catalog = host.host.catalog();
        let arguments = &catalog
            .get("outside.send")
            .unwrap()
            .declaration()
            .interface
            .permission
            .arguments;
        assert_eq!(
            arguments.is_empty(),
            trust == Some(SourceTrust::None),
            "{trust:?}"
        );
    }
    let nobody = OfSource("nobody", SourceSettings::default());
    let host = TestHost::build(|b| b.source(Outside).settings(nobody)).await;
    assert_eq!(
        host.host.notices(),
        [CatalogNotice::UnusedSource {
            name: "nobody".to_owned()
        }]
    );
}

#[tokio::test]
async fn a_profile_of_the_operators_reaches_the_tool_and_is_what_counts() {
    for (set_profile, effective) in [
        (None, SandboxProfile::WorkspaceWrite),
        (Some(SandboxProfile::ReadOnly), SandboxProfile::ReadOnly),
        (Some(SandboxProfile::None), SandboxProfile::WorkspaceWrite),
    ] {
        let host = TestHost::build(|b| {
            b.tool(Runs)
                .settings(set("runs", |s| s.execution.sandbox = set_profile))
        })
        .await;
        let effects = host
            .host
            .explain(host.request("runs", json!({})))
            .await
            .effects
            .unwrap();
        assert_eq!(effects.confined, Some(effective), "{set_profile:?}");
        assert_eq!(
            host.call("runs", json!({})).await.model_text(),
            format!("{set_profile:?}")
        );
    }
}

#[tokio::test]
async fn settings_can_be_replaced_while_calls_run() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = Arc::clone(&gate);
    let began = Arc::new(tokio::sync::Notify::new());
    let started = Arc::clone(&began);
    let tool = FnTool::named("a.slow")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: serde_json::Map<String, Value>, _| {
            let gate = Arc::clone(&opened);
            let started = Arc::clone(&started);
            async move {
                started.notify_one();
                gate.notified().await;
                Ok::<_, ToolFailure>("done".to_owned())
            }
        });
    let host = TestHost::build(|b| b.tool(tool)).await;
    let mut changes = host.host.changes();
    let call = host.host.start(host.request("slow", json!({}))).await;
    began.notified().await;
    changes.mark_unchanged();
    host.host
        .replace_settings(set("slow", |s| s.surface.enabled = Some(false)))
        .await;
    assert!(
        changes.has_changed().unwrap(),
        "sessions are told that the list changed"
    );
    assert_eq!(listed(&host).await, [""; 0]);
    gate.notify_one();
    assert_eq!(
        call.answer().await.result().outcome,
        Outcome::Succeeded,
        "what runs is not dropped"
    );
    assert_ne!(
        host.call("slow", json!({})).await.outcome,
        Outcome::Succeeded
    );
    host.host
        .replace_settings(set("solw", |s| s.surface.hidden = Some(true)))
        .await;
    assert_eq!(
        host.host.notices(),
        [CatalogNotice::UnusedSettings {
            name: "solw".to_owned()
        }]
    );
    host.host
        .replace_settings(set("a.*", |s| s.surface.hidden = Some(true)))
        .await;
    assert_eq!(host.host.notices(), [], "a pattern fits");
}

/// Settings for one source.
struct OfSource(&'static str, SourceSettings);

impl OperatorSettings for OfSource {
    fn of(&self, _: &Declaration, _: &str) -> Option<ToolSettings> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn source(&self, name: &str) -> SourceSettings {
        if name == self.0 {
            self.1.clone()
        } else {
            SourceSettings::default()
        }
    }

    fn source_names(&self) -> Vec<String> {
        vec![self.0.to_owned()]
    }
}

/// Keeps what it was called with.
struct Echo {
    seen: Arc<Mutex<Value>>,
    schema: Value,
}

impl Tool for Echo {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("a.echo".parse().unwrap(), "");
        declaration.input.schema = Arc::new(self.schema.clone());
        declaration
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        *self.seen.lock().unwrap() = call.input.arguments().value().clone();
        Ok(ToolOutput::text("ok"))
    }
}

/// A tool whose processes the host confines.
struct Runs;

impl Tool for Runs {
    fn declaration(&self) -> Declaration {
        Declaration::new("a.runs".parse().unwrap(), "")
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(Effects::of(EffectClass::Execute).confined_by(SandboxProfile::WorkspaceWrite))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text(format!("{:?}", call.context.profile())))
    }
}

/// A source from outside with one tool that says much of itself.
struct Outside;

struct Send;

impl Tool for Send {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("outside.send".parse().unwrap(), "");
        declaration.interface.permission.arguments =
            vec![ArgumentMeaning::of("cmd", ArgumentKind::WritePath)];
        declaration
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(
            Effects::of(EffectClass::Write).using(ResourceKey::path("/w/a"), ResourceAccess::Write),
        )
    }

    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text("sent"))
    }
}

impl Source for Outside {
    fn name(&self) -> &str {
        "outside"
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(vec![Tool::declaration(&Send)])))
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(async move { ToolSet::of(Send).open(session).await })
    }
}
