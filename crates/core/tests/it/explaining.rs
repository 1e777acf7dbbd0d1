//! What would happen to a call, layer by layer; and what a call that happened keeps of it.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{
    DeadlineBy, DecisionAlternativeKind, Explanation, Hook, HookCall, HookError, HookOutput,
    HostLimits, KeptIn, MatchedBy, SchedulerLimits, SchemaVerdict,
};
use toolpost_model::{
    BoxFuture, CancelSupport, EffectClass, Effects, ErrorClass, HookEvent, HookStanding, Lifecycle,
    LoadingStrategy, Outcome, PermissionMode, PersistStrategy, ResourceAccess, ResourceKey,
    Visibility,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

fn writer() -> MockNativeTool {
    let effects =
        Effects::of(EffectClass::Write).using(ResourceKey::path("/w/a"), ResourceAccess::Write);
    MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .effects(effects)
}

async fn explained(host: &TestHost, tool: &str, arguments: Value) -> Explanation {
    host.host.explain(host.request(tool, arguments)).await
}

#[tokio::test]
async fn each_layer_has_its_say() {
    let tool = writer().declare(|declaration| {
        declaration.aliases = vec!["do_it".to_owned()];
        declaration.interface.execution.timeout_ms = Some(1_500);
        declaration.interface.persistence.max_inline_chars = Some(77);
    });
    let policy = TestHost::policy(PermissionMode::Default, &["allow act", "ask class:network"]);
    let host = TestHost::build(|b| b.tool(tool).policy(policy)).await;
    for (asked, matched_by) in [
        ("act", MatchedBy::Name),
        ("demo.act", MatchedBy::Id),
        ("do_it", MatchedBy::Alias),
    ] {
        let layers = explained(&host, asked, json!({})).await.layers;
        let declaration = layers.declaration.unwrap();
        assert_eq!(
            (declaration.name.as_str(), declaration.matched_by),
            ("act", matched_by)
        );
        assert_eq!(layers.surface.visibility, Some(Visibility::Loaded));
        assert_eq!(layers.surface.why, "it is listed");
        assert_eq!(layers.invocation.schema, SchemaVerdict::Fits);
        let considered = layers.permission.unwrap().considered;
        assert_eq!(
            considered.len(),
            1,
            "the other rule is about another class: {considered:?}"
        );
        let now = layers.scheduling.unwrap().now.unwrap();
        assert_eq!(
            (now.locks.len(), now.alone, now.waits_for.len()),
            (1, false, 0)
        );
        let deadline = layers.execution.unwrap().deadline.unwrap();
        assert_eq!((deadline.ms, deadline.by), (1_500, DeadlineBy::Tool));
        let result = layers.result.unwrap();
        assert_eq!(
            (result.inline_chars, result.strategy),
            (77, PersistStrategy::PreviewAndPersist)
        );
        let persistence = layers.persistence.unwrap();
        assert_eq!(
            (
                persistence.strategy,
                persistence.preview_chars,
                persistence.not_kept
            ),
            (PersistStrategy::PreviewAndPersist, 77, None)
        );
        let kept = persistence.kept.unwrap();
        assert_eq!(
            (kept.place, kept.folder, kept.used_bytes),
            (KeptIn::Memory, None, Some(0))
        );
        assert!(kept.limit_bytes.is_some() && kept.read_with.is_empty());
    }
}

#[tokio::test]
async fn what_ends_a_call_early_names_what_would_change_it() {
    let strict = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("demo.count").schema(strict))
            .tool(
                MockNativeTool::named("demo.later")
                    .declare(|one| one.loading = LoadingStrategy::Deferred),
            )
            .tool(
                MockNativeTool::named("demo.off")
                    .declare(|one| one.lifecycle = Lifecycle::Disabled),
            )
            .tool(writer())
            .policy(TestHost::policy(PermissionMode::Default, &["deny later"]))
    })
    .await;
    for (tool, arguments, class, schema, kind) in [
        (
            "coun",
            json!({}),
            ErrorClass::UnknownTool,
            SchemaVerdict::NotChecked,
            DecisionAlternativeKind::Call,
        ),
        (
            "count",
            json!({}),
            ErrorClass::InvalidArguments,
            SchemaVerdict::Violated,
            DecisionAlternativeKind::Call,
        ),
        (
            "count",
            json!([1]),
            ErrorClass::SchemaValidationFailed,
            SchemaVerdict::Unreadable,
            DecisionAlternativeKind::Call,
        ),
        (
            "off",
            json!({}),
            ErrorClass::PolicyBlocked,
            SchemaVerdict::NotChecked,
            DecisionAlternativeKind::Setting,
        ),
        (
            "later",
            json!({}),
            ErrorClass::PolicyBlocked,
            SchemaVerdict::NotChecked,
            DecisionAlternativeKind::RemoveRule,
        ),
        (
            "act",
            json!({}),
            ErrorClass::PermissionDenied,
            SchemaVerdict::Fits,
            DecisionAlternativeKind::Answer,
        ),
    ] {
        let told = explained(&host, tool, arguments.clone()).await;
        assert!(!told.would_run, "{tool}");
        assert_eq!(
            told.error.as_ref().unwrap().class,
            class,
            "{tool} {arguments}"
        );
        assert_eq!(told.layers.invocation.schema, schema, "{tool} {arguments}");
        let kinds: Vec<DecisionAlternativeKind> =
            told.would_change.iter().map(|change| change.kind).collect();
        assert!(kinds.contains(&kind), "{tool}: {kinds:?}");
    }
    let violated = explained(&host, "count", json!({ "n": "x" }))
        .await
        .layers
        .invocation
        .violations;
    assert_eq!(violated.unwrap()[0]["at"], "/n");
}

