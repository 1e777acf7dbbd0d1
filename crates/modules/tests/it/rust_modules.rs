//! Modules in Rust behind a whole host: what of them is offered, what a session has for itself, what their hooks do, what
//! they hear.

mod events;
mod hooks;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolpost_amplifier::{
    Coordinator, HookFailure, HookResult, Module, MountError, MountReturn, Tool, ToolError,
    ToolResult,
};
use toolpost_core::{CallRequest, Host};
use toolpost_model::{BoxFuture, Disposition, ModelInput, Outcome, Principal, SurfaceRequest};
use toolpost_modules::{RustModule, RustModules};
use toolpost_testkit::{TestHost, amplifier::MockTool};

/// A module that mounts these tools.
pub(crate) fn offering(tools: impl IntoIterator<Item = MockTool>) -> impl Module {
    let tools: Vec<MockTool> = tools.into_iter().collect();
    move |coordinator: Coordinator, _: Map<String, Value>| {
        let tools = tools.clone();
        async move {
            for tool in tools {
                coordinator.mount(Arc::new(tool))?;
            }
            Ok(MountReturn::Nothing)
        }
    }
}

/// A module with one handler.
pub(crate) fn handling(
    event: &'static str,
    says: impl Fn(&Value) -> Result<HookResult, HookFailure> + Send + Sync + Clone + 'static,
) -> impl Module {
    move |coordinator: Coordinator, _: Map<String, Value>| {
        let says = says.clone();
        async move {
            let handler = move |_: String, data: Value| std::future::ready(says(&data));
            coordinator.hooks().register(event, 0, "handler", handler);
            Ok(MountReturn::Nothing)
        }
    }
}

/// A set of these modules.
pub(crate) fn set(modules: Vec<RustModule>) -> RustModules {
    RustModules::new("rust", modules)
}

pub(crate) async fn host(modules: &RustModules) -> TestHost {
    TestHost::build(|builder| modules.join(builder)).await
}

fn problems(host: &Host) -> Vec<String> {
    host.notices().iter().map(ToString::to_string).collect()
}

/// A schema that no checker takes.
struct Broken;

impl Tool for Broken {
    fn name(&self) -> &str {
        "broken schema"
    }

    fn description(&self) -> &str {
        "takes anything"
    }

    fn input_schema(&self) -> Map<String, Value> {
        json!({ "type": "nonsense" }).as_object().unwrap().clone()
    }

    fn execute(&self, input: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolResult::success(input))))
    }
}

#[tokio::test]
async fn the_good_ones_serve_and_the_others_are_told() {
    let broken = |coordinator: Coordinator, _: Map<String, Value>| async move {
        coordinator.mount(Arc::new(Broken))?;
        Ok(MountReturn::Nothing)
    };
    let modules = set(vec![
        RustModule::tool(
            "tool-good",
            offering([
                MockTool::new("one", "1"),
                MockTool::new("two", json!({ "b": 1, "a": 2 })),
            ]),
        ),
        RustModule::tool("tool-empty", offering([])),
        RustModule::tool(
            "tool-failing",
            |_: Coordinator, _: Map<String, Value>| async { Err(MountError::other("no key")) },
        ),
        RustModule::tool("tool-late", offering([MockTool::new("one", "another")])),
        RustModule::tool(
            "tool-panicking",
            |coordinator: Coordinator, _: Map<String, Value>| async move {
                coordinator.mount(Arc::new(MockTool::new("half", "never")))?;
                panic!("no")
            },
        ),
        RustModule::tool(
            "tool-returning",
            |_: Coordinator, _: Map<String, Value>| async {
                Ok(MountReturn::tool(MockTool::new("returned", "here")))
            },
        ),
        RustModule::tool("tool-odd", broken),
    ]);
    let host = host(&modules).await;
    let names: Vec<String> = host
        .host
        .catalog()
        .entries()
        .iter()
        .map(|entry| entry.id().to_string())
        .collect();
    let expected = [
        "tool-good.one",
        "tool-good.two",
        "tool-returning.returned",
        "tool-odd.broken_schema",
    ];
    assert_eq!(names, expected);
    let told = problems(&host.host).join("\n");
    for part in [
        "`tool-empty` declined: its `mount` returned nothing and mounted nothing",
        "`tool-failing` is not available: no key",
        "the tool name `one` is taken by the module `tool-good`",
        "it panicked while it was mounted",
        "the schema of its tool `broken schema` is invalid",
    ] {
        assert!(told.contains(part), "{part}\nin {told}");
    }
    assert_eq!(host.call("one", json!({})).await.model_text(), "1");
    let result = host.call("two", json!({})).await;
    assert_eq!(result.model_text(), r#"{"b": 1, "a": 2}"#);
    assert_eq!(result.structured_content, Some(json!({ "a": 2, "b": 1 })));
    assert_eq!(
        host.call("broken_schema", json!({ "x": 1 })).await.outcome,
        Outcome::Succeeded
    );
}

/// Mounts a tool, and breaks down when all are mounted: at once, or when it is awaited.
struct Unready {
    at_once: bool,
}

impl Module for Unready {
    fn mount(
        &self,
        _: Coordinator,
        _: Map<String, Value>,
    ) -> BoxFuture<'_, Result<MountReturn, MountError>> {
        let name = if self.at_once { "at_once" } else { "awaited" };
        Box::pin(std::future::ready(Ok(MountReturn::tool(MockTool::new(
            name, "here",
        )))))
    }

    fn on_session_ready(&self, _: Coordinator) -> BoxFuture<'_, Result<(), MountError>> {
        assert!(!self.at_once, "not ready");
        Box::pin(async { panic!("not ready either") })
    }
}

