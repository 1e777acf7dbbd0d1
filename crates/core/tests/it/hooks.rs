//! Hooks see, rewrite and stop; they cannot allow.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolpost_core::{Hook, HookCall, HookError, HookVerdict};
use toolpost_model::{BoxFuture, EffectClass, ErrorClass, Mode, Outcome, ToolResult};
use toolpost_testkit::{MockTool, TestHost};

type Verdict = fn(&Value) -> Result<HookVerdict, HookError>;

struct Guard(Verdict, Arc<Mutex<Vec<Outcome>>>);

impl Hook for Guard {
    fn name(&self) -> &str {
        "guard"
    }
    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookVerdict, HookError>> {
        Box::pin(std::future::ready((self.0)(call.input.arguments().value())))
    }
    fn after<'a>(&'a self, _: &'a HookCall<'a>, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        self.1.lock().unwrap().push(result.outcome);
        Box::pin(std::future::ready(()))
    }
}

async fn run(verdict: Verdict, mode: Mode) -> (ToolResult, MockTool, TestHost) {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let tool = MockTool::named("demo.act").class(EffectClass::Write).schema(schema);
    let seen = Arc::default();
    let guard = Guard(verdict, Arc::clone(&seen));
    let host =
        TestHost::build(|b| b.tool(tool.clone()).hook(guard).policy(TestHost::policy(mode, &[]))).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(*seen.lock().unwrap(), [result.outcome], "the hook saw the end");
    (result, tool, host)
}

#[tokio::test]
async fn a_rewrite_is_checked_recorded_and_leaves_the_models_input_alone() {
    let rewrite =
        |_: &Value| Ok(HookVerdict::Rewrite { arguments: json!({ "n": 2 }), reason: "two is better".into() });
    let (result, tool, host) = run(rewrite, Mode::Bypass).await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    assert_eq!(tool.inputs(), [json!({ "n": 2 })]);
    let body: Value = serde_json::from_str(&host.records().await.last().unwrap().record.body).unwrap();
    assert_eq!(body["mutations"][0]["changed_fields"], json!(["n"]));

    let bad =
        |_: &Value| Ok(HookVerdict::Rewrite { arguments: json!({ "n": "two" }), reason: String::new() });
    let (result, tool, _) = run(bad, Mode::Bypass).await;
    assert_eq!((result.error_class(), tool.call_count()), (Some(ErrorClass::InvalidArguments), 0));
}

#[tokio::test]
async fn a_hook_that_stops_or_breaks_ends_the_call() {
    let (result, tool, _) = run(|_| Ok(HookVerdict::Stop { reason: "not today".into() }), Mode::Bypass).await;
    assert_eq!((result.outcome, result.error_class()), (Outcome::Denied, Some(ErrorClass::HookBlocked)));
    assert_eq!(tool.call_count(), 0);
    let (result, tool, _) = run(|_| Err(HookError("broken".into())), Mode::Bypass).await;
    assert_eq!((result.error_class(), tool.call_count()), (Some(ErrorClass::HookFailed), 0));
}

#[tokio::test]
async fn a_hook_that_has_nothing_to_say_does_not_allow() {
    let (result, tool, _) = run(|_| Ok(HookVerdict::Proceed), Mode::Default).await;
    assert_eq!((result.outcome, tool.call_count()), (Outcome::Denied, 0));
}

/// Decides by an argument, as an organisation's own engine might.
struct OnlyTwo;

impl toolpost_core::PolicyEngine for OnlyTwo {
    fn decide(&self, facts: &toolpost_core::Facts<'_>) -> toolpost_model::Decision {
        let n = facts.input.and_then(|input| input.arguments().value()["n"].as_i64());
        let mode = if n == Some(2) { Mode::Bypass } else { Mode::Plan };
        TestHost::policy(mode, &[]).decide(facts)
    }
    fn denies_outright(&self, _: &toolpost_model::Declaration, _: Option<EffectClass>) -> bool {
        false
    }
}

#[tokio::test]
async fn the_decision_is_made_on_the_arguments_the_tool_will_get() {
    for (to, outcome) in [(2, Outcome::Succeeded), (3, Outcome::Denied)] {
        let verdict: Verdict = if to == 2 {
            |_| Ok(HookVerdict::Rewrite { arguments: json!({ "n": 2 }), reason: String::new() })
        } else {
            |_| Ok(HookVerdict::Rewrite { arguments: json!({ "n": 3 }), reason: String::new() })
        };
        let tool = MockTool::named("demo.act").class(EffectClass::Write);
        let guard = Guard(verdict, Arc::default());
        let host = TestHost::build(|b| b.tool(tool.clone()).hook(guard).policy(OnlyTwo)).await;
        assert_eq!(host.call("act", json!({ "n": 1 })).await.outcome, outcome, "rewritten to {to}");
    }
}
