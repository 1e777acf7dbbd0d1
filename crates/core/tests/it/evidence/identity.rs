//! Which call an exported invocation is: its caller's own id, who stopped it, what was discovered before it, which
//! policies decided about it and whose surface it stands on.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_core::{Approvals, CallHandle, Export, ExportFormat, ToolFilter};
use toolpost_model::{
    CancelSupport, ClassFact, EffectClass, FnTool, LoadingStrategy, NativeCallId, Outcome,
    PermissionMode, Principal, PrincipalName, RequestId, SurfaceRequest, SurfaceScope, Tool,
    ToolFailure,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn exported(host: &TestHost) -> Vec<Value> {
    let mut export = Export::new(ExportFormat::AgentTool);
    let mut lines = Vec::new();
    for row in host.records().await {
        export.take(&row, &mut lines).unwrap();
    }
    export.finish(&mut lines);
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn invocations(lines: &[Value]) -> Vec<&Value> {
    lines
        .iter()
        .filter(|line| line["record"] == "invocation")
        .collect()
}

fn read(name: &str) -> MockNativeTool {
    MockNativeTool::named(name).class(EffectClass::Read)
}

#[tokio::test]
async fn a_call_has_its_callers_own_id_and_two_calls_may_share_one() {
    let host = TestHost::with(read("demo.read").output("text")).await;
    let native = NativeCallId::bounded("toolu_01A").unwrap();
    for key in [Some("k1"), None, None] {
        let mut request = host.request("read", json!({}));
        request.identity.native_call_id = Some(native.clone());
        request.identity.request_id = key.map(RequestId::new);
        let answer = host.host.start(request).await.answer().await;
        assert_eq!(answer.result().outcome, Outcome::Succeeded);
    }
    let mut request = host.request("read", json!({}));
    request.identity.request_id = Some(RequestId::new("k2"));
    host.host.start(request).await.answer().await;
    host.call("read", json!({})).await;

    let lines = exported(&host).await;
    let ids: Vec<&Value> = invocations(&lines)
        .iter()
        .map(|call| &call["native_call_id"])
        .collect();
    assert_eq!(
        ids,
        ["toolu_01A", "toolu_01A", "toolu_01A", "k2"]
            .map(Value::from)
            .iter()
            .chain([&Value::Null])
            .collect::<Vec<_>>()
    );
}

#[test]
fn native_ids_are_bounded() {
    let longest = "x".repeat(NativeCallId::LONGEST);
    assert_eq!(
        NativeCallId::bounded(&longest).map(|id| id.as_str().len()),
        Some(256)
    );
    assert_eq!(NativeCallId::bounded(&format!("{longest}x")), None);
    assert_eq!(NativeCallId::bounded(""), None);
    assert!(NativeCallId::bounded("eins zwei é").is_some());
    for odd in ["a b", "é", "a\n", "\u{7f}"] {
        assert_eq!(NativeCallId::visible(odd), None, "{odd:?}");
    }
    assert!(NativeCallId::visible("call_abc-1.2:3").is_some());
}

/// A tool that waits until it is told to stop, and then does as `then` says.
fn stubborn(name: &str, cancel: CancelSupport, finishes: bool) -> impl Tool {
    FnTool::named(name)
        .unwrap()
        .class(EffectClass::Write)
        .declare(move |d| d.interface.execution.cancel = cancel)
        .run(move |_: Nothing, context| async move {
            context.status("working");
            context.canceled().await;
            if finishes {
                Ok("done all the same")
            } else {
                Err(ToolFailure::new("stopped"))
            }
        })
}

async fn stopped(host: &TestHost, tool: &str, by: &Principal) -> Value {
    let handle: CallHandle = host.host.start(host.request(tool, json!({}))).await;
    while host.host.health().running == 0 {
        tokio::task::yield_now().await;
    }
    assert!(host.host.cancel(handle.invocation_id(), by));
    handle.answer().await;
    let lines = exported(host).await;
    invocations(&lines).last().unwrap()["cancellation"].clone()
}

#[tokio::test]
async fn a_cancel_has_its_requester_its_time_and_its_acknowledgement() {
    let gate = MockToolGate::new();
    let host = TestHost::build(|builder| {
        builder
            .tool(stubborn("demo.obeys", CancelSupport::Cooperative, false))
            .tool(stubborn("demo.finishes", CancelSupport::Cooperative, true))
            .tool(
                MockNativeTool::named("demo.deaf")
                    .gate(&gate)
                    .declare(|d| d.interface.execution.cancel = CancelSupport::Unsupported),
            )
            .policy(TestHost::policy(PermissionMode::Bypass, &[]))
    })
    .await;
    let operator = Principal::operator("ann");
    let obeys = stopped(&host, "obeys", &operator).await;
    assert_eq!(
        (&obeys["reason"], &obeys["status"]),
        (&json!("requested"), &json!("canceled"))
    );
    assert_eq!(obeys["requested_by"], "operator/ann");
    let time = |name: &str| obeys[name].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert!(time("requested_at") <= time("acknowledged_at"), "{obeys}");

    let finishes = stopped(&host, "finishes", &Principal::agent("test")).await;
    assert_eq!(
        (&finishes["requested_by"], &finishes["status"]),
        (&json!("agent/test"), &json!("cancel_failed"))
    );
    assert!(finishes["acknowledged_at"].is_string(), "{finishes}");

    let deaf = stopped(&host, "deaf", &operator).await;
    assert!(
        deaf["requested_at"].is_string() && deaf["acknowledged_at"].is_null(),
        "{deaf}"
    );

    // A caller that goes away is the one who stopped its call.
    let handle = host.host.start(host.request("obeys", json!({}))).await;
    let id = handle.invocation_id();
    drop(handle);
    while host
        .host
        .invocation(id, &operator)
        .await
        .unwrap()
        .is_none_or(|view| view.result.is_none())
    {
        tokio::task::yield_now().await;
    }
    let lines = exported(&host).await;
    let gone = &invocations(&lines).last().unwrap()["cancellation"];
    assert_eq!(
        (&gone["reason"], &gone["requested_by"]),
        (&json!("caller_gone"), &json!("agent/test"))
    );
}

#[tokio::test]
async fn the_first_sight_of_a_deferred_tool_leaves_an_event() {
    let deferred = |name: &str| read(name).declare(|d| d.loading = LoadingStrategy::Deferred);
    let host = TestHost::build(|b| {
        b.tool(deferred("demo.frobnicate"))
            .tool(deferred("demo.other"))
            .tool(read("demo.plain"))
    })
    .await;
    let search = ToolFilter {
        query: "frobnicate".to_owned(),
        include_deferred: true,
        ..ToolFilter::default()
    };
    for _ in 0..2 {
        assert_eq!(host.host.list(&host.session, &search).await.len(), 1);
    }
    host.host.show(&host.session, "other").await.unwrap();
    host.host.show(&host.session, "plain").await.unwrap();
    host.host
        .list(
            &host.session,
            &ToolFilter {
                include_deferred: true,
                ..ToolFilter::default()
            },
        )
        .await;

    let lines = exported(&host).await;
    let told: Vec<(&str, &str, &str)> = lines
        .iter()
        .filter(|line| {
            line["event_type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("tool.deferred."))
        })
        .map(|line| {
            assert_eq!(line["data"]["session_id"], json!(host.session.id()));
            let [kind, tool] =
                [&line["event_type"], &line["subject"]].map(|value| value.as_str().unwrap());
            (kind, tool, line["data"]["way"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("tool.deferred.discovered", "demo.frobnicate", "search"),
            ("tool.deferred.loaded", "demo.frobnicate", "search"),
            ("tool.deferred.discovered", "demo.other", "name"),
            ("tool.deferred.loaded", "demo.other", "name"),
        ]
    );
}

#[tokio::test]
async fn an_invocation_names_the_policies_that_decided() {
    let host = TestHost::build(|builder| {
        builder
            .tool(read("demo.read"))
            .tool(read("demo.denied"))
            .approvals(Approvals::ASK)
            .policy(TestHost::policy(
                PermissionMode::Default,
                &["deny demo.denied"],
            ))
    })
    .await;
    host.call("read", json!({})).await;
    host.call("denied", json!({})).await;
    let lines = exported(&host).await;
    let refs: Vec<&Value> = invocations(&lines)
        .iter()
        .map(|call| &call["policy_refs"])
        .collect();
    assert_eq!(refs[0], &json!(["mode/default"]));
    let rule = refs[1][0].as_str().unwrap();
    assert!(rule.starts_with("deny demo.denied ("), "{rule}");
}

#[tokio::test]
async fn the_mode_is_named_also_where_the_arguments_told_the_class() {
    let tool = MockNativeTool::named("demo.run")
        .class(EffectClass::Write)
        .declare(|d| d.interface.safety.class = ClassFact::ByInput);
    let host = TestHost::build(|b| {
        b.tool(tool)
            .policy(TestHost::policy(PermissionMode::Bypass, &[]))
    })
    .await;
    host.call("run", json!({})).await;
    let lines = exported(&host).await;
    assert_eq!(
        invocations(&lines)[0]["policy_refs"],
        json!(["mode/bypass"])
    );
}

#[tokio::test]
async fn a_request_id_that_the_host_made_is_no_callers_id() {
    let host = TestHost::with(read("demo.read").output("text")).await;
    for face in ["a2a", "http"] {
        let mut request = host.request("read", json!({}));
        request.face = face;
        request.identity.request_id = Some(RequestId::new(format!("[\"message\",\"{face}\"]")));
        host.host.start(request).await.answer().await;
    }
    let mut request = host.request("read", json!({}));
    request.identity.request_id = Some(RequestId::new("k".repeat(300)));
    host.host.start(request).await.answer().await;
    let lines = exported(&host).await;
    let ids: Vec<&Value> = invocations(&lines)
        .iter()
        .map(|call| &call["native_call_id"])
        .collect();
    assert_eq!(
        ids,
        [&Value::Null, &json!("[\"message\",\"http\"]"), &Value::Null]
    );
}

#[tokio::test]
async fn the_tenant_of_a_surface_comes_from_the_host_and_not_from_the_caller() {
    let tenants = HashMap::from([(PrincipalName::new("ci"), "acme".to_owned())]);
    let host = TestHost::build(|builder| builder.tool(read("demo.read")).tenants(tenants)).await;
    let lies = SurfaceRequest {
        tenant: Some("evil".to_owned()),
        scope: SurfaceScope::Tenant,
        ..SurfaceRequest::default()
    };
    for (principal, request) in [
        ("ci", SurfaceRequest::default()),
        ("ci", lies.clone()),
        ("stranger", lies),
    ] {
        let session = host
            .host
            .open_session(Principal::agent(principal), request)
            .await
            .unwrap();
        let input = toolpost_model::ModelInput::value(json!({}));
        host.host
            .call(toolpost_core::CallRequest::new(session, "read", input))
            .await;
    }
    let task = SurfaceRequest {
        scope: SurfaceScope::Task,
        ..SurfaceRequest::default()
    };
    let session = host
        .host
        .open_session(Principal::agent("ci"), task)
        .await
        .unwrap();
    assert_eq!(
        (
            session.surface_request().scope,
            session.surface_request().tenant.as_deref()
        ),
        (SurfaceScope::Task, Some("acme"))
    );
    let lines = exported(&host).await;
    let surfaces: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["record"] == "tool_surface")
        .map(|line| (&line["scope"], &line["tenant"]))
        .collect();
    assert_eq!(
        surfaces,
        [
            (&json!("tenant"), &json!("acme")),
            (&json!("session"), &Value::Null)
        ]
    );
    assert!(!lines.iter().any(|line| line.to_string().contains("evil")));
}
