//! What a component can reach: nothing, but for what it is granted.

use std::{path::PathBuf, sync::Arc};

use serde_json::json;
use toolpost_model::{
    EffectClass, EventBody, OutputStream, ResourceAccess, Source as _, TraceContext,
};
use toolpost_testkit::CallEventRecorder;
use toolpost_wasm::{DirectoryAccess, DirectoryGrant, InstanceUse, WasmSettings};

use crate::workshop::{ECHO, WORLD, Workshop};

fn grant(host: impl Into<PathBuf>, access: DirectoryAccess) -> DirectoryGrant {
    DirectoryGrant {
        host: host.into(),
        guest: "/data".to_owned(),
        access,
    }
}

#[tokio::test]
async fn beside_the_span_of_its_call_a_component_sees_no_variable_and_no_folder_unless_it_is_granted()
 {
    let workshop = Workshop::new();
    let host = workshop.host(WORLD, WasmSettings::default()).await;
    let seen = host.call("look", json!({})).await;
    assert_eq!(
        seen.structured_content,
        Some(json!({ "variables": 1, "folders": 0 }))
    );

    let settings = WasmSettings {
        directories: vec![grant(workshop.folder.path(), DirectoryAccess::ReadOnly)],
        environment: [("A", "1"), ("B", "2")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        ..WasmSettings::default()
    };
    let host = workshop.host(WORLD, settings).await;
    let seen = host.call("look", json!({})).await;
    assert_eq!(
        seen.structured_content,
        Some(json!({ "variables": 3, "folders": 1 }))
    );
}

#[tokio::test]
async fn an_instance_of_one_call_runs_under_its_span_and_a_kept_one_under_none() {
    let workshop = Workshop::new();
    let host = workshop.host(WORLD, WasmSettings::default()).await;
    for _ in 0..2 {
        let result = host.call("trace", json!({})).await;
        let span = TraceContext::of_call(result.invocation_id).traceparent();
        assert_eq!(result.model_text(), span);
    }
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut request = host.request("look", json!({}));
    request.identity.trace = TraceContext::parse(parent, Some("vendor=1")).map(Box::new);
    let seen = host
        .host
        .call(request)
        .await
        .result()
        .structured_content
        .clone();
    assert_eq!(
        seen,
        Some(json!({ "variables": 2, "folders": 0 })),
        "the state of the trace too"
    );

    // Its variables are fixed when it is made: the span of the first call would be told to every later one.
    let kept = WasmSettings {
        instances: Some(InstanceUse::PerSession),
        ..WasmSettings::default()
    };
    let host = workshop.host(WORLD, kept).await;
    let seen = host.call("look", json!({})).await.structured_content;
    assert_eq!(seen, Some(json!({ "variables": 0, "folders": 0 })));
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_told_when_the_module_is_loaded() {
    let settings = WasmSettings {
        directories: vec![grant("/nowhere/at/all", DirectoryAccess::ReadOnly)],
        ..WasmSettings::default()
    };
    let failure = Workshop::new().load(ECHO, settings).await.err().unwrap();
    assert!(
        failure
            .message
            .contains("its granted folder `/nowhere/at/all`"),
        "{failure}"
    );
}

#[tokio::test]
async fn what_calls_can_do_follows_from_the_grants() {
    let workshop = Workshop::new();
    let folder = workshop.folder.path();
    let with = |directories: Vec<DirectoryGrant>, network| WasmSettings {
        directories,
        network,
        ..WasmSettings::default()
    };
    for (settings, class) in [
        (with(vec![], false), EffectClass::Read),
        (
            with(vec![grant(folder, DirectoryAccess::ReadOnly)], false),
            EffectClass::Read,
        ),
        (
            with(vec![grant(folder, DirectoryAccess::ReadWrite)], false),
            EffectClass::Write,
        ),
        (
            with(vec![grant(folder, DirectoryAccess::ReadOnly)], true),
            EffectClass::Network,
        ),
    ] {
        let module = workshop.load(ECHO, settings.clone()).await.unwrap();
        assert_eq!(
            module.declarations()[0].interface.safety.class.worst(),
            class
        );
        let scope = toolpost_model::SessionScope {
            session_id: toolpost_model::SessionId::new("s"),
            principal: toolpost_model::Principal::agent("a"),
        };
        let session = module.open(&scope).await.unwrap();
        let input = toolpost_model::Arguments::from_value(json!({}));
        let id = &module.declarations()[0].tool_id;
        let effects = session
            .effects(id, &toolpost_model::CallInput::new(input))
            .unwrap();
        let uses: Vec<(&str, ResourceAccess)> = effects
            .uses
            .iter()
            .map(|used| (used.key.as_str(), used.access))
            .collect();
        let real = format!("path:{}", folder.canonicalize().unwrap().display());
        let expected: Vec<(&str, ResourceAccess)> = settings
            .directories
            .iter()
            .map(|grant| match grant.access {
                DirectoryAccess::ReadOnly => (real.as_str(), ResourceAccess::Read),
                DirectoryAccess::ReadWrite => (real.as_str(), ResourceAccess::Write),
            })
            .collect();
        assert_eq!((effects.class, uses), (class, expected));
    }
}

#[tokio::test]
async fn what_a_component_prints_becomes_events_without_terminal_sequences() {
    let host = Workshop::new().host(WORLD, WasmSettings::default()).await;
    let (listener, events) = CallEventRecorder::new(64);
    let request = host.request("print", json!({})).notify(Arc::new(listener));
    assert!(host.host.call(request).await.result().outcome.is_success());
    let printed: Vec<_> = events
        .all()
        .await
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::Output(chunk) => Some((chunk.stream, chunk.text, chunk.lines)),
            _ => None,
        })
        .collect();
    assert_eq!(printed, [(OutputStream::Stderr, "a line\n".to_owned(), 1)]);
}

#[tokio::test]
async fn what_a_component_says_before_it_breaks_is_shown_with_the_failure() {
    let host = Workshop::new().host(WORLD, WasmSettings::default()).await;
    let died = host.call("die", json!({})).await;
    let text = died.model_text();
    assert!(
        text.contains("the component trapped") && text.contains("a line"),
        "{text}"
    );
    let left = host.call("exit", json!({})).await.error.unwrap();
    assert_eq!(
        (&*left.code, left.message.as_str()),
        ("wasm_exit", "the component exited with status 1")
    );
}
