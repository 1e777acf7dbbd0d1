//! What modules hear of calls: one projection of the host's lifecycle.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use toolpost_amplifier::{
    Coordinator, HookFailure, HookHandler, HookResult, Module, MountError, MountReturn,
};
use toolpost_core::Approvals;
use toolpost_model::{
    ApprovalScope, BatchPlace, BoxFuture, EffectClass, Effects, PermissionMode, Principal,
    RequestId, ResourceAccess, ResourceKey, ToolFailure, Verdict,
};
use toolpost_modules::{RustModule, RustModules};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost, amplifier::EventRecorder};

use super::set;

/// Keeps events, and lets a test wait for them without looking at a clock.
#[derive(Clone)]
struct Ear {
    recorder: EventRecorder,
    heard: Arc<Semaphore>,
}

impl Ear {
    fn new() -> Self {
        Self {
            recorder: EventRecorder::default(),
            heard: Arc::new(Semaphore::new(0)),
        }
    }

    /// The module that listens with it.
    fn module(&self) -> impl Module + use<> {
        let ear = self.clone();
        move |coordinator: Coordinator, _: Map<String, Value>| {
            coordinator.hooks().register("*", 0, "ear", ear.clone());
            std::future::ready(Ok(MountReturn::Nothing))
        }
    }

    fn set(&self) -> RustModules {
        set(vec![RustModule::hook("hooks-ear", self.module())])
    }

    /// Waits for so many events more.
    async fn hears(&self, count: u32) {
        self.heard.acquire_many(count).await.unwrap().forget();
    }

    fn names(&self) -> Vec<String> {
        self.recorder.names()
    }

    fn only(&self, event: &str) -> Value {
        let [data] = <[Value; 1]>::try_from(self.recorder.of(event)).unwrap();
        data
    }
}

impl HookHandler for Ear {
    fn handle<'a>(
        &'a self,
        event: &'a str,
        data: &'a Value,
    ) -> BoxFuture<'a, Result<HookResult, HookFailure>> {
        let answer = self.recorder.handle(event, data);
        self.heard.add_permits(1);
        answer
    }
}

#[tokio::test]
async fn post_follows_a_success_and_error_a_failure() {
    let ear = Ear::new();
    let failing = MockNativeTool::named("test.fail").failing(ToolFailure::new("broken"));
    let host = TestHost::build(|builder| {
        ear.set()
            .join(builder)
            .tool(MockNativeTool::named("test.act").output("done"))
            .tool(failing)
    })
    .await;
    let mut request = host.request("act", json!({ "n": 1 }));
    request.identity.request_id = Some(RequestId::new("call-1"));
    request.batch = Some(BatchPlace {
        id: "turn-1".to_owned(),
        index: 0,
        depends_on: Vec::new(),
        on_failure: Default::default(),
        ordering: Default::default(),
    });
    host.host.call(request).await;
    assert_eq!(ear.names(), ["tool:pre", "tool:post"]);
    for event in ["tool:pre", "tool:post"] {
        let data = ear.only(event);
        assert_eq!(
            (&data["tool_call_id"], &data["parallel_group_id"]),
            (&json!("call-1"), &json!("turn-1"))
        );
        assert_eq!(
            (&data["tool_name"], &data["tool_input"]),
            (&json!("act"), &json!({ "n": 1 }))
        );
        assert_eq!(data["session_id"], host.session.id().as_str());
        assert!(data["timestamp"].as_str().unwrap().ends_with('Z'), "{data}");
    }
    ear.recorder.clear();
    let result = host.call("fail", json!({})).await;
    assert_eq!(ear.names(), ["tool:pre", "tool:error"]);
    let data = ear.only("tool:error");
    let error = json!({ "type": "execution_failed", "msg": "broken", "message": "broken" });
    assert_eq!(
        (&data["error"], &data["tool_call_id"]),
        (&error, &json!(result.invocation_id.to_string()))
    );
}

#[tokio::test]
async fn post_can_be_told_of_failures_too() {
    let ear = Ear::new();
    let failing = MockNativeTool::named("test.fail").failing(ToolFailure::new("broken"));
    let modules = ear.set().post_on_failure(true);
    let host = TestHost::build(|builder| modules.join(builder).tool(failing)).await;
    host.call("fail", json!({})).await;
    assert_eq!(ear.names(), ["tool:pre", "tool:error", "tool:post"]);
    assert_eq!(ear.only("tool:post")["result"]["success"], false);
}

