//! Services that are slow, hung, killed, wrong, or not there: what the caller is told, and what the service sees.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, time::timeout};
use toolpost_model::{ErrorClass, Principal, ToolError, ToolResult};
use toolpost_modules::{GrpcModule, GrpcSettings};
use toolpost_testkit::TestHost;

use super::{
    Heard, PATIENCE, Reply, Service, answering, call_within, host_of, message, planned, request_as,
    server::{ExecuteResponse, framed},
};

fn error(result: &ToolResult) -> &ToolError {
    result
        .error
        .as_ref()
        .unwrap_or_else(|| panic!("it should have failed: {result:?}"))
}

fn done() -> Reply {
    message(&ExecuteResponse {
        success: true,
        output: b"1".to_vec(),
        ..ExecuteResponse::default()
    })
}

/// `grpc-timeout` as a duration; tonic writes microseconds or less exact units.
fn told(heard: &Heard) -> Duration {
    let (digits, unit) = heard
        .header("grpc-timeout")
        .split_at(heard.header("grpc-timeout").len() - 1);
    let number: u64 = digits.parse().unwrap();
    match unit {
        "n" => Duration::from_nanos(number),
        "u" => Duration::from_micros(number),
        "m" => Duration::from_millis(number),
        "S" => Duration::from_secs(number),
        other => panic!("unit `{other}`"),
    }
}

#[tokio::test]
async fn a_deadline_is_told_to_the_service_and_ends_its_work() {
    let mut service = answering(|_| Reply::Never).await;
    let host = host_of(&service).await;
    let limit = Duration::from_millis(300);
    let result = call_within(&host, limit, json!({})).await;
    assert_eq!(error(&result).class, ErrorClass::Timeout);
    assert_eq!(service.until_abandoned().await, "Execute");
    assert!(told(&service.heard("Execute")[0]) <= limit);
}

#[tokio::test]
async fn a_cancel_ends_the_work_at_the_service() {
    let mut service = answering(|_| Reply::Never).await;
    let host = host_of(&service).await;
    let handle = host.host.start(host.request("echo", json!({}))).await;
    service.until_asked("Execute").await;
    assert!(
        host.host
            .cancel(handle.invocation_id(), &Principal::agent("test"))
    );
    let answer = handle.answer().await;
    assert_eq!(error(answer.result()).class, ErrorClass::Canceled);
    assert_eq!(service.until_abandoned().await, "Execute");
}

#[tokio::test]
async fn one_that_hangs_does_not_hold_up_another() {
    let mut service = answering(|heard| {
        let request: super::server::ExecuteRequest = heard.read();
        if request.input == b"{}" {
            Reply::Never
        } else {
            done()
        }
    })
    .await;
    let host = host_of(&service).await;
    let hung = host.host.start(request_as(&host, "one", json!({}))).await;
    service.until_asked("Execute").await;
    let other = timeout(
        PATIENCE,
        host.host
            .call(request_as(&host, "two", json!({ "text": "" }))),
    )
    .await;
    assert!(!other.expect("it does not wait").result().is_error);
    drop(hung);
    assert_eq!(service.until_abandoned().await, "Execute");
}

#[tokio::test]
async fn a_connection_that_is_being_closed_is_not_used_for_the_next_call() {
    let mut service = answering(|heard| {
        let request: super::server::ExecuteRequest = heard.read();
        if request.input == b"{}" {
            Reply::Never
        } else {
            done()
        }
    })
    .await;
    let host = host_of(&service).await;
    let running = host.host.start(request_as(&host, "one", json!({}))).await;
    service.until_asked("Execute").await;
    service.drain();
    for _ in 0..3 {
        let other = timeout(
            PATIENCE,
            host.host
                .call(request_as(&host, "two", json!({ "text": "" }))),
        )
        .await;
        let other = other.expect("it does not wait");
        assert!(!other.result().is_error, "{:?}", other.result());
    }
    drop(running);
    assert_eq!(service.until_abandoned().await, "Execute");
}

