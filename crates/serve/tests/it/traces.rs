//! Trace context from outside: over every face it is kept, passed on as a child, and ignored where it is broken.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_a2e::{Body, ToolCallRequest};
use toolpost_model::{EffectClass, FnTool, ModelInput, ToolFailure, TraceContext};

use super::{
    client::Request,
    identity::{exported, invocations, over_a2a, over_mcp},
    running::{Place, Running},
};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn server() -> Running {
    let tool = FnTool::named("demo.read")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, call| async move {
            let span = call.trace();
            Ok::<_, ToolFailure>(format!(
                "{} {}",
                span.traceparent(),
                span.tracestate().unwrap_or_default()
            ))
        });
    Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await
}

/// The span of the last call, as an export has it and as its tool saw it.
async fn last(server: &Running) -> (Value, String) {
    let lines = exported(server).await;
    let of = |record: &str| lines.iter().rfind(|line| line["record"] == record).unwrap();
    let seen = of("result")["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    (of("invocation")["telemetry_refs"][0].clone(), seen)
}

async fn check_child(server: &Running, face: &str) {
    let (exported, seen) = last(server).await;
    assert_eq!(exported["trace_id"], PARENT[3..35], "{face}");
    assert_eq!(
        (&exported["parent_span_id"], &exported["tracestate"]),
        (&json!(PARENT[36..52]), &json!(STATE))
    );
    assert_ne!(exported["span_id"], PARENT[36..52], "{face}");
    assert_eq!(
        seen,
        format!("{} {STATE}", exported["traceparent"].as_str().unwrap()),
        "{face}"
    );
}

#[tokio::test]
async fn a_call_is_a_child_of_its_callers_span_on_every_face() {
    let server = server().await;
    let traced = |request: Request| request.header("traceparent", PARENT);
    let over_http = traced(Request::call("read", &json!({})));
    assert_eq!(
        server
            .send(over_http.clone().header("tracestate", STATE))
            .await
            .status(),
        200
    );
    check_child(&server, "http").await;
    // Several lines are one list.
    let (first, second) = STATE.split_once(',').unwrap();
    server
        .send(
            over_http
                .header("tracestate", first)
                .header_line("tracestate", second),
        )
        .await;
    check_child(&server, "http").await;
    server
        .send(over_mcp(
            &json!(1),
            &json!({ "traceparent": PARENT, "tracestate": STATE }),
        ))
        .await;
    check_child(&server, "mcp").await;
    server
        .send(traced(over_mcp(&json!(2), &json!({}))).header("tracestate", STATE))
        .await;
    check_child(&server, "mcp by header").await;
    server
        .send(traced(over_a2a("m1", &["one"])).header("tracestate", STATE))
        .await;
    check_child(&server, "a2a").await;
    let client = super::a2e::embedded(&server.server).await;
    let mut call = ToolCallRequest::new("read", ModelInput::value(json!({})));
    (call.traceparent, call.tracestate) = (PARENT.to_owned(), STATE.to_owned());
    client
        .request(Body::ToolCallRequest(call), Duration::from_secs(30))
        .await
        .unwrap();
    check_child(&server, "a2e").await;
}

#[tokio::test]
async fn a_broken_context_is_ignored_and_the_call_runs_in_its_own_trace() {
    let server = server().await;
    let call = || Request::call("read", &json!({}));
    let own = async |request: Request| {
        assert_eq!(server.send(request).await.status(), 200);
        let (exported, seen) = last(&server).await;
        let call = invocations(&server).await.pop().unwrap();
        let id = call["invocation_id"].as_str().unwrap().parse().unwrap();
        assert_eq!(
            exported["traceparent"],
            TraceContext::of_call(id).traceparent()
        );
        assert_eq!(
            (&exported["parent_span_id"], seen.ends_with(' ')),
            (&Value::Null, true)
        );
    };
    own(call()).await;
    own(call().header("tracestate", STATE)).await;
    own(call().header("traceparent", PARENT.to_uppercase())).await;
    own(call().header("traceparent", b"\xff\xfe")).await;
    own(call()
        .header("traceparent", PARENT)
        .header_line("traceparent", PARENT))
    .await;
    own(over_mcp(
        &json!(1),
        &json!({ "traceparent": 7, "tracestate": [] }),
    ))
    .await;
    // A broken state costs the state alone.
    server
        .send(
            call()
                .header("traceparent", PARENT)
                .header("tracestate", "A=1"),
        )
        .await;
    let (exported, _) = last(&server).await;
    assert_eq!(
        (&exported["trace_id"], &exported["tracestate"]),
        (&json!(PARENT[3..35]), &Value::Null)
    );
}
