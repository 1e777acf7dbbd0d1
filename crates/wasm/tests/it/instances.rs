//! How long an instance lives, and who shares one.

use std::sync::Arc;

use serde_json::json;
use toolpost_core::CallRequest;
use toolpost_model::{ErrorClass, ModelInput, Principal, SurfaceRequest};
use toolpost_testkit::TestHost;
use toolpost_wasm::{InstanceUse, WasmSettings};

use crate::workshop::{BEHAVIOURS, Workshop};

fn per_session() -> WasmSettings {
    WasmSettings {
        instances: Some(InstanceUse::PerSession),
        ..WasmSettings::default()
    }
}

async fn count(host: &TestHost) -> String {
    host.call("count", json!({})).await.model_text()
}

#[tokio::test]
async fn a_call_finds_nothing_of_an_earlier_one() {
    let host = Workshop::new()
        .host(BEHAVIOURS, WasmSettings::default())
        .await;
    assert_eq!([count(&host).await, count(&host).await], ["1", "1"]);
}

#[tokio::test]
async fn a_session_finds_what_it_left_and_no_other_session_does() {
    let host = Workshop::new().host(BEHAVIOURS, per_session()).await;
    assert_eq!([count(&host).await, count(&host).await], ["1", "2"]);
    let other = host
        .host
        .open_session(Principal::agent("other"), SurfaceRequest::default())
        .await
        .unwrap();
    let request = CallRequest::new(Arc::clone(&other), "count", ModelInput::value(json!({})));
    assert_eq!(host.host.call(request).await.result().model_text(), "1");
    assert_eq!(count(&host).await, "3");
}

#[tokio::test]
async fn a_component_may_ask_to_be_kept_and_the_operator_decides() {
    let workshop = Workshop::new();
    let asks = BEHAVIOURS.replace(
        r#"{\"name\":\"spin\"}"#,
        r#"{\"name\":\"spin\",\"instance\":\"session\"}"#,
    );
    assert_ne!(asks, BEHAVIOURS);
    let host = workshop.host(&asks, WasmSettings::default()).await;
    assert_eq!([count(&host).await, count(&host).await], ["1", "2"]);
    let per_call = WasmSettings {
        instances: Some(InstanceUse::PerCall),
        ..WasmSettings::default()
    };
    let host = workshop.host(&asks, per_call).await;
    assert_eq!([count(&host).await, count(&host).await], ["1", "1"]);
}

#[tokio::test]
async fn a_failure_that_the_tool_tells_keeps_the_instance_and_one_that_breaks_it_does_not() {
    let host = Workshop::new().host(BEHAVIOURS, per_session()).await;
    assert_eq!(count(&host).await, "1");
    for tool in ["fail", "refuse"] {
        assert_eq!(
            host.call(tool, json!({})).await.error_class(),
            Some(ErrorClass::ExecutionFailed)
        );
    }
    assert_eq!(count(&host).await, "2");
    assert_eq!(
        host.call("trap", json!({})).await.error.unwrap().code,
        "wasm_trap"
    );
    assert_eq!([count(&host).await, count(&host).await], ["1", "2"]);
}

#[tokio::test]
async fn calls_of_a_session_run_on_its_instance_one_after_another() {
    let host = Workshop::new().host(BEHAVIOURS, per_session()).await;
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let request = host.request("count", json!({}));
            let host = host.host.clone();
            tokio::spawn(async move { host.call(request).await.result().model_text() })
        })
        .collect();
    let mut counted = Vec::new();
    for call in calls {
        counted.push(call.await.unwrap());
    }
    counted.sort();
    assert_eq!(counted, ["1", "2", "3", "4", "5", "6", "7", "8"]);
}