#[tokio::test]
async fn a_status_becomes_the_class_that_it_means() {
    for (code, class, name) in [
        (1, ErrorClass::ExecutionFailed, "grpc_cancelled"),
        (2, ErrorClass::ExecutionFailed, "grpc_unknown"),
        (3, ErrorClass::InvalidArguments, "grpc_invalid_argument"),
        (4, ErrorClass::Timeout, "grpc_deadline_exceeded"),
        (5, ErrorClass::ExecutionFailed, "grpc_not_found"),
        (7, ErrorClass::ExecutionFailed, "grpc_permission_denied"),
        (8, ErrorClass::RateLimited, "grpc_resource_exhausted"),
        (9, ErrorClass::ExecutionFailed, "grpc_failed_precondition"),
        (11, ErrorClass::InvalidArguments, "grpc_out_of_range"),
        (12, ErrorClass::SetupRequired, "grpc_unimplemented"),
        (13, ErrorClass::ExecutionFailed, "grpc_internal"),
        (14, ErrorClass::DependencyUnavailable, "grpc_unavailable"),
        (16, ErrorClass::SetupRequired, "grpc_unauthenticated"),
    ] {
        let service = answering(move |_| Reply::Status(code, "its own words".to_owned())).await;
        let result = host_of(&service).await.call("echo", json!({})).await;
        let error = error(&result);
        assert_eq!((error.class, error.code.as_ref()), (class, name), "{code}");
        assert!(error.message.contains("its own words"), "{}", error.message);
        assert!(
            !error.retry.safe,
            "{code}: the service was asked, so nobody can say that nothing happened"
        );
        assert_eq!(
            service.heard("Execute").len(),
            1,
            "{code}: it is not asked again"
        );
    }
}

#[tokio::test]
async fn a_service_that_is_killed_at_work_leaves_the_outcome_open_and_its_successor_is_used() {
    let answer = |_: &Heard| Reply::Never;
    let mut service = answering(answer).await;
    let host = host_of(&service).await;
    let handle = host.host.start(host.request("echo", json!({}))).await;
    service.until_asked("Execute").await;
    let address = service.kill().await;
    let answer = timeout(PATIENCE, handle.answer())
        .await
        .expect("it does not hang");
    let lost = error(answer.result());
    assert_eq!(
        (lost.class, lost.code.as_ref()),
        (ErrorClass::DependencyUnavailable, "connection_lost")
    );
    assert!(!lost.retry.safe, "{lost:?}");

    let gone = call_within(&host, PATIENCE, json!({})).await;
    let gone = error(&gone);
    assert_eq!(
        (gone.class, gone.code.as_ref()),
        (ErrorClass::DependencyUnavailable, "not_sent")
    );
    assert!(gone.retry.safe, "nothing was sent: {gone:?}");

    let successor = Service::on(
        address,
        std::sync::Arc::new(|heard: Heard| {
            Box::pin(async move {
                match heard.method() {
                    "GetSpec" => message(&super::Spec::echo()),
                    "Mount" => message(&super::server::MountResponse {
                        success: true,
                        error: String::new(),
                    }),
                    _ => done(),
                }
            })
        }),
    )
    .await;
    let result = call_within(&host, PATIENCE, json!({})).await;
    assert!(!result.is_error, "{result:?}");
    assert_eq!(
        successor.heard("Mount").len(),
        1,
        "the new one does not know its configuration"
    );
    assert!(!call_within(&host, PATIENCE, json!({})).await.is_error);
    assert_eq!(successor.heard("Mount").len(), 1);
}

#[tokio::test]
async fn a_short_restart_is_not_noticed() {
    let service = answering(|_| done()).await;
    let host = host_of(&service).await;
    assert!(!host.call("echo", json!({})).await.is_error);
    let address = service.kill().await;
    let call = host.host.start(host.request("echo", json!({}))).await;
    let successor = Service::on(
        address,
        std::sync::Arc::new(|heard: Heard| {
            Box::pin(async move {
                match heard.method() {
                    "GetSpec" => message(&super::Spec::echo()),
                    "Execute" => done(),
                    _ => Reply::Status(12, String::new()),
                }
            })
        }),
    )
    .await;
    let answer = timeout(PATIENCE, call.answer()).await.expect("it ends");
    assert!(!answer.result().is_error, "{:?}", answer.result());
    assert_eq!(successor.heard("Execute").len(), 1);
}

