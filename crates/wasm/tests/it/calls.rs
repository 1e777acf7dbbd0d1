//! What a call of a component's tool gives back.

use serde_json::{Map, json};
use toolpost_model::{ErrorClass, Outcome, Source as _};
use toolpost_testkit::TestHost;
use toolpost_wasm::WasmSettings;

use crate::workshop::{BEHAVIOURS, ECHO, Workshop};

#[tokio::test]
async fn a_tool_of_amplifiers_world_is_listed_and_called() {
    let workshop = Workshop::new();
    let module = workshop.load(ECHO, WasmSettings::default()).await.unwrap();
    let [declaration] = module.declarations() else {
        panic!("one tool")
    };
    assert_eq!(declaration.tool_id.as_str(), "tool-fixture.echo");
    assert_eq!(declaration.toolkit, "tool-fixture");
    assert_eq!(declaration.description, "Gives its arguments back.");
    assert_eq!(
        declaration.input.schema["properties"]["message"]["type"],
        "string"
    );
    assert_eq!(declaration.external_mappings[0].native_id, "echo");
    assert_eq!(module.problems(), []);

    let host = TestHost::build(|builder| builder.source(module)).await;
    let arguments = json!({ "message": "héllo", "list": [1, 2.5, null] });
    let result = host.call("echo", arguments.clone()).await;
    assert_eq!(result.outcome, Outcome::Succeeded, "{:?}", result.error);
    assert_eq!(result.structured_content, Some(arguments));
    let wrong = host.call("echo", json!({ "message": 3 })).await;
    assert_eq!(
        wrong.error_class(),
        Some(ErrorClass::InvalidArguments),
        "the schema is not applied"
    );
}

#[tokio::test]
async fn functions_are_found_at_the_root_and_in_any_version_one() {
    let workshop = Workshop::new();
    let export = r#"(export "amplifier:modules/tool@1.0.0" (instance $tool))"#;
    assert!(ECHO.contains(export));
    for instead in [
        r#"(export "get-spec" (func $get-spec)) (export "execute" (func $execute))"#,
        r#"(export "amplifier:modules/tool@1.4.2" (instance $tool))"#,
        r#"(export "amplifier:modules/tool" (instance $tool))"#,
    ] {
        let host = workshop
            .host(&ECHO.replace(export, instead), WasmSettings::default())
            .await;
        let result = host.call("echo", json!({ "message": "x" })).await;
        assert_eq!(
            result.structured_content,
            Some(json!({ "message": "x" })),
            "{instead}"
        );
    }
}

#[tokio::test]
async fn answers_and_refusals_are_told_apart() {
    let host = Workshop::new()
        .host(BEHAVIOURS, WasmSettings::default())
        .await;
    let failed = host.call("fail", json!({})).await;
    assert_eq!(failed.error_class(), Some(ErrorClass::ExecutionFailed));
    let error = failed.error.unwrap();
    assert_eq!(error.message, "it broke");
    assert_eq!(
        error.details.unwrap()["error"],
        json!({ "message": "it broke", "type": "odd" })
    );

    let refused = host.call("refuse", json!({})).await.error.unwrap();
    assert_eq!(
        (refused.class, refused.message.as_str()),
        (ErrorClass::ExecutionFailed, "I cannot work with that")
    );

    let babbled = host.call("babble", json!({})).await.error.unwrap();
    assert_eq!(babbled.code, "wasm_invalid_result");
}

#[tokio::test]
async fn several_tools_share_a_component_and_its_configuration() {
    let workshop = Workshop::new();
    let config: Map<_, _> = [("unit".to_owned(), json!("metre"))].into_iter().collect();
    let module = workshop
        .load_with(BEHAVIOURS, &config, WasmSettings::default())
        .await
        .unwrap();
    assert_eq!(module.declarations().len(), 10);
    assert_eq!(module.problems(), []);
    let host = TestHost::build(|builder| builder.source(module)).await;
    let result = host.call("options", json!({})).await;
    assert_eq!(result.structured_content, Some(json!({ "unit": "metre" })));
    // Each instance is told, not only the first.
    assert_eq!(
        host.call("options", json!({})).await.structured_content,
        result.structured_content
    );
}

#[tokio::test]
async fn a_component_without_a_plan_gets_an_empty_configuration() {
    let host = Workshop::new()
        .host(BEHAVIOURS, WasmSettings::default())
        .await;
    assert_eq!(
        host.call("options", json!({})).await.structured_content,
        Some(json!({}))
    );
}
