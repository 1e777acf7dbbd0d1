//! Tools behind gRPC, end to end: real services written with grpcio, and modules that are programs, started by the real
//! launcher.

pub(crate) mod peer;
mod program;

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_amplifier::{ModuleId, ModuleKind, PlannedModule};
use toolpost_model::{ErrorClass, Principal, ResultContent, ToolError, ToolResult};
use toolpost_modules::{GrpcModule, GrpcSettings, ServiceHealth};
use toolpost_testkit::TestHost;

use self::peer::{Peer, Running, generated, run_python};
use crate::workshop::PATIENCE;

fn planned(config: &Value) -> PlannedModule {
    let id = ModuleId::new("tool-worker");
    let place = "plan.yaml: tools[0]".to_owned();
    let config = config.as_object().unwrap().clone();
    PlannedModule {
        kind: ModuleKind::Tool,
        id,
        source: None,
        config,
        place,
    }
}

async fn host_of(peer: &Peer, config: Value) -> TestHost {
    let module =
        GrpcModule::service(&planned(&config), &peer.endpoint(), GrpcSettings::default()).unwrap();
    TestHost::build(|builder| builder.source(module)).await
}

fn error(result: &ToolResult) -> &ToolError {
    result
        .error
        .as_ref()
        .unwrap_or_else(|| panic!("it should have failed: {result:?}"))
}