#[tokio::test]
async fn what_a_call_touched_is_told_after_it() {
    let ear = Ear::new();
    let effects = Effects::of(EffectClass::Write)
        .using(ResourceKey::path("/w/in"), ResourceAccess::Read)
        .using(ResourceKey::path("/w/out"), ResourceAccess::Write)
        .using(ResourceKey::new("lock", "x"), ResourceAccess::Write);
    let tool = MockNativeTool::named("test.copy")
        .effects(effects)
        .class(EffectClass::Write);
    let host = TestHost::build(|builder| ear.set().join(builder).tool(tool)).await;
    host.call("copy", json!({})).await;
    ear.hears(4).await;
    assert_eq!(
        ear.names(),
        ["tool:pre", "tool:post", "artifact:read", "artifact:write"]
    );
    assert_eq!(ear.only("artifact:read")["path"], "/w/in");
    assert_eq!(ear.only("artifact:write")["path"], "/w/out");
    assert_eq!(ear.only("artifact:write")["tool_name"], "copy");
}

#[tokio::test]
async fn a_person_who_is_asked_is_told_of() {
    let ear = Ear::new();
    let tool = MockNativeTool::named("test.write").class(EffectClass::Write);
    let host = TestHost::build(|builder| {
        let ask = Approvals::ASK;
        let builder = builder
            .policy(TestHost::policy(PermissionMode::Default, &[]))
            .approvals(ask);
        ear.set().join(builder).tool(tool)
    })
    .await;
    let operator = Principal::operator("op");
    for (verdict, event) in [
        (
            Verdict::Allow {
                scope: ApprovalScope::Once,
                rule: None,
                valid_for_seconds: None,
                arguments: None,
            },
            "approval:granted",
        ),
        (Verdict::Deny { feedback: None }, "approval:denied"),
    ] {
        ear.recorder.clear();
        let call = host
            .host
            .start(host.request("write", json!({ "verdict": event })))
            .await;
        ear.hears(2).await;
        assert_eq!(ear.names(), ["tool:pre", "approval:required"]);
        let asked = host.host.approvals();
        host.host
            .decide(asked[0].ask_id, verdict, &operator)
            .await
            .unwrap();
        call.answer().await;
        ear.hears(2).await;
        assert!(ear.names().contains(&event.to_owned()), "{:?}", ear.names());
    }
}

#[tokio::test]
async fn a_no_of_the_rules_and_a_stop_are_told() {
    let ear = Ear::new();
    let gate = MockToolGate::new();
    let slow = MockNativeTool::named("test.slow").gate(&gate);
    let host = TestHost::build(|builder| {
        let builder = builder.policy(TestHost::policy(PermissionMode::Bypass, &["deny shut"]));
        ear.set()
            .join(builder)
            .tool(slow)
            .tool(MockNativeTool::named("test.shut"))
    })
    .await;
    let call = host.host.start(host.request("slow", json!({}))).await;
    gate.entered(1).await;
    host.host
        .cancel(call.invocation_id(), &Principal::agent("test"));
    call.answer().await;
    ear.hears(4).await;
    let mut names = ear.names();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "cancel:completed",
            "cancel:requested",
            "tool:error",
            "tool:pre"
        ]
    );
    assert_eq!(
        ear.only("cancel:requested")["reason"],
        "it was canceled on request"
    );
    assert_eq!(ear.only("cancel:completed")["was_immediate"], true);

    ear.recorder.clear();
    let class = host.call("shut", json!({})).await.error_class().unwrap();
    ear.hears(1).await;
    assert_eq!(ear.names().last().unwrap(), "policy:violation");
    assert_eq!(ear.only("policy:violation")["violation"], class.as_str());
}

#[tokio::test]
async fn modules_hear_which_of_them_are_missing() {
    let ear = Ear::new();
    let absent = |_: Coordinator, _: Map<String, Value>| async { Err(MountError::other("no key")) };
    let modules = set(vec![
        RustModule::tool("tool-absent", absent),
        RustModule::hook("hooks-ear", ear.module()),
    ]);
    let _host = super::host(&modules).await;
    ear.hears(1).await;
    let expected = json!({
        "module_type": "tool", "module_id": "tool-absent", "error": "no key", "reason_code": "unknown",
        "source": null,
    });
    assert_eq!(
        ear.recorder.events(),
        [("module:load_failed".to_owned(), expected)]
    );
}
