//! A record with every kind of outcome, made by real hosts with real tools.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_core::{
    AppendStrength, Approvals, CallHandle, CallRequest, Hook, HookCall, HookError, HookOutput,
    HostBuilder, HostLimits, Journal as _, KnownSecrets, MemoryJournal, RecordKind, StoredRecord,
};
use toolpost_model::{
    ApprovalScope, BatchOrdering, BatchPlace, BoxFuture, Declaration, EffectClass, LoadingStrategy,
    NestedCall, OnFailure, PermissionMode, Principal, RequestId, SurfaceRequest, Tool, ToolCall,
    ToolFailure, ToolOutput, ToolProgress, Verdict,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

/// A secret that no export may hold.
pub(super) const SECRET: &str = "hunter2-hunter2-hunter2";

/// Stops `demo.stopped`, rewrites `demo.changed`, lets the rest pass.
struct Watch;

impl Hook for Watch {
    fn name(&self) -> &str {
        "watch"
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let output = match call.declaration.tool_id.name() {
            "stopped" => HookOutput::stop("not today"),
            "changed" => HookOutput::rewrite(json!({ "n": 2 }), "two is better"),
            _ => HookOutput::proceed(),
        };
        Box::pin(std::future::ready(Ok(output)))
    }
}

/// Tells of its progress, then calls `demo.read`.
struct Outer;

impl Tool for Outer {
    fn declaration(&self) -> Declaration {
        Tool::declaration(&MockNativeTool::named("demo.outer"))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        for done in 1..=3 {
            let percent = Some(done as f64 * 30.0);
            call.context.progress(ToolProgress {
                percent,
                message: "working".to_owned(),
                ..ToolProgress::default()
            });
        }
        call.context.status("asking another tool");
        let inner = NestedCall::new("read", json!({ "path": "a" }));
        let result = call.context.call_tool(inner).await?;
        Ok(result.model_text().into())
    }
}

fn tools(builder: HostBuilder, gate: &MockToolGate) -> HostBuilder {
    let read = |name: &str| MockNativeTool::named(name).class(EffectClass::Read);
    let write = |name: &str| MockNativeTool::named(name).class(EffectClass::Write);
    let partial = ToolOutput {
        partial: true,
        ..ToolOutput::text("half of it")
    };
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "password": { "type": "string" } },
    });
    builder
        .tool(read("demo.read").schema(schema).output("text"))
        .tool(read("demo.nothing").output(ToolOutput::default()))
        .tool(read("demo.partial").output(partial))
        .tool(read("demo.broken").failing(ToolFailure::new("it broke")))
        .tool(read("demo.large").output("line\n".repeat(2_000)))
        .tool(read("demo.leaks").output(format!("the key is {SECRET}")))
        .tool(read("demo.denied"))
        .tool(write("demo.asked").output("done"))
        .tool(read("demo.stopped"))
        .tool(write("demo.changed").output("done"))
        .tool(read("demo.waits").gate(gate))
        .tool(write("demo.dies").gate(gate))
        .tool(read("demo.hidden").declare(|d| d.loading = LoadingStrategy::Deferred))
        .tool(Outer)
        .hook(Watch)
        .approvals(Approvals::ASK)
        .policy(TestHost::policy(
            PermissionMode::Bypass,
            &["deny demo.denied", "ask demo.asked"],
        ))
        .redactor(KnownSecrets::new([("key", SECRET)]))
        .limits(HostLimits {
            inline_chars: 1_000,
            ..HostLimits::default()
        })
}

fn operator() -> Principal {
    Principal::operator("ann")
}

async fn asked(host: &TestHost, verdict: Verdict) {
    let handle = host
        .host
        .start(host.request("asked", json!({ "n": 1 })))
        .await;
    let mut changes = host.host.approval_changes();
    let id = loop {
        if let Some(open) = host.host.approvals().first() {
            break open.ask_id;
        }
        changes.changed().await.unwrap();
    };
    host.host.decide(id, verdict, &operator()).await.unwrap();
    handle.answer().await;
}