#[tokio::test]
async fn a_deferred_tool_is_said_to_wait_for_discovery() {
    let tool = MockNativeTool::named("demo.later")
        .class(EffectClass::Read)
        .declare(|one| one.loading = LoadingStrategy::Deferred);
    let host = TestHost::with(tool).await;
    let hidden = explained(&host, "later", json!({})).await;
    assert_eq!(
        hidden.would_change[0].kind,
        DecisionAlternativeKind::Discover
    );
    assert!(
        hidden
            .layers
            .surface
            .why
            .ends_with("was not shown in this session yet")
    );
    host.host.show(&host.session, "later").await.unwrap();
    let shown = explained(&host, "later", json!({})).await;
    assert!(
        shown.would_run
            && shown
                .layers
                .surface
                .why
                .ends_with("was shown in this session")
    );
}

struct Watcher(HookStanding);

impl Hook for Watcher {
    fn name(&self) -> &str {
        "watcher"
    }

    fn standing(&self) -> HookStanding {
        self.0
    }

    fn concerns(&self, call: &HookCall<'_>) -> bool {
        call.event != HookEvent::Failure
    }

    fn before<'a>(&'a self, _: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }
}

#[tokio::test]
async fn hooks_that_would_be_asked_are_named_also_where_a_dry_run_asks_them_nothing() {
    let host = TestHost::build(|b| b.tool(writer()).hook(Watcher(HookStanding::Observer))).await;
    let told = explained(&host, "act", json!({})).await;
    assert!(told.hooks.is_empty(), "an observer has nothing to see");
    let [plan] = told.layers.hooks.as_slice() else {
        panic!("{:?}", told.layers.hooks)
    };
    assert_eq!(plan.events, [HookEvent::Before, HookEvent::After]);
}