#[test]
fn the_contract_is_the_one_that_amplifier_ships() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = folder.path().join("ours.pb");
    let proto = peer::root().join("docs/tool_service.proto");
    let out = format!("--descriptor_set_out={}", compiled.display());
    let include = format!("-I{}", proto.parent().unwrap().display());
    run_python(&[
        "-m",
        "grpc_tools.protoc",
        &include,
        &out,
        proto.to_str().unwrap(),
    ]);
    let script = peer::scripts().join("contract.py");
    run_python(&[script.to_str().unwrap(), compiled.to_str().unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_written_with_grpcio_works() {
    let folder = generated();
    let peer = Peer::start(folder.path(), 0);
    let host = host_of(&peer, json!({ "place": "here", "ways": [1, 2] })).await;
    let declaration = host
        .host
        .show(&host.session, "worker")
        .await
        .expect("it is listed");
    assert_eq!(
        declaration.entry.declaration().input.schema["required"],
        json!(["do"])
    );

    let result = host
        .call("worker", json!({ "do": "echo", "text": "hé" }))
        .await;
    assert_eq!(
        result.structured_content,
        Some(json!({ "text": "hé" })),
        "{result:?}"
    );
    assert_eq!(
        result.content,
        [ResultContent::text(r#"{"text": "h\u00e9"}"#)]
    );

    let config = json!({ "config": { "place": "here", "ways": "[1,2]" }, "mounts": 1 });
    assert_eq!(
        host.call("worker", json!({ "do": "config" }))
            .await
            .structured_content,
        Some(config)
    );

    let failed = host.call("worker", json!({ "do": "fail" })).await;
    assert_eq!(
        (error(&failed).class, error(&failed).message.as_str()),
        (ErrorClass::ExecutionFailed, "it cannot")
    );
    assert!(
        failed.model_text().contains(r#"{"tried": 2}"#),
        "{}",
        failed.model_text()
    );

    let png = ResultContent::Image {
        data: "iVBORw==".to_owned(),
        media_type: "image/png".to_owned(),
    };
    let shown = host.call("worker", json!({ "do": "image" })).await;
    assert_eq!(
        shown.content,
        [
            ResultContent::text("seen"),
            ResultContent::text("a picture"),
            png
        ]
    );

    let raised = host.call("worker", json!({ "do": "raise" })).await;
    assert_eq!(error(&raised).code, "grpc_unknown");
    assert!(
        error(&raised).message.contains("no attribute 'strip'"),
        "{raised:?}"
    );
    let aborted = host.call("worker", json!({ "do": "abort" })).await;
    assert_eq!(error(&aborted).code, "grpc_failed_precondition");
    assert!(error(&aborted).message.contains("not while it rains"));

    let large = host
        .call("worker", json!({ "do": "large", "bytes": 20 << 20 }))
        .await;
    assert_eq!(
        error(&large).class,
        ErrorClass::ResultTooLarge,
        "{:?}",
        error(&large)
    );
    let wrong = host.call("worker", json!({ "do": 5 })).await;
    assert_eq!(error(&wrong).class, ErrorClass::InvalidArguments);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_and_a_cancel_reach_a_service_written_with_grpcio() {
    let folder = generated();
    let peer = Peer::start(folder.path(), 0);
    let host = host_of(&peer, json!({})).await;
    let wait = || host.request("worker", json!({ "do": "wait" }));
    let mut short = wait();
    short.times.timeout = Some(Duration::from_millis(400));
    let late = host.host.call(short).await;
    assert_eq!(error(late.result()).class, ErrorClass::Timeout);
    peer.until("waiting deadline");
    peer.until("left alone");

    let handle = host.host.start(wait()).await;
    peer.until("waiting");
    assert!(
        host.host
            .cancel(handle.invocation_id(), &Principal::agent("test"))
    );
    assert_eq!(
        error(handle.answer().await.result()).class,
        ErrorClass::Canceled
    );
    peer.until("left alone");
    assert!(
        !host.call("worker", json!({ "do": "echo" })).await.is_error,
        "the connection is still good"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_written_with_grpcio_may_die_and_come_back() {
    let folder = generated();
    let peer = Peer::start(folder.path(), 0);
    let endpoint = peer.endpoint();
    let module =
        GrpcModule::service(&planned(&json!({})), &endpoint, GrpcSettings::default()).unwrap();
    let handle = module.handle();
    let host = TestHost::build(|builder| builder.source(module)).await;
    assert_eq!(handle.health().await, ServiceHealth::Serving);
    let died = host.call("worker", json!({ "do": "die", "code": 3 })).await;
    let lost = error(&died);
    assert_eq!(
        (lost.class, lost.code.as_ref()),
        (ErrorClass::DependencyUnavailable, "connection_lost"),
        "{lost:?}"
    );
    assert!(!lost.retry.safe);
    let port = peer.port;
    drop(peer);
    let gone = host.call("worker", json!({ "do": "echo" })).await;
    assert_eq!(error(&gone).code, "not_sent");
    assert!(error(&gone).retry.safe);
    assert!(matches!(
        handle.health().await,
        ServiceHealth::Unreachable(_)
    ));

    let peer = Peer::start(folder.path(), port);
    let back = host.call("worker", json!({ "do": "config" })).await;
    assert_eq!(
        back.structured_content,
        Some(json!({ "config": {}, "mounts": 1 })),
        "{back:?}"
    );
    handle.close().await;
    peer.until("cleaned");
}

/// The service of the guide as it stands there, but for its port: another one may be taken here.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_of_the_guide_works() {
    let guide = std::fs::read_to_string(peer::root().join("docs/grpc.md")).unwrap();
    let (_, code) = guide.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    assert!(code.contains("127.0.0.1:50051"), "{code}");
    let folder = generated();
    let script = folder.path().join("service.py");
    std::fs::write(&script, code.replace("127.0.0.1:50051", &free)).unwrap();
    let _service = Running::start(&script);
    let module = GrpcModule::service(&planned(&json!({})), &free, GrpcSettings::default()).unwrap();
    let host = TestHost::build(|builder| builder.source(module)).await;
    let mut changes = host.host.changes();
    let listed = async {
        while host.host.catalog().entries().is_empty() {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, listed)
        .await
        .expect("its tool appears once it serves");
    let result = host.call("shout", json!({ "text": "hello" })).await;
    assert_eq!(result.model_text(), "HELLO", "{result:?}");
}
