//! Components that look at events.

use std::time::{Duration, Instant};

use serde_json::{Map, json};
use toolpost_amplifier::{
    Coordinator, HookAction, HookResult, LoadFailure, LoadReason, ModuleId, ModuleKind,
    PlannedModule, mount,
};
use toolpost_wasm::{WasmHook, WasmSettings};

use crate::workshop::{ECHO, HOOK, Workshop, planned};

async fn load(text: &str, settings: WasmSettings) -> Result<WasmHook, LoadFailure> {
    let workshop = Workshop::new();
    let path = workshop.component(text);
    let planned = PlannedModule {
        kind: ModuleKind::Hook,
        ..planned(&path, &Map::new())
    };
    workshop
        .modules
        .load_hook(&planned, &path, None, settings)
        .await
}

/// The answer of a hook to `tool:pre`, asked as a host asks.
async fn answer(text: &str, settings: WasmSettings) -> HookResult {
    let hook = load(text, settings)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let (coordinator, _switch) = Coordinator::new(Map::new());
    let id = ModuleId::new("hooks-fixture");
    mount(&coordinator, ModuleKind::Hook, &id, &hook, Map::new())
        .await
        .unwrap();
    coordinator
        .hooks()
        .emit("tool:pre", json!({ "tool_name": "x", "tool_input": {} }))
        .await
}

#[tokio::test]
async fn a_hook_is_asked_about_the_events_that_it_names() {
    let hook = load(HOOK, WasmSettings::default()).await.unwrap();
    assert_eq!(hook.events().collect::<Vec<_>>(), ["tool:pre"]);
    let answer = answer(HOOK, WasmSettings::default()).await;
    assert_eq!(
        (answer.action, answer.reason.as_deref()),
        (HookAction::Deny, Some("denied by a component"))
    );
}

#[tokio::test]
async fn a_hook_that_answers_nonsense_denies() {
    let text = HOOK.replace(
        "{\\\"action\\\":\\\"deny\\\",",
        "{\\\"action\\\":\\\"maybe\\\",",
    );
    assert_ne!(text, HOOK);
    assert_eq!(
        answer(&text, WasmSettings::default()).await.action,
        HookAction::Deny
    );
    let text = HOOK.replace("{\\\"action\\\"", "[\\\"action\\\"");
    assert_eq!(
        answer(&text, WasmSettings::default()).await.action,
        HookAction::Deny
    );
}

#[tokio::test]
async fn a_hook_that_loops_is_stopped_in_its_time() {
    let head = r#"(func (export "handle") (param i32 i32) (result i32)"#;
    let text = HOOK.replace(head, &format!("{head} (loop $for-ever (br $for-ever))"));
    assert_ne!(text, HOOK);
    let settings = WasmSettings {
        event_time: Duration::from_millis(200),
        ..WasmSettings::default()
    };
    let begun = Instant::now();
    // Amplifier passes over a handler that breaks where a module emits the event; at calls the standing decides.
    assert_eq!(answer(&text, settings).await.action, HookAction::Continue);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let head = r#"(func (export "get-subscriptions") (param i32 i32) (result i32)"#;
    let text = HOOK.replace(head, &format!("{head} (loop $for-ever (br $for-ever))"));
    let settings = WasmSettings {
        load_time: Duration::from_millis(200),
        ..WasmSettings::default()
    };
    let failure = load(&text, settings).await.err().unwrap();
    assert!(
        failure.message.contains("it did not answer in time"),
        "{failure}"
    );
    assert_eq!(failure.kind, ModuleKind::Hook);
}

#[tokio::test]
async fn a_tool_is_no_hook() {
    let failure = load(ECHO, WasmSettings::default()).await.err().unwrap();
    assert_eq!(failure.reason, LoadReason::InvalidEntryPoint);
    assert!(
        failure.message.contains("of the kind `tool`, not a hook"),
        "{failure}"
    );
}
