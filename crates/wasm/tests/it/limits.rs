//! What a component cannot do to its host.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_model::{ErrorClass, EventBody, Principal, Stage, ToolResult};
use toolpost_testkit::{CallEventRecorder, TestHost};
use toolpost_wasm::WasmSettings;

use crate::workshop::{BEHAVIOURS, WORLD, Workshop};

/// A call that has a moment.
async fn call_briefly(host: &TestHost, tool: &str) -> ToolResult {
    let mut request = host.request(tool, json!({}));
    request.times.timeout = Some(Duration::from_millis(200));
    host.host.call(request).await.result().clone()
}

/// The host still works after what happened before.
async fn still_works(host: &TestHost) {
    let result = host.call("count", json!({})).await;
    assert!(result.outcome.is_success(), "{:?}", result.error);
}

#[tokio::test]
async fn what_breaks_a_guest_is_told_truthfully_and_breaks_nothing_else() {
    let host = Workshop::new()
        .host(BEHAVIOURS, WasmSettings::default())
        .await;
    for (tool, class, code, message) in [
        (
            "trap",
            ErrorClass::ExecutionFailed,
            "wasm_trap",
            "the component trapped: wasm `unreachable` instruction executed",
        ),
        (
            "deep",
            ErrorClass::ExecutionFailed,
            "wasm_stack_overflow",
            "the stack of the component overflowed",
        ),
        (
            "grow",
            ErrorClass::ExecutionFailed,
            "wasm_out_of_memory",
            "the component exceeded its limit of 64 MiB of memory",
        ),
        (
            "huge",
            ErrorClass::ResultTooLarge,
            "wasm_too_large",
            "the component passed more than 16 MiB at once",
        ),
    ] {
        let error = host.call(tool, json!({})).await.error.unwrap();
        assert_eq!(
            (error.class, &*error.code, error.message.as_str()),
            (class, code, message)
        );
        still_works(&host).await;
    }
}

#[tokio::test]
async fn memory_is_what_the_operator_says() {
    let settings = WasmSettings {
        memory: 20 << 20,
        ..WasmSettings::default()
    };
    let host = Workshop::new().host(BEHAVIOURS, settings).await;
    let error = host.call("grow", json!({})).await.error.unwrap();
    assert!(error.message.contains("20 MiB"), "{}", error.message);
    let too_little = WasmSettings {
        memory: 1 << 10,
        ..WasmSettings::default()
    };
    let failure = Workshop::new()
        .load(BEHAVIOURS, too_little)
        .await
        .err()
        .unwrap();
    assert!(
        failure
            .message
            .contains("exceeded its limit of 1 MiB of memory"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_deadline_ends_a_guest_that_computes_and_one_that_waits() {
    for (fixture, tool) in [(BEHAVIOURS, "spin"), (WORLD, "sleep")] {
        let host = Workshop::new().host(fixture, WasmSettings::default()).await;
        let result = call_briefly(&host, tool).await;
        assert_eq!(
            result.error_class(),
            Some(ErrorClass::Timeout),
            "{tool}: {:?}",
            result.error
        );
    }
}

#[tokio::test]
async fn a_cancel_ends_a_guest_that_computes_and_one_that_waits() {
    for (fixture, tool) in [(BEHAVIOURS, "spin"), (WORLD, "sleep")] {
        let host = Workshop::new().host(fixture, WasmSettings::default()).await;
        let (listener, mut events) = CallEventRecorder::new(64);
        let request = host.request(tool, json!({})).notify(Arc::new(listener));
        let running = host.host.start(request).await;
        while !matches!(
            events.next().await.unwrap().body,
            EventBody::Stage {
                stage: Stage::Execute
            }
        ) {}
        assert!(
            host.host
                .cancel(running.invocation_id(), &Principal::agent("test"))
        );
        let answer = running.answer().await;
        assert_eq!(
            answer.result().error_class(),
            Some(ErrorClass::Canceled),
            "{tool}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn guests_that_compute_let_others_run_on_the_same_thread() {
    let host = Workshop::new()
        .host(BEHAVIOURS, WasmSettings::default())
        .await;
    let mut spinning = Vec::new();
    for _ in 0..3 {
        spinning.push(host.host.start(host.request("spin", json!({}))).await);
    }
    let request = host.request("count", json!({}));
    let calling = host.host.clone();
    let counted =
        tokio::spawn(async move { calling.call(request).await.result().outcome.is_success() });
    assert!(counted.await.unwrap());
    for call in spinning {
        assert!(
            host.host
                .cancel(call.invocation_id(), &Principal::agent("test")),
            "it has ended by itself"
        );
        assert_eq!(
            call.answer().await.result().error_class(),
            Some(ErrorClass::Canceled)
        );
    }
}

#[tokio::test]
async fn many_calls_at_once_all_get_their_turn() {
    let host = Workshop::new()
        .host(BEHAVIOURS, WasmSettings::default())
        .await;
    let calls: Vec<_> = (0..300)
        .map(|_| {
            let request = host.request("count", json!({}));
            let host = host.host.clone();
            tokio::spawn(async move { host.call(request).await.result().model_text() })
        })
        .collect();
    for call in calls {
        assert_eq!(
            call.await.unwrap(),
            "1",
            "a fresh instance counts its first call"
        );
    }
}
