//! Calls made by running calls: ordinary calls, inside of another one's slot, locks and time.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{HostLimits, RecordKind, SchedulerLimits};
use toolpost_model::{
    CallInput, Declaration, DynTool, EffectClass, Effects, ErrorClass, LoadingStrategy, NestedCall,
    Outcome, PermissionMode, ResourceAccess, ResourceKey, Tool, ToolCall, ToolFailure, ToolOutput,
    ToolSet,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

/// Calls the tool named in `tool` and gives back what it hears. Holds what `held` names.
struct Caller {
    name: &'static str,
    held: Option<(&'static str, ResourceAccess)>,
}

impl Caller {
    fn new(name: &'static str) -> Self {
        Self { name, held: None }
    }
}

impl Tool for Caller {
    fn declaration(&self) -> Declaration {
        Declaration::new(self.name.parse().unwrap(), "Calls another tool")
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        let mut effects = Effects::of(EffectClass::Execute);
        if let Some((path, access)) = self.held {
            effects = effects.using(ResourceKey::path(path), access);
        }
        Some(effects)
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let tool = call
            .input
            .arguments()
            .str("tool")
            .unwrap_or_default()
            .to_owned();
        if tool.is_empty() {
            let names: Vec<String> = call
                .context
                .callable()
                .into_iter()
                .map(|tool| tool.name)
                .collect();
            return Ok(json!(names).into());
        }
        let arguments = call
            .input
            .arguments()
            .value()
            .get("arguments")
            .cloned()
            .unwrap_or(json!({}));
        let result = call
            .context
            .call_tool(NestedCall::new(tool, arguments))
            .await?;
        Ok(serde_json::to_value(&result)?.into())
    }
}

fn writer(path: &str, gate: &MockToolGate) -> MockNativeTool {
    let effects =
        Effects::of(EffectClass::Write).using(ResourceKey::path(path), ResourceAccess::Write);
    MockNativeTool::named("demo.write")
        .effects(effects)
        .gate(gate)
}

fn inner(result: &toolpost_model::ToolResult) -> &Value {
    result.structured_content.as_ref().unwrap()
}

#[tokio::test]
async fn a_nested_call_has_a_decision_and_a_record_of_its_own_that_names_its_parent() {
    let host = TestHost::build(|builder| {
        builder
            .tool(Caller::new("demo.outer"))
            .tool(MockNativeTool::named("demo.secret").class(EffectClass::Write))
            .policy(TestHost::policy(PermissionMode::Bypass, &["ask secret"]))
    })
    .await;
    let result = host.call("outer", json!({ "tool": "secret" })).await;
    assert_eq!(
        result.outcome,
        Outcome::Succeeded,
        "the outer call goes on: {result:?}"
    );
    assert_eq!(inner(&result)["error"]["class"], "permission_denied");
    let records = host.records().await;
    let ended: Vec<Value> = records
        .iter()
        .filter(|row| row.record.kind == RecordKind::Ended)
        .map(|row| serde_json::from_str(&row.record.body).unwrap())
        .collect();
    let nested = ended
        .iter()
        .find(|body| body["tool_id"] == "demo.secret")
        .unwrap();
    assert_eq!(nested["call"]["parent"], json!(result.invocation_id));
    assert_eq!(nested["decision"]["behavior"], "ask");
    assert_eq!(nested["call"]["principal"], "test");
    assert!(
        ended
            .iter()
            .filter(|body| body["tool_id"] == "demo.outer")
            .all(|body| body["call"].is_null())
    );
}

#[tokio::test]
async fn only_what_the_session_sees_can_be_called_and_never_the_caller_itself() {
    let host = TestHost::build(|builder| {
        builder
            .tool(Caller::new("demo.outer"))
            .tool(MockNativeTool::named("demo.open"))
            .tool(MockNativeTool::named("demo.closed"))
            .policy(TestHost::policy(PermissionMode::Bypass, &["deny closed"]))
    })
    .await;
    assert_eq!(
        *inner(&host.call("outer", json!({})).await),
        json!(["open"])
    );
    let blocked = host.call("outer", json!({ "tool": "closed" })).await;
    assert_eq!(inner(&blocked)["error"]["class"], "policy_blocked");
    let unknown = host.call("outer", json!({ "tool": "nothing" })).await;
    assert_eq!(inner(&unknown)["error"]["class"], "unknown_tool");
}

#[tokio::test]
async fn an_internal_tool_is_called_by_the_tools_of_its_source_alone() {
    let inside = || {
        MockNativeTool::named("demo.inside")
            .declare(|tool| tool.loading = LoadingStrategy::Internal)
    };
    let callers: [Arc<dyn DynTool>; 2] = [Arc::new(Caller::new("demo.caller")), Arc::new(inside())];
    let host = TestHost::build(|builder| {
        let builder = builder.policy(TestHost::policy(PermissionMode::Bypass, &[]));
        builder
            .source(ToolSet::new("demo", callers))
            .tool(Caller::new("other.stranger"))
    });
    let host = host.await;
    let nested = json!({ "tool": "inside" });
    assert_eq!(
        inner(&host.call("caller", nested.clone()).await)["outcome"],
        "succeeded"
    );
    let stranger = host.call("stranger", nested).await;
    assert_eq!(inner(&stranger)["error"]["code"], "internal");
    let agent = host.call("inside", json!({})).await;
    assert_eq!(
        (agent.outcome, &*agent.error.unwrap().code),
        (Outcome::Denied, "internal")
    );
    let listed = host.call("stranger", json!({})).await;
    assert_eq!(*inner(&listed), json!(["caller"]), "nobody is shown it");
}

#[tokio::test]
async fn a_nested_call_runs_in_its_parents_slot_and_under_its_parents_locks() {
    let limits = HostLimits {
        scheduler: SchedulerLimits {
            concurrency: 1,
            session_concurrency: 1,
            queue: 1,
        },
        ..HostLimits::default()
    };
    let gate = MockToolGate::new();
    gate.let_through(9);
    for held in [
        None,
        Some(("/w", ResourceAccess::Write)),
        Some(("/w/a", ResourceAccess::Write)),
    ] {
        let outer = Caller {
            name: "demo.outer",
            held,
        };
        let writer = writer("/w/a", &gate);
        let host = TestHost::build(|builder| builder.tool(outer).tool(writer).limits(limits)).await;
        let result = host.call("outer", json!({ "tool": "write" })).await;
        assert_eq!(
            inner(&result)["outcome"],
            "succeeded",
            "{held:?}: {result:?}"
        );
        assert_eq!(host.host.health().running, 0);
    }
}

#[tokio::test]
async fn what_the_parent_holds_in_another_way_is_refused_instead_of_waited_for() {
    let outer = Caller {
        name: "demo.outer",
        held: Some(("/w/a", ResourceAccess::Read)),
    };
    let host =
        TestHost::build(|builder| builder.tool(outer).tool(writer("/w", &MockToolGate::new())))
            .await;
    let result = host.call("outer", json!({ "tool": "write" })).await;
    assert_eq!(inner(&result)["outcome"], "rejected");
    assert!(
        inner(&result)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("path:/w/a")
    );
}

#[tokio::test]
async fn a_nested_call_waits_for_others_locks_but_not_behind_those_who_wait_for_its_parent() {
    let gate = MockToolGate::new();
    let host = TestHost::build(|builder| {
        builder
            .tool(Caller::new("demo.outer"))
            .tool(writer("/w/a", &gate))
    })
    .await;
    let other = host
        .host
        .default_session(&toolpost_model::Principal::agent("other"));
    let mut request = host.request("write", json!({}));
    request.session = other;
    let holder = host.host.start(request).await;
    gate.entered(1).await;
    let outer = host
        .host
        .start(host.request("outer", json!({ "tool": "write" })))
        .await;
    // The nested call waits behind the holder; the same session's own write waits for the outer call.
    while host.host.health().queued < 1 {
        tokio::task::yield_now().await;
    }
    let later = host.host.start(host.request("write", json!({}))).await;
    while host.host.health().queued < 2 {
        tokio::task::yield_now().await;
    }
    gate.let_through(3);
    assert_eq!(holder.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(inner(outer.answer().await.result())["outcome"], "succeeded");
    assert_eq!(later.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_ends_with_its_parents_time_and_its_end_is_on_record() {
    let gate = MockToolGate::new();
    let host = TestHost::build(|builder| {
        builder
            .tool(Caller::new("demo.outer"))
            .tool(writer("/w", &gate))
    })
    .await;
    let mut request = host.request("outer", json!({ "tool": "write" }));
    request.times.timeout = Some(Duration::from_millis(50));
    // Both deadlines are the same moment: whichever call hears of it first, neither goes on.
    host.host.call(request).await;
    host.host.shutdown(Duration::from_secs(5)).await;
    let records = host.records().await;
    let ended: Vec<&str> = records
        .iter()
        .filter(|row| row.record.kind == RecordKind::Ended)
        .map(|row| row.record.body.as_str())
        .collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
    let nested = ended
        .iter()
        .find(|body| body.contains("demo.write"))
        .unwrap();
    assert!(
        nested.contains("timed_out") || nested.contains("canceled"),
        "{nested}"
    );
}

#[tokio::test]
async fn a_circle_of_calls_comes_to_an_end() {
    let host = TestHost::build(|builder| {
        builder
            .tool(Caller::new("demo.outer"))
            .tool(Caller::new("demo.other"))
    })
    .await;
    let deeper = |tool: &str, arguments: Value| json!({ "tool": tool, "arguments": arguments });
    let mut arguments = json!({});
    for depth in 0..8 {
        arguments = deeper(if depth % 2 == 0 { "other" } else { "outer" }, arguments);
    }
    let result = host.call("outer", arguments).await;
    let text = serde_json::to_string(&result).unwrap();
    assert!(text.contains("too_deep"), "{text}");
}

#[tokio::test]
async fn one_call_cannot_make_calls_without_bound() {
    struct Flood;
    impl Tool for Flood {
        fn declaration(&self) -> Declaration {
            Declaration::new(
                "demo.flood".parse().unwrap(),
                "Calls a hundred times at once",
            )
        }

        async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
            let context = Arc::new(call.context);
            let call = |_| {
                let context = Arc::clone(&context);
                async move { context.call_tool(NestedCall::new("wait", json!({}))).await }
            };
            let ended = futures_util::future::join_all((0..100).map(call)).await;
            let refused = ended.iter().filter_map(|one| one.as_ref().err());
            let refused = refused
                .filter(|failure| failure.class == ErrorClass::RateLimited)
                .count();
            Ok(json!(refused).into())
        }
    }
    let gate = MockToolGate::new();
    let wait = MockNativeTool::named("demo.wait")
        .class(EffectClass::Read)
        .gate(&gate);
    let host = TestHost::build(|builder| builder.tool(Flood).tool(wait)).await;
    let flood = host.host.start(host.request("flood", json!({}))).await;
    let most = u32::try_from(HostLimits::default().scheduler.session_concurrency).unwrap();
    gate.entered(most).await;
    gate.let_through(100);
    assert_eq!(*inner(flood.answer().await.result()), json!(100 - most));
}

#[tokio::test]
async fn what_must_be_alone_is_alone_among_the_calls_of_its_parent() {
    struct Both;
    impl Tool for Both {
        fn declaration(&self) -> Declaration {
            Declaration::new("demo.both".parse().unwrap(), "Calls two tools at once")
        }

        async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
            let call = |_| call.context.call_tool(NestedCall::new("run", json!({})));
            let ended = futures_util::future::join_all((0..2).map(call)).await;
            Ok(json!(ended.iter().filter(|one| one.is_ok()).count()).into())
        }
    }
    let gate = MockToolGate::new();
    let run = MockNativeTool::named("demo.run")
        .class(EffectClass::Execute)
        .gate(&gate);
    let host = TestHost::build(|builder| builder.tool(Both).tool(run)).await;
    let both = host.host.start(host.request("both", json!({}))).await;
    gate.entered(1).await;
    while host.host.health().queued < 1 {
        tokio::task::yield_now().await;
    }
    gate.let_through(1);
    gate.entered(1).await;
    gate.let_through(1);
    assert_eq!(*inner(both.answer().await.result()), json!(2));
}
