//! A2E as an embedder sees it: the client of `toolpost-a2e` on a real server, in the same process and over HTTP. What
//! the wire looks like is the end-to-end suite's business.

mod capabilities;
mod changes;

use std::time::Duration;

use serde_json::json;
use toolpost_a2e::{
    CallOptions, Client, ConnectError, ConnectOptions, HostTransport, ListOptions, ToolApi,
};
use toolpost_model::{ErrorClass, PrincipalRole, SurfaceRequest};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{client::within, running::Place};

pub(super) async fn embedded(server: &toolpost_serve::Server) -> Client {
    let connected = Client::connect(
        HostTransport::Link(server.connect()),
        ConnectOptions::new("test"),
    );
    within(connected)
        .await
        .expect("an agent in this process comes in")
}

#[tokio::test]
async fn an_agent_in_this_process_lists_calls_and_leaves() {
    let tool = MockNativeTool::named("demo.hello").output("hello");
    let running = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool.clone()))
        .await;
    let client = embedded(&running.server).await;
    let api = ToolApi::new(&client);
    let tools = within(api.list(&ListOptions::all())).await.unwrap();
    assert_eq!(
        tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>(),
        ["hello"]
    );
    let result = within(api.call("hello", json!({ "n": 1 }))).await.unwrap();
    assert_eq!(
        (result.success, result.data),
        (true, Some(json!({ "text": "hello" })))
    );
    assert_eq!(tool.call_count(), 1);
    within(client.close()).await;
    assert!(!client.is_open());
}

#[tokio::test]
async fn a_host_needs_no_server_around_it() {
    let host = toolpost_testkit::TestHost::with(MockNativeTool::named("demo.hello")).await;
    let link = HostTransport::Link(toolpost_serve::a2e::connect(&host.host));
    let client = within(Client::connect(link, ConnectOptions::new("test")))
        .await
        .unwrap();
    assert!(
        within(ToolApi::new(&client).call("hello", json!({})))
            .await
            .unwrap()
            .success
    );
}

#[tokio::test]
async fn a_token_names_somebody_and_a_wrong_one_nobody() {
    let place = Place::without_native_tools().with_token(
        "robot",
        PrincipalRole::Agent,
        "a token of the robot's",
    );
    let running = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.hello")))
        .await;
    for (token, admitted) in [
        ("", true),
        ("a token of the robot's", true),
        ("a wrong token", false),
    ] {
        let options = ConnectOptions::new("test").token(token);
        let connected = within(Client::connect(
            HostTransport::Link(running.server.connect()),
            options,
        ))
        .await;
        assert_eq!(connected.is_ok(), admitted, "in process with `{token}`");
        let url = format!("http://{}", running.server.address().unwrap());
        let options = ConnectOptions::new("test").token(token);
        let connected = within(Client::connect(HostTransport::http(url), options)).await;
        match connected {
            Ok(_) => assert!(admitted && !token.is_empty(), "over HTTP with `{token}`"),
            Err(ConnectError::Refused { reason }) => {
                assert!(reason.starts_with("auth_failed"), "{reason}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn what_runs_for_an_agent_that_is_gone_is_stopped() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.held").gate(&gate);
    let running = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let client = embedded(&running.server).await;
    let call = ToolApi::new(&client)
        .start(CallOptions::new("held", json!({})))
        .await
        .unwrap();
    within(gate.entered(1)).await;
    call.detach();
    drop(client);
    within(async {
        while running.server.host().health().running > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_whose_time_ends_in_the_queue_never_runs() {
    let gate = MockToolGate::new();
    let mut place = Place::without_native_tools();
    place.config.limits.session_concurrency = 1;
    let tool = MockNativeTool::named("demo.held").gate(&gate);
    let running = place.start_with(|builder| builder.tool(tool.clone())).await;
    let client = embedded(&running.server).await;
    let api = ToolApi::new(&client);
    let first = api
        .start(CallOptions::new("held", json!({})))
        .await
        .unwrap();
    within(gate.entered(1)).await;
    let late = api
        .start(CallOptions::new("held", json!({})).timeout(Duration::from_secs(1)))
        .await
        .unwrap();
    let late = within(late.result()).await.unwrap();
    assert_eq!(
        (late.success, late.error_class),
        (false, Some(ErrorClass::Queued)),
        "{late:?}"
    );
    assert_eq!(
        (late.error_code.as_deref(), late.retry_safe),
        (Some("queued"), Some(true))
    );
    gate.let_through(1);
    assert!(within(first.result()).await.unwrap().success);
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn an_agent_that_did_not_negotiate_tools_gets_none_where_that_is_required() {
    let mut place = Place::without_native_tools();
    place.config.a2e.require_negotiated = true;
    let running = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.hello")))
        .await;
    for (caps, allowed) in [(&["tools"][..], true), (&["streaming"][..], false)] {
        let options = ConnectOptions::new("test").capabilities(caps.iter().copied());
        let link = HostTransport::Link(running.server.connect());
        let client = within(Client::connect(link, options)).await.unwrap();
        let called = within(ToolApi::new(&client).call("hello", json!({}))).await;
        assert_eq!(called.is_ok(), allowed, "{caps:?}: {called:?}");
    }
}

#[tokio::test]
async fn an_agent_in_this_process_is_told_that_its_surface_is_too_large() {
    let running = Place::without_native_tools()
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.hello")))
        .await;
    let surface = SurfaceRequest {
        task: Some("x".repeat(64 << 10)),
        ..SurfaceRequest::default()
    };
    let options = ConnectOptions::new("test").surface(surface);
    let link = HostTransport::Link(running.server.connect());
    let refused = within(Client::connect(link, options)).await.map(drop);
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("larger than 64 KiB"), "{said}");
}

#[tokio::test]
async fn each_request_has_its_line_in_the_audit_file() {
    let mut place = Place::without_native_tools();
    let path = place.folder().join("audit.jsonl");
    place.config.a2e.audit.path = Some(path.clone());
    let running = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.hello")))
        .await;
    let client = embedded(&running.server).await;
    let api = ToolApi::new(&client);
    within(api.list(&ListOptions::all())).await.unwrap();
    within(async {
        let call = CallOptions::new("hello", json!({ "n": 1 })).correlation_id("together");
        api.start(call).await.unwrap().result().await.unwrap();
        api.call("no_such_tool", json!({})).await.unwrap();
    })
    .await;
    within(client.close()).await;
    within(running.server.shutdown(Duration::from_secs(5))).await;
    let lines = std::fs::read_to_string(path).unwrap();
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["message"].as_str().unwrap(),
                line["success"].as_bool().unwrap(),
                &line["error_code"],
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("tool/list/req", true, &json!(null)),
            ("tool/call/req", true, &json!(null)),
            ("tool/call/req", false, &json!("unknown_tool")),
        ]
    );
    assert_eq!(lines[1]["correlation_id"], "together");
    assert!(
        lines
            .iter()
            .all(|line| line["duration_ms"].is_u64() && line["ts"].is_f64())
    );
}
