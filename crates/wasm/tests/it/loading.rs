//! Why a module is not there.

use std::time::Duration;

use serde_json::{Map, json};
use sha2::{Digest as _, Sha256};
use toolpost_amplifier::{LoadFailure, LoadReason};
use toolpost_model::Source as _;
use toolpost_wasm::WasmSettings;

use crate::workshop::{BEHAVIOURS, ECHO, Workshop, planned};

const TOOL: &str = r#"(export "amplifier:modules/tool@1.0.0" (instance $tool))"#;

async fn failure_of(bytes: &[u8]) -> LoadFailure {
    let workshop = Workshop::new();
    let path = workshop.file(bytes);
    let loaded = workshop
        .modules
        .load(
            &planned(&path, &Map::new()),
            &path,
            None,
            WasmSettings::default(),
        )
        .await;
    loaded.err().expect("it cannot be loaded")
}

/// Bytes that cannot be loaded, why, and a part of what is said.
async fn check(bytes: &[u8], reason: LoadReason, said: &str) {
    let failure = failure_of(bytes).await;
    assert!(
        failure.reason == reason && failure.message.contains(said),
        "{failure:?}"
    );
    assert_eq!(failure.module.as_str(), "tool-fixture");
    assert!(
        failure
            .origin
            .is_some_and(|origin| origin.ends_with("module.wasm"))
    );
}

async fn check_text(text: &str, reason: LoadReason, said: &str) {
    check(&wat::parse_str(text).unwrap(), reason, said).await;
}

#[tokio::test]
async fn what_is_not_a_component_is_told_by_name() {
    let layout = LoadReason::InvalidPackageLayout;
    check(b"", layout, "it is not WebAssembly").await;
    check(b"MZ\x90 and so on", layout, "it is not WebAssembly").await;
    check(b"  (component)", layout, "it is WebAssembly as text").await;
    check(
        &wat::parse_str("(module)").unwrap(),
        layout,
        "it is a core module",
    )
    .await;
    check(
        b"\0asm\x0a\0\x01\0",
        layout,
        "its version of the WebAssembly format",
    )
    .await;
    let whole = wat::parse_str(ECHO).unwrap();
    check(&whole[..whole.len() / 2], layout, "it cannot be compiled").await;
}

#[tokio::test]
async fn components_of_another_kind_are_told_by_name() {
    let entry = LoadReason::InvalidEntryPoint;
    for kind in [
        "provider",
        "hook-handler",
        "orchestrator",
        "context-manager",
        "approval-provider",
    ] {
        let export = format!(r#"(export "amplifier:modules/{kind}@1.0.0" (instance $tool))"#);
        let said = format!("it is a component of the kind `{kind}`, not a tool");
        check_text(&ECHO.replace(TOOL, &export), entry, &said).await;
    }
    check_text("(component)", entry, "it is not a tool: it exports nothing").await;
    let newer = r#"(export "amplifier:modules/tool@2.0.0" (instance $tool))"#;
    check_text(
        &ECHO.replace(TOOL, newer),
        entry,
        "it exports version 2.0.0 of `amplifier:modules/tool`",
    )
    .await;
    let half = r#"(export "get-spec" (func $get-spec))"#;
    check_text(&ECHO.replace(TOOL, half), entry, "it exports only get-spec").await;
}

#[tokio::test]
async fn functions_of_other_types_are_refused_when_the_module_is_loaded() {
    let text = ECHO.replace(
        r#"(func $execute (param "input" (list u8)) (result (result (list u8) (error string)))"#,
        r#"(func $execute (param "input" string) (result (result (list u8) (error string)))"#,
    );
    assert_ne!(text, ECHO);
    check_text(
        &text,
        LoadReason::InvalidEntryPoint,
        "the type of its function `execute` does not match",
    )
    .await;
}

#[tokio::test]
async fn what_a_component_needs_and_the_host_has_not_is_named() {
    let text = ECHO.replacen(
        "(component",
        r#"(component (import "wasi:http/unknown@0.2.0" (instance (export "fetch" (func))))"#,
        1,
    );
    check_text(
        &text,
        LoadReason::ValidationFailed,
        "wasi:http/unknown@0.2.0",
    )
    .await;
}

#[tokio::test]
async fn a_component_that_does_not_answer_is_not_waited_for() {
    let text = ECHO.replace(
        r#"(func (export "get-spec") (result i32)"#,
        r#"(func (export "get-spec") (result i32) (loop $for-ever (br $for-ever))"#,
    );
    assert_ne!(text, ECHO);
    let settings = WasmSettings {
        load_time: Duration::from_millis(200),
        ..WasmSettings::default()
    };
    let failure = Workshop::new().load(&text, settings).await.err().unwrap();
    assert_eq!(failure.reason, LoadReason::ValidationFailed);
    assert!(
        failure.message.contains("it did not answer in time"),
        "{failure}"
    );
}

#[tokio::test]
async fn bytes_that_are_not_those_of_the_manifest_are_refused() {
    let workshop = Workshop::new();
    let path = workshop.component(ECHO);
    let bytes = std::fs::read(&path).unwrap();
    let digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let module = planned(&path, &Map::new());
    for right in [digest.clone(), digest.to_uppercase()] {
        let loaded = workshop
            .modules
            .load(&module, &path, Some(&right), WasmSettings::default())
            .await;
        assert!(loaded.is_ok());
    }
    let wrong = format!("0{}", &digest[1..]).replacen("00", "11", 1);
    let failure = workshop
        .modules
        .load(&module, &path, Some(&wrong), WasmSettings::default())
        .await
        .err()
        .unwrap();
    assert_eq!(failure.reason, LoadReason::InvalidModuleMetadata);
    assert!(
        failure.message.contains(&digest) && failure.message.contains(&wrong),
        "{failure}"
    );
}

#[tokio::test]
async fn a_file_that_is_not_there_is_a_missing_source() {
    let workshop = Workshop::new();
    let path = workshop.folder.path().join("nothing.wasm");
    let loaded = workshop
        .modules
        .load(
            &planned(&path, &Map::new()),
            &path,
            None,
            WasmSettings::default(),
        )
        .await;
    assert_eq!(loaded.err().unwrap().reason, LoadReason::MissingSource);
}

#[tokio::test]
async fn a_configuration_that_nobody_takes_is_a_problem_and_one_that_is_refused_a_failure() {
    let workshop = Workshop::new();
    let config: Map<_, _> = [("key".to_owned(), json!("a value"))].into_iter().collect();
    let module = workshop
        .load_with(ECHO, &config, WasmSettings::default())
        .await
        .unwrap();
    let [problem] = module.problems().try_into().unwrap();
    assert_eq!(
        (problem.part.as_str(), problem.code.as_str()),
        ("tool-fixture", "config_ignored")
    );

    let long: Map<_, _> = [("key".to_owned(), json!("x".repeat(100)))]
        .into_iter()
        .collect();
    let failure = workshop
        .load_with(BEHAVIOURS, &long, WasmSettings::default())
        .await
        .err()
        .unwrap();
    assert_eq!(failure.reason, LoadReason::ValidationFailed);
    assert!(
        failure
            .message
            .contains("it does not accept its configuration: more than I can take"),
        "{failure}"
    );
}