#[tokio::test]
async fn a_panic_when_all_are_mounted_stays_with_its_module() {
    let modules = set(vec![
        RustModule::tool("tool-a", Unready { at_once: true }),
        RustModule::tool("tool-b", Unready { at_once: false }),
    ]);
    let host = host(&modules).await;
    for tool in ["at_once", "awaited"] {
        assert_eq!(host.call(tool, json!({})).await.model_text(), "here");
    }
}

#[tokio::test]
async fn a_failure_is_a_result_with_all_that_the_tool_said() {
    let error = json!({ "message": "no such file", "type": "FileNotFoundError", "errno": 2 });
    let failing = ToolResult::failure_of(error.as_object().unwrap().clone());
    let unable = ToolError::failed("the disk is gone");
    let modules = set(vec![RustModule::tool(
        "tool-files",
        offering([
            MockTool::new("fails", "").answering(Ok(failing)),
            MockTool::new("breaks", "").answering(Err(unable)),
            MockTool::new("silent", Value::Null),
        ]),
    )]);
    let host = host(&modules).await;
    let result = host.call("fails", json!({})).await;
    let told = result.error.unwrap();
    assert_eq!(
        (result.outcome, told.message.as_str()),
        (Outcome::Failed, "no such file")
    );
    assert_eq!(told.details, Some(json!({ "error": error })));
    let result = host.call("breaks", json!({})).await;
    assert_eq!(result.error.unwrap().message, "the disk is gone");
    let result = host.call("silent", json!({})).await;
    assert_eq!(
        (result.model_text().as_str(), result.disposition),
        ("Success", Disposition::Inline)
    );
}

/// Counts mounts, and notes what becomes of each.
#[derive(Clone, Default)]
struct Ledger {
    mounts: Arc<AtomicUsize>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Ledger {
    fn module(&self) -> impl Module + use<> {
        let ledger = self.clone();
        move |coordinator: Coordinator, _: Map<String, Value>| {
            let ledger = ledger.clone();
            async move {
                let number = ledger.mounts.fetch_add(1, Ordering::SeqCst) + 1;
                coordinator.mount(Arc::new(MockTool::new("which", number)))?;
                for step in ["first", "second"] {
                    let lines = Arc::clone(&ledger.lines);
                    let cancellation = coordinator.cancellation().clone();
                    coordinator.register_cleanup(move || async move {
                        assert!(
                            cancellation.is_canceled(),
                            "the session is told to stop first"
                        );
                        lines.lock().unwrap().push(format!("{number} {step}"));
                        if step == "first" {
                            Err(MountError::other("could not"))
                        } else {
                            Ok(())
                        }
                    });
                }
                Ok(MountReturn::Nothing)
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn each_session_has_a_mount_of_its_own_and_the_first_takes_the_one_that_is_there() {
    let ledger = Ledger::default();
    let modules = set(vec![RustModule::tool("tool-which", ledger.module())]);
    let host = host(&modules).await.host;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(
            host.open_session(Principal::agent("me"), SurfaceRequest::default())
                .await
                .unwrap(),
        );
    }
    let mut answers = Vec::new();
    for place in [0, 1, 2, 0, 1] {
        let request = CallRequest::new(
            Arc::clone(&sessions[place]),
            "which",
            ModelInput::value(json!({})),
        );
        answers.push(host.call(request).await.result().model_text());
    }
    assert_eq!(answers, ["1", "2", "3", "1", "2"]);
    assert_eq!(ledger.mounts.load(Ordering::SeqCst), 3);

    host.close_session(&sessions[1]).await.unwrap();
    assert_eq!(modules.finish().await, ["could not"]);
    assert_eq!(ledger.lines(), ["2 second", "2 first"]);
    host.shutdown(Duration::from_secs(5)).await;
    modules.finish().await;
    let mut lines = ledger.lines();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "1 first", "1 second", "2 first", "2 second", "3 first", "3 second"
        ]
    );
}

#[tokio::test]
async fn what_no_session_took_is_cleaned_up_at_the_end() {
    let ledger = Ledger::default();
    let modules = set(vec![RustModule::tool("tool-which", ledger.module())]);
    let host = host(&modules).await.host;
    host.shutdown(Duration::from_secs(5)).await;
    assert_eq!(modules.finish().await, ["could not"]);
    assert_eq!(ledger.lines(), ["1 second", "1 first"]);
    assert!(modules.finish().await.is_empty());
}

#[tokio::test]
async fn modules_find_what_the_host_offers() {
    let looking = |coordinator: Coordinator, config: Map<String, Value>| async move {
        let folder = coordinator
            .capability("session.working_dir")
            .unwrap_or_default();
        let own = coordinator.config().get("tool-looking").cloned();
        Ok(MountReturn::tool(MockTool::new(
            "look",
            json!({ "folder": folder, "config": config, "plan": own }),
        )))
    };
    let config = json!({ "depth": 2 }).as_object().unwrap().clone();
    let offered = json!({ "session.working_dir": "/w" })
        .as_object()
        .unwrap()
        .clone();
    let modules = set(vec![
        RustModule::tool("tool-looking", looking).config(config),
    ])
    .capabilities(offered);
    let result = host(&modules).await.call("look", json!({})).await;
    let depth = json!({ "depth": 2 });
    assert_eq!(
        result.structured_content,
        Some(json!({ "folder": "/w", "config": depth, "plan": depth }))
    );
}