async fn limited(service: &Service, settings: GrpcSettings) -> TestHost {
    let endpoint = service.address.to_string();
    let module = GrpcModule::service(&planned(&json!({})), &endpoint, settings).unwrap();
    TestHost::build(|builder| builder.source(module)).await
}

#[tokio::test]
async fn messages_over_the_limit_are_refused_both_ways() {
    let settings = GrpcSettings {
        request_bytes: 2048,
        response_bytes: 4096,
    };
    let service = answering(|_| {
        let output = format!("\"{}\"", "x".repeat(8000)).into_bytes();
        message(&ExecuteResponse {
            success: true,
            output,
            ..ExecuteResponse::default()
        })
    })
    .await;
    let host = limited(&service, settings).await;
    let result = host.call("echo", json!({ "text": "x".repeat(4000) })).await;
    assert_eq!(error(&result).code, "arguments_too_large");
    assert_eq!(service.heard("Execute").len(), 0);
    let result = host.call("echo", json!({})).await;
    assert_eq!(
        error(&result).class,
        ErrorClass::ResultTooLarge,
        "{:?}",
        error(&result)
    );
    assert!(!error(&result).retry.safe);
}

#[tokio::test]
async fn answers_that_make_no_sense_are_failures_and_nothing_worse() {
    let ok = vec![("grpc-status", "0")];
    let endless = {
        let mut frame = framed(b"");
        frame[1..5].copy_from_slice(&[255; 4]);
        frame
    };
    for (bytes, trailers) in [
        (framed(b"\xff\xff\xff\xff"), ok.clone()),
        (Vec::new(), ok.clone()),
        (b"\x00\x00".to_vec(), ok.clone()),
        (b"\x07\x00\x00\x00\x00".to_vec(), ok.clone()),
        (endless, ok.clone()),
        (Vec::new(), Vec::new()),
        (Vec::new(), vec![("grpc-status", "ninety")]),
        (
            Vec::new(),
            vec![
                ("grpc-status", "13"),
                ("grpc-status-details-bin", "!!! not base64 !!!"),
            ],
        ),
        (
            framed(b""),
            vec![("grpc-status", "13"), ("grpc-message", "%ff%fe")],
        ),
    ] {
        let shown = format!("{bytes:?} {trailers:?}");
        let service = answering(move |_| Reply::Raw(bytes.clone(), trailers.clone())).await;
        let host = host_of(&service).await;
        let result = call_within(&host, PATIENCE, json!({})).await;
        let class = error(&result).class;
        assert!(
            matches!(
                class,
                ErrorClass::ExecutionFailed
                    | ErrorClass::ResultTooLarge
                    | ErrorClass::DependencyUnavailable
            ),
            "{shown}: {:?}",
            error(&result)
        );
        assert_eq!(service.heard("Execute").len(), 1, "{shown}");
    }
}

#[tokio::test]
async fn something_else_at_the_endpoint_is_a_problem_and_no_tool() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let talking = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"220 mail.example ready\r\n").await;
        }
    });
    let source = super::module(&address.to_string());
    let host = TestHost::build(|builder| builder.source(source)).await;
    assert_eq!(host.host.catalog().entries().len(), 0);
    let problems = host.host.catalog().unavailable().to_vec();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(
        (problems[0].part.as_str(), problems[0].origin.clone()),
        ("tool-x", Some(address.to_string()))
    );
    talking.abort();
}

#[tokio::test]
async fn a_web_server_that_knows_no_grpc_is_a_problem() {
    let service = Service::start(std::sync::Arc::new(|_: Heard| {
        Box::pin(async { Reply::Raw(b"<html>".to_vec(), vec![]) })
    }))
    .await;
    let host = host_of(&service).await;
    assert_eq!(host.host.catalog().unavailable().len(), 1);
    let result = host.call("echo", Value::Null).await;
    assert_eq!(error(&result).class, ErrorClass::UnknownTool);
}
