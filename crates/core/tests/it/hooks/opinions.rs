//! A hook's opinion is a vote: the strictest wins, and none loosens what a rule or the mode says.

use serde_json::json;
use toolpost_core::{HookError, HookOutput};
use toolpost_model::{
    Behavior::{self, Allow, Ask, Deny},
    EffectClass, ErrorClass, HookEvent, Outcome, PermissionMode,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{Probe, act, last, runs};

fn thinking(behavior: Behavior) -> Probe {
    Probe::at(HookEvent::Before, move || {
        Ok(HookOutput::opinion(behavior, "so I think"))
    })
}

fn failing() -> Probe {
    Probe::at(HookEvent::Before, || Err(HookError("broken".to_owned())))
}

async fn check(mode: PermissionMode, rules: &[&str], hooks: Vec<Probe>, expected: Behavior) {
    let policy = TestHost::policy(mode, rules);
    let tool = act();
    let host = TestHost::build(|builder| {
        hooks.into_iter().fold(
            builder.tool(tool.clone()).policy(policy),
            |builder, hook| builder.hook(hook),
        )
    })
    .await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(
        last(&host).await["decision"]["behavior"],
        json!(expected),
        "{mode} {rules:?}"
    );
    assert_eq!(
        (result.outcome == Outcome::Succeeded, tool.call_count() == 1),
        (expected == Allow, expected == Allow)
    );
}

#[tokio::test]
async fn the_strictest_of_rules_and_hooks_wins_and_only_an_allow_stands_in_for_the_mode() {
    check(PermissionMode::Default, &[], vec![Probe::silent()], Ask).await;
    check(PermissionMode::Default, &[], vec![thinking(Allow)], Allow).await;
    check(
        PermissionMode::Default,
        &["ask act"],
        vec![thinking(Allow)],
        Ask,
    )
    .await;
    check(
        PermissionMode::Default,
        &["ask class:write"],
        vec![thinking(Allow)],
        Ask,
    )
    .await;
    check(PermissionMode::Bypass, &[], vec![thinking(Ask)], Ask).await;
    check(PermissionMode::Bypass, &[], vec![thinking(Deny)], Deny).await;
    check(
        PermissionMode::Bypass,
        &["allow act"],
        vec![thinking(Ask)],
        Ask,
    )
    .await;
    check(
        PermissionMode::Bypass,
        &["allow act"],
        vec![thinking(Deny)],
        Deny,
    )
    .await;
    check(
        PermissionMode::Default,
        &["ask act"],
        vec![thinking(Deny)],
        Deny,
    )
    .await;
    check(
        PermissionMode::Default,
        &[],
        vec![thinking(Allow), thinking(Ask)],
        Ask,
    )
    .await;
    check(
        PermissionMode::Default,
        &[],
        vec![thinking(Deny), thinking(Allow)],
        Deny,
    )
    .await;
    check(
        PermissionMode::Plan,
        &["allow act"],
        vec![thinking(Ask)],
        Ask,
    )
    .await;
}

#[tokio::test]
async fn neither_an_ask_nor_a_failure_loosens_a_denial() {
    // A tool whose class depends on the input is not hidden by the mode, so that its calls reach the hooks.
    let tool = MockNativeTool::named("demo.act")
        .declare(|d| d.interface.safety.class = toolpost_model::ClassFact::ByInput)
        .effects(toolpost_model::Effects::of(EffectClass::Write));
    for probe in [thinking(Ask), failing()] {
        let policy = TestHost::policy(PermissionMode::Plan, &[]);
        let host = TestHost::build(|b| b.tool(tool.clone()).hook(probe).policy(policy)).await;
        let result = host.call("act", json!({})).await;
        assert_eq!(result.error_class(), Some(ErrorClass::PermissionDenied));
        assert_eq!(last(&host).await["decision"]["behavior"], "deny");
    }
}

#[tokio::test]
async fn the_reason_names_the_hook_and_reaches_the_model_and_the_record() {
    let host = TestHost::build(|builder| builder.tool(act()).hook(thinking(Deny))).await;
    let result = host.call("act", json!({})).await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::Denied, Some(ErrorClass::PermissionDenied))
    );
    assert!(
        result.model_text().contains("the hook `probe`: so I think"),
        "{}",
        result.model_text()
    );
    assert_eq!(last(&host).await["decision"]["reason"]["type"], "hook");
    let run = &runs(&host).await[0];
    assert_eq!(
        (&run["did"], &run["reason"]),
        (&json!(["denied"]), &json!("so I think"))
    );
}

#[tokio::test]
async fn an_allow_does_not_cover_arguments_that_were_changed_after_it() {
    let rewrite = || {
        Probe::at(HookEvent::Before, || {
            Ok(HookOutput::rewrite(json!({ "n": 2 }), ""))
        })
    };
    check(
        PermissionMode::Default,
        &[],
        vec![thinking(Allow), rewrite()],
        Ask,
    )
    .await;
    check(
        PermissionMode::Default,
        &[],
        vec![rewrite(), thinking(Allow)],
        Allow,
    )
    .await;
    check(
        PermissionMode::Bypass,
        &[],
        vec![thinking(Ask), rewrite()],
        Ask,
    )
    .await;
    let both = || {
        Ok(HookOutput {
            arguments: Some(json!({ "n": 2 })),
            ..HookOutput::opinion(Allow, "so")
        })
    };
    check(
        PermissionMode::Default,
        &[],
        vec![Probe::at(HookEvent::Before, both)],
        Allow,
    )
    .await;
}

/// Decides by an argument, as an organisation's own engine might.
struct OnlyTwo;

impl toolpost_core::PolicyEngine for OnlyTwo {
    fn decide(&self, facts: &toolpost_core::PermissionFacts<'_>) -> toolpost_model::Decision {
        let n = facts
            .input
            .and_then(|input| input.arguments().value()["n"].as_i64());
        let mode = if n == Some(2) {
            PermissionMode::Bypass
        } else {
            PermissionMode::Plan
        };
        TestHost::policy(mode, &[]).decide(facts)
    }
    fn denies_outright(&self, _: &toolpost_model::Declaration, _: Option<EffectClass>) -> bool {
        false
    }
}

#[tokio::test]
async fn the_decision_is_made_on_the_arguments_the_tool_will_get() {
    for (to, outcome) in [(2, Outcome::Succeeded), (3, Outcome::Denied)] {
        let probe = Probe::at(HookEvent::Before, move || {
            Ok(HookOutput::rewrite(json!({ "n": to }), ""))
        });
        let host = TestHost::build(|b| b.tool(act()).hook(probe).policy(OnlyTwo)).await;
        assert_eq!(
            host.call("act", json!({ "n": 1 })).await.outcome,
            outcome,
            "rewritten to {to}"
        );
    }
}
