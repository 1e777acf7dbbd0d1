//! Mounting, cleaning up, health, and services that come later.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tokio::time::timeout;
use toolpost_amplifier::{LoadReason, ModuleKind, PlannedModule};
use toolpost_core::CatalogNotice;
use toolpost_model::ErrorClass;
use toolpost_modules::{GrpcModule, GrpcSettings, ServiceHealth};
use toolpost_testkit::TestHost;

use super::{
    Heard, PATIENCE, Reply, Service, Spec, answering, host_of, message, module, planned,
    server::{ExecuteResponse, HealthResponse, MountRequest, MountResponse},
};

fn done() -> Reply {
    message(&ExecuteResponse {
        success: true,
        ..ExecuteResponse::default()
    })
}

/// A service with a lifecycle, that is mounted so.
async fn mounted_as(answer: MountResponse) -> Service {
    Service::start(Arc::new(move |heard: Heard| {
        let answer = answer.clone();
        Box::pin(async move {
            match heard.method() {
                "GetSpec" => message(&Spec::echo()),
                "Mount" => message(&answer),
                "Cleanup" => Reply::Message(Vec::new()),
                _ => done(),
            }
        })
    }))
    .await
}

#[tokio::test]
async fn the_configuration_is_mounted_once_and_cleaned_up_after() {
    let service = mounted_as(MountResponse {
        success: true,
        error: String::new(),
    })
    .await;
    let config = json!({ "place": "here", "depth": 3, "ways": ["a", { "b": null }], "off": false });
    let endpoint = service.address.to_string();
    let module =
        GrpcModule::service(&planned(&config), &endpoint, GrpcSettings::default()).unwrap();
    let host = TestHost::build(|builder| builder.source(module)).await;
    for _ in 0..3 {
        assert!(!host.call("echo", json!({})).await.is_error);
    }
    let mounts = service.heard("Mount");
    assert_eq!(mounts.len(), 1);
    let request: MountRequest = mounts[0].read();
    let expected = [
        ("place", "here"),
        ("depth", "3"),
        ("ways", r#"["a",{"b":null}]"#),
        ("off", "false"),
    ];
    let expected: HashMap<String, String> = expected
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    assert_eq!(
        (request.module_id.as_str(), request.config),
        ("tool-x", expected)
    );
    host.host.shutdown(PATIENCE).await;
    assert_eq!(service.heard("Cleanup").len(), 1);
    assert_eq!(
        service.heard("Cleanup")[0].path,
        "/amplifier.module.ModuleLifecycle/Cleanup"
    );
    drop(host);
    assert_eq!(service.heard("Cleanup").len(), 1, "once is enough");
}

#[tokio::test]
async fn a_service_that_does_not_say_goodbye_is_not_waited_for() {
    let mut service = Service::start(Arc::new(|heard: Heard| {
        Box::pin(async move {
            match heard.method() {
                "GetSpec" => message(&Spec::echo()),
                "Mount" => message(&MountResponse {
                    success: true,
                    error: String::new(),
                }),
                "Cleanup" => std::future::pending().await,
                _ => done(),
            }
        })
    }))
    .await;
    let host = host_of(&service).await;
    assert!(!host.call("echo", json!({})).await.is_error);
    timeout(PATIENCE, host.host.shutdown(PATIENCE))
        .await
        .expect("it ends all the same");
    service.until_asked("Cleanup").await;
}

#[tokio::test]
async fn a_host_that_just_goes_away_cleans_up_too() {
    let mut service = mounted_as(MountResponse {
        success: true,
        error: String::new(),
    })
    .await;
    let module = module(&service.address.to_string());
    use toolpost_model::Source as _;
    assert_eq!(module.list().await.unwrap().len(), 1);
    drop(module);
    service.until_asked("Cleanup").await;
}

#[tokio::test]
async fn a_service_that_refuses_to_be_mounted_is_a_problem() {
    let service = mounted_as(MountResponse {
        success: false,
        error: "no such place".to_owned(),
    })
    .await;
    let host = host_of(&service).await;
    let problems = host.host.catalog().unavailable().to_vec();
    assert_eq!(problems[0].code, "mount_refused", "{problems:?}");
    assert!(
        problems[0].message.contains("no such place"),
        "{problems:?}"
    );
    assert!(
        host.host
            .notices()
            .iter()
            .any(|notice| matches!(notice, CatalogNotice::Unavailable(_)))
    );
    let result = host.call("echo", json!({})).await;
    assert_eq!(result.error_class(), Some(ErrorClass::UnknownTool));
}

#[tokio::test]
async fn a_service_that_comes_later_is_found() {
    let early = answering(|_| done()).await;
    let address = early.kill().await;
    let source = module(&address.to_string());
    let host = TestHost::build(|builder| builder.source(source)).await;
    assert_eq!(host.host.catalog().entries().len(), 0);
    assert_eq!(host.host.catalog().unavailable()[0].code, "not_sent");
    let mut changes = host.host.changes();
    let _late = Service::on(
        address,
        Arc::new(|heard: Heard| {
            Box::pin(async move {
                match heard.method() {
                    "GetSpec" => message(&Spec::echo()),
                    "Execute" => done(),
                    _ => Reply::Status(12, String::new()),
                }
            })
        }),
    )
    .await;
    let found = async {
        while host.host.catalog().entries().is_empty() {
            changes.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, found)
        .await
        .expect("the tool appears by itself");
    assert!(host.host.catalog().unavailable().is_empty());
    assert!(!host.call("echo", json!({})).await.is_error);
}

#[tokio::test]
async fn health_is_asked_where_there_is_somebody_to_ask() {
    let answers: Arc<Mutex<HashMap<&str, HealthResponse>>> = Arc::default();
    let given = Arc::clone(&answers);
    let service = Service::start(Arc::new(move |heard: Heard| {
        let answer = given.lock().unwrap().get(heard.path.as_str()).cloned();
        Box::pin(async move {
            answer.map_or(Reply::Status(12, String::new()), |answer| message(&answer))
        })
    }))
    .await;
    let module = module(&service.address.to_string());
    let handle = module.handle();
    let health = |status, text: &str| HealthResponse {
        status,
        message: text.to_owned(),
    };
    let standard = "/grpc.health.v1.Health/Check";
    let own = "/amplifier.module.ModuleLifecycle/HealthCheck";
    assert_eq!(handle.health().await, ServiceHealth::Connected);
    answers.lock().unwrap().insert(own, health(2, "warming up"));
    assert_eq!(
        handle.health().await,
        ServiceHealth::NotServing("warming up".to_owned())
    );
    answers.lock().unwrap().insert(own, health(1, ""));
    assert_eq!(handle.health().await, ServiceHealth::Serving);
    answers.lock().unwrap().insert(standard, health(2, ""));
    assert_eq!(
        handle.health().await,
        ServiceHealth::NotServing(String::new())
    );
    service.kill().await;
    assert!(matches!(
        handle.health().await,
        ServiceHealth::Unreachable(_)
    ));
}

#[tokio::test]
async fn what_can_never_work_is_refused_at_once() {
    let settings = GrpcSettings::default();
    for (endpoint, words) in [
        ("https://tools.example:443", "TLS"),
        ("nowhere", "port"),
        ("", "host:port"),
    ] {
        let failure = GrpcModule::service(&planned(&json!({})), endpoint, settings)
            .err()
            .unwrap();
        assert_eq!(failure.reason, LoadReason::InvalidModuleMetadata);
        assert!(failure.message.contains(words), "{failure}");
    }
    let hook = PlannedModule {
        kind: ModuleKind::Hook,
        ..planned(&json!({}))
    };
    let failure = GrpcModule::service(&hook, "localhost:1", settings)
        .err()
        .unwrap();
    assert_eq!(failure.reason, LoadReason::ValidationFailed);
}