#[tokio::test]
async fn a_look_at_a_busy_host_tells_what_the_call_would_wait_for_and_the_record_what_one_did() {
    let gate = MockToolGate::new();
    let scheduler = SchedulerLimits {
        concurrency: 4,
        session_concurrency: 4,
        queue: 4,
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let policy = TestHost::policy(PermissionMode::Bypass, &[]);
    let host =
        TestHost::build(|b| b.tool(writer().gate(&gate)).policy(policy).limits(limits)).await;
    let first = host.host.start(host.request("act", json!({}))).await;
    gate.entered(1).await;
    let told = explained(&host, "act", json!({})).await;
    assert!(told.would_run, "waiting is not refusing");
    let now = told.layers.scheduling.unwrap().now.unwrap();
    let waits: Vec<String> = now.waits_for.iter().map(ToString::to_string).collect();
    assert_eq!(waits, ["`path:/w/a` alone, which a call holds"]);
    let (events, mut recorder) = toolpost_testkit::CallEventRecorder::new(64);
    let mut request = host.request("act", json!({}));
    request.delivery.listener = Some(Arc::new(events));
    let second = host.host.start(request).await;
    while let Some(event) = recorder.next().await {
        if matches!(event.body, toolpost_model::EventBody::Status { .. }) {
            break;
        }
    }
    gate.let_through(2);
    let one = first.answer().await;
    let two = second.answer().await;
    let rows = host.records().await;
    let ended = |id| {
        let of_call = rows
            .iter()
            .filter(|row| row.record.invocation_id == Some(id));
        let mut bodies =
            of_call.map(|row| serde_json::from_str::<Value>(&row.record.body).unwrap());
        bodies.next_back().unwrap()["explain"].clone()
    };
    let quick = ended(one.result().invocation_id);
    assert_eq!(quick["waited_for"], Value::Null);
    assert_eq!(
        quick["deadline"],
        json!({ "ms": 60_000, "by": "host_default" })
    );
    let waited = ended(two.result().invocation_id);
    let [reason] = waited["waited_for"].as_array().unwrap().as_slice() else {
        panic!("{waited}")
    };
    assert_eq!(
        (&reason["for"], &reason["key"]),
        (&json!("resource"), &json!("path:/w/a"))
    );
    assert_eq!(reason["held_by"], json!([one.result().invocation_id]));
}

#[tokio::test]
async fn a_call_that_could_not_even_wait_is_said_not_to_run() {
    let gate = MockToolGate::new();
    let scheduler = SchedulerLimits {
        concurrency: 1,
        session_concurrency: 1,
        queue: 1,
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let policy = TestHost::policy(PermissionMode::Bypass, &[]);
    let host =
        TestHost::build(|b| b.tool(writer().gate(&gate)).policy(policy).limits(limits)).await;
    let runs = host.host.start(host.request("act", json!({}))).await;
    gate.entered(1).await;
    let told = explained(&host, "act", json!({})).await;
    assert!(
        told.would_run && told.refused_now.is_none(),
        "there is one place to wait in"
    );
    let waits = host.host.start(host.request("act", json!({}))).await;
    while host.host.health().queued == 0 {
        tokio::task::yield_now().await;
    }
    let told = explained(&host, "act", json!({})).await;
    assert!(!told.would_run && !told.would_ask && told.outcome.is_none());
    let refused = told.layers.scheduling.unwrap().now.unwrap().refused;
    assert!(refused.is_some());
    assert_eq!(told.refused_now, refused);
    let now = host.call("act", json!({})).await;
    assert_eq!(now.outcome, Outcome::Rejected, "and so it is");
    gate.let_through(2);
    for handle in [runs, waits] {
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    }
}

#[tokio::test]
async fn secrets_of_a_call_are_in_no_part_of_its_explanation() {
    let schema = json!({
        "type": "object",
        "properties": { "key": { "type": "string", "x-sensitive": true }, "note": { "type": "string" } },
    });
    let secret = "hunter2hunter2";
    let effects = Effects::of(EffectClass::Write).using(
        ResourceKey::path("/w/hunter2hunter2"),
        ResourceAccess::Write,
    );
    let tool = MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .schema(schema)
        .effects(effects);
    let host = TestHost::build(|b| {
        b.tool(tool)
            .policy(TestHost::policy(PermissionMode::Default, &["allow act"]))
    })
    .await;
    let told = explained(&host, "act", json!({ "key": secret })).await;
    assert!(
        told.layers.invocation.redacted,
        "the field is known as sensitive"
    );
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains(secret), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_said_to_be_discarded_where_it_may_still_come() {
    for (support, discarded) in [
        (CancelSupport::Unsupported, true),
        (CancelSupport::AtAwaitPoints, false),
    ] {
        let gate = MockToolGate::new();
        let tool = writer()
            .gate(&gate)
            .declare(|one| one.interface.execution.cancel = support);
        let policy = TestHost::policy(PermissionMode::Bypass, &[]);
        let host = TestHost::build(|b| b.tool(tool).policy(policy)).await;
        let mut request = host.request("act", json!({}));
        request.times.timeout = Some(Duration::from_millis(20));
        let answer = host.host.call(request).await;
        let result = answer.result();
        let error = result.error.as_ref().unwrap();
        assert_eq!(
            (result.outcome, error.retry.safe),
            (Outcome::TimedOut, false)
        );
        assert_eq!(
            error.message.ends_with("discarded"),
            discarded,
            "{}",
            error.message
        );
        let rows = host.records().await;
        let body: Value = serde_json::from_str(&rows.last().unwrap().record.body).unwrap();
        let late = if discarded {
            json!("discarded")
        } else {
            Value::Null
        };
        assert_eq!(body["explain"]["late"], late);
        assert_eq!(
            body["explain"]["deadline"],
            json!({ "ms": 20, "by": "caller" })
        );
    }
}
