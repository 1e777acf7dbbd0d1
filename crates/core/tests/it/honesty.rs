//! Whoever looks at the end of a call sees which kind of end it is: the caller, the record and the hooks alike.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolpost_core::{Hook, HookCall, HookError, HookOutput, HostLimits};
use toolpost_model::{
    BoxFuture, EffectClass, HookStanding, PermissionMode, ToolFailure, ToolOutput, ToolResult,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

/// Keeps what it was shown.
#[derive(Clone, Default)]
struct Onlooker(Arc<Mutex<Vec<Value>>>);

impl Onlooker {
    fn saw(&self, result: &ToolResult) -> BoxFuture<'static, Result<HookOutput, HookError>> {
        self.0
            .lock()
            .unwrap()
            .push(serde_json::to_value(result).unwrap());
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }
}

impl Hook for Onlooker {
    fn name(&self) -> &str {
        "onlooker"
    }

    fn standing(&self) -> HookStanding {
        HookStanding::Observer
    }

    fn after<'a>(
        &'a self,
        _: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        self.saw(result)
    }

    fn failed<'a>(
        &'a self,
        _: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        self.saw(result)
    }
}

fn tools(gate: &MockToolGate) -> Vec<MockNativeTool> {
    let partial = ToolOutput {
        partial: true,
        ..ToolOutput::text("half")
    };
    let schema = json!({ "type": "object", "required": ["n"] });
    vec![
        MockNativeTool::named("ends.whole").output("text"),
        MockNativeTool::named("ends.empty").output(()),
        MockNativeTool::named("ends.partial").output(partial),
        MockNativeTool::named("ends.cut").output("x".repeat(5_000)),
        MockNativeTool::named("ends.failed").failing(ToolFailure::new("broke")),
        MockNativeTool::named("ends.strict").schema(schema),
        MockNativeTool::named("ends.denied").class(EffectClass::Network),
        MockNativeTool::named("ends.slow").gate(gate),
    ]
}

#[tokio::test]
async fn hooks_and_records_see_each_end_as_the_caller_does() {
    let gate = MockToolGate::new();
    let onlooker = Onlooker::default();
    let limits = HostLimits {
        inline_chars: 1_000,
        ..HostLimits::default()
    };
    let host = TestHost::build(|builder| {
        let builder = tools(&gate)
            .into_iter()
            .fold(builder, |builder, tool| builder.tool(tool));
        builder
            .hook(onlooker.clone())
            .limits(limits)
            .policy(TestHost::policy(PermissionMode::Edits, &[]))
    })
    .await;
    let mut kinds = Vec::new();
    for (tool, outcome, disposition) in [
        ("whole", "succeeded", "inline"),
        ("empty", "succeeded", "empty"),
        ("partial", "partial", "inline"),
        ("cut", "succeeded", "preview"),
        ("failed", "failed", "inline"),
        ("strict", "failed", "synthetic"),
        ("denied", "denied", "synthetic"),
        ("slow", "timed_out", "synthetic"),
    ] {
        let mut request = host.request(tool, json!({}));
        request.times.timeout = (tool == "slow").then_some(Duration::from_millis(5));
        let answer = host.host.call(request).await;
        let told: Value = serde_json::from_str(answer.json()).unwrap();
        assert_eq!(
            (&told["outcome"], &told["disposition"]),
            (&json!(outcome), &json!(disposition)),
            "{tool}"
        );
        let seen = onlooker.0.lock().unwrap().pop().unwrap();
        // What a hook may still withhold is not kept before it was asked.
        let mut unkept = told.clone();
        unkept.as_object_mut().unwrap().remove("artifacts");
        assert_eq!(seen, unkept, "{tool}: what the hook saw");
        let last = host.records().await.pop().unwrap();
        let body: Value = serde_json::from_str(&last.record.body).unwrap();
        assert_eq!(body["result"], told, "{tool}: what the record has");
        kinds.push((outcome, disposition, told["error"]["class"].clone()));
    }
    for (place, kind) in kinds.iter().enumerate() {
        assert_eq!(
            kinds.iter().position(|other| other == kind),
            Some(place),
            "{kind:?} comes twice"
        );
    }
}

#[tokio::test]
async fn a_model_that_reads_text_is_told_of_nothing_and_of_half() {
    for (output, text) in [
        (
            ToolOutput::default(),
            "[empty: the tool succeeded and returned no content]",
        ),
        (ToolOutput::text("done"), "done"),
        (
            ToolOutput {
                partial: true,
                ..ToolOutput::text("half")
            },
            "[partial: only part of the work was done]\nhalf",
        ),
    ] {
        let host = TestHost::with(MockNativeTool::named("demo.say").output(output)).await;
        assert_eq!(host.call("say", json!({})).await.model_text(), text);
    }
}