fn yes(arguments: Option<serde_json::Value>) -> Verdict {
    Verdict::Allow {
        scope: ApprovalScope::Once,
        rule: None,
        valid_for_seconds: None,
        arguments,
    }
}

async fn running(host: &TestHost, request: CallRequest) -> CallHandle {
    let handle = host.host.start(request).await;
    while host.host.health().running == 0 {
        tokio::task::yield_now().await;
    }
    handle
}

fn place(index: u32) -> BatchPlace {
    BatchPlace {
        id: "turn".to_owned(),
        index,
        depends_on: (0..index).collect(),
        on_failure: OnFailure::CancelDependent,
        ordering: BatchOrdering::Serial,
    }
}

/// Lives through it all, and dies while a write runs.
async fn first_life(journal: &Arc<MemoryJournal>) {
    let gate = MockToolGate::new();
    let host = TestHost::on(Arc::clone(journal), |builder| tools(builder, &gate)).await;
    for (tool, arguments) in [
        ("read", json!({ "path": "a" })),
        ("read", json!({ "path": "a", "password": "sesame-sesame" })),
        ("nothing", json!({})),
        ("partial", json!({})),
        ("broken", json!({})),
        ("large", json!({})),
        ("leaks", json!({})),
        ("denied", json!({})),
        ("stopped", json!({})),
        ("changed", json!({ "n": 1 })),
        ("hidden", json!({})),
        ("no_such_tool", json!({ "secret": SECRET })),
        ("read", json!({ "path": 7 })),
        ("outer", json!({})),
    ] {
        host.call(tool, arguments).await;
    }
    asked(&host, yes(None)).await;
    asked(&host, yes(Some(json!({ "n": 2 })))).await;
    asked(
        &host,
        Verdict::Deny {
            feedback: Some("no".to_owned()),
        },
    )
    .await;

    let mut named = host.request("read", json!({ "path": "b" }));
    named.identity.request_id = Some(RequestId::new("r1"));
    named.identity.correlation_id = Some("turn-1".to_owned());
    host.host.start(named).await.answer().await;

    let waits = running(&host, host.request("waits", json!({}))).await;
    host.host.cancel(waits.invocation_id(), &operator());
    waits.answer().await;
    let mut late = host.request("waits", json!({}));
    late.times.timeout = Some(Duration::from_millis(1));
    host.host.call(late).await;

    let mut handles = Vec::new();
    for (index, tool) in (0..).zip(["broken", "read"]) {
        let mut request = host.request(tool, json!({}));
        request.batch = Some(place(index));
        handles.push(host.host.start(request).await);
    }
    for handle in handles {
        handle.answer().await;
    }

    let review = SurfaceRequest {
        task: Some("review".to_owned()),
        ..SurfaceRequest::default()
    };
    let session = host
        .host
        .open_session(Principal::agent("other"), review)
        .await
        .unwrap();
    let closing = Arc::clone(&session);
    host.host
        .call(CallRequest::new(
            session,
            "read",
            toolpost_model::ModelInput::value(json!({})),
        ))
        .await;
    host.host.close_session(&closing).await.unwrap();

    let mut dies = running(&host, host.request("dies", json!({}))).await;
    dies.detach();
}

/// Everything that was recorded.
pub(super) async fn records() -> Vec<StoredRecord> {
    let first = Arc::new(MemoryJournal::default());
    first_life(&first).await;
    let left = Arc::new(MemoryJournal::default());
    for row in first.read(0, usize::MAX).await.unwrap() {
        // The host goes when the test drops it; its death is the end of what it wrote.
        let is_last =
            row.record.kind == RecordKind::Started && row.record.body.contains("demo.dies");
        left.append(row.record, AppendStrength::Committed)
            .await
            .unwrap();
        if is_last {
            break;
        }
    }
    let gate = MockToolGate::new();
    let host = TestHost::on(Arc::clone(&left), |builder| tools(builder, &gate)).await;
    let _open = running(&host, host.request("dies", json!({ "n": 2 }))).await;
    left.read(0, usize::MAX).await.unwrap()
}
