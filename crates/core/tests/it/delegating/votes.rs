//! The answer of an authority is one vote, and no answer is a vote to deny.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_core::{
    AuthorityFault, Export, ExportFormat, PermissionFacts, Policy, PolicyEngine as _,
};
use toolpost_model::{
    AuthorityKind,
    Behavior::{self, Allow, Ask, Deny},
    DelegatedVote, EffectClass, Effects, ErrorClass, Outcome, PermissionMode, Principal,
    Provenance, ResourceAccess, ResourceKey, Rule, RuleOrigin, RuleRef,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{Bureau, act, decision, host};
use crate::rules::calls::MadeCall;

async fn check(mode: PermissionMode, rules: &[&str], vote: Behavior, expected: Behavior) {
    let tool = act();
    let host = host(&tool, mode, rules, vec![Bureau::voting(vote)]).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    let decided = decision(&host).await;
    assert_eq!(
        decided["behavior"],
        json!(expected),
        "{mode} {rules:?} {vote:?}: {decided:#}"
    );
    assert_eq!(
        (result.outcome == Outcome::Succeeded, tool.call_count() == 1),
        (expected == Allow, expected == Allow)
    );
}

#[tokio::test]
async fn the_strictest_of_the_vote_and_the_rules_wins_and_only_an_allow_stands_in_for_the_mode() {
    const DELEGATE: &str = "delegate bureau act";
    check(PermissionMode::Default, &[DELEGATE], Allow, Allow).await;
    check(PermissionMode::Plan, &[DELEGATE], Allow, Allow).await;
    check(PermissionMode::Bypass, &[DELEGATE], Ask, Ask).await;
    check(PermissionMode::Bypass, &[DELEGATE], Deny, Deny).await;
    check(PermissionMode::NeverAsk, &[DELEGATE], Ask, Deny).await;
    check(PermissionMode::Bypass, &[DELEGATE, "allow act"], Ask, Ask).await;
    check(PermissionMode::Bypass, &[DELEGATE, "allow act"], Deny, Deny).await;
    check(
        PermissionMode::Bypass,
        &[DELEGATE, "allow act"],
        Allow,
        Allow,
    )
    .await;
    check(PermissionMode::Bypass, &["ask act", DELEGATE], Allow, Ask).await;
    check(
        PermissionMode::Bypass,
        &["ask class:write", DELEGATE],
        Allow,
        Ask,
    )
    .await;
    check(PermissionMode::Bypass, &["ask act", DELEGATE], Deny, Deny).await;
    check(
        PermissionMode::Bypass,
        &["deny act[/n = 1]", DELEGATE],
        Allow,
        Deny,
    )
    .await;
    check(
        PermissionMode::Bypass,
        &["delegate bureau class:write"],
        Deny,
        Deny,
    )
    .await;
    check(
        PermissionMode::Default,
        &["delegate bureau act[/n = 1]"],
        Allow,
        Allow,
    )
    .await;
    check(
        PermissionMode::Default,
        &["delegate bureau act[/n = 2]"],
        Allow,
        Ask,
    )
    .await;
}

#[tokio::test]
async fn an_allow_silences_no_caution_and_no_approval_that_the_tool_requires() {
    let effects = Effects::of(EffectClass::Write).with_caution("it is protected");
    let cautious = act().effects(effects);
    let strict =
        act().declare(|declaration| declaration.interface.permission.approval_required = true);
    for (tool, ground) in [(cautious, "caution"), (strict, "safety_check")] {
        let host = host(
            &tool,
            PermissionMode::Bypass,
            &["delegate bureau act"],
            vec![Bureau::voting(Allow)],
        )
        .await;
        host.call("act", json!({})).await;
        let decided = decision(&host).await;
        assert_eq!(
            (&decided["behavior"], &decided["reason"]["type"]),
            (&json!("ask"), &json!(ground))
        );
        assert_eq!(decided["delegated"][0]["behavior"], "allow");
    }
}

#[tokio::test]
async fn of_several_authorities_the_strictest_wins_and_all_are_on_record() {
    let bureaus = || vec![Bureau::voting(Allow), Bureau::voting(Deny).named("court")];
    let tool = act();
    let host = host(
        &tool,
        PermissionMode::Bypass,
        &["delegate bureau act", "delegate court act"],
        bureaus(),
    )
    .await;
    let result = host.call("act", json!({})).await;
    let message = result.error.unwrap().message;
    assert_eq!(
        message,
        "`act` was denied: the authority `court` denies it: so it is"
    );
    let decided = decision(&host).await;
    let votes: Vec<(&str, &str)> = decided["delegated"]
        .as_array()
        .unwrap()
        .iter()
        .map(|vote| {
            (
                vote["authority"].as_str().unwrap(),
                vote["behavior"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(votes, [("bureau", "allow"), ("court", "deny")]);
}

#[tokio::test(start_paused = true)]
async fn without_a_decision_the_call_is_denied_and_the_reason_names_the_authority_and_the_fault() {
    let never = Bureau::answering(|_| Box::pin(std::future::pending()));
    let slow = Bureau {
        limit: Duration::from_millis(70),
        ..never
    };
    let broken = Bureau::answering(|_| {
        Box::pin(std::future::ready(Err(AuthorityFault(
            "it is closed".to_owned(),
        ))))
    });
    let panics = Bureau::answering(|_| panic!("on the floor"));
    for (bureau, fault) in [
        (slow, "it did not answer within 70 ms"),
        (broken, "it is closed"),
        (panics, "it panicked: on the floor"),
        (
            Bureau::voting(Allow).named("other"),
            "this host has no authority of that name",
        ),
    ] {
        let tool = act();
        let host = host(
            &tool,
            PermissionMode::Bypass,
            &["delegate bureau act", "allow act"],
            vec![bureau],
        )
        .await;
        let result = host.call("act", json!({})).await;
        let error = result.error.unwrap();
        assert_eq!(
            (error.class, tool.call_count()),
            (ErrorClass::PermissionDenied, 0)
        );
        let expected =
            format!("the authority `bureau` gave no decision, so the call is denied: {fault}");
        assert!(error.message.contains(&expected), "{}", error.message);
        assert_eq!(
            error.hint.unwrap(),
            "the rule `delegate bureau act` in test delegates this decision"
        );
        let decided = decision(&host).await;
        assert_eq!(
            (&decided["behavior"], &decided["reason"]["type"]),
            (&json!("deny"), &json!("delegate"))
        );
        let vote = &decided["delegated"][0];
        assert!(vote["fault"].as_str().unwrap().starts_with(fault), "{vote}");
        assert_eq!(vote["behavior"], "deny");
    }
}

#[tokio::test]
async fn a_tool_whose_calls_are_delegated_is_shown_whatever_the_mode_says() {
    let effects =
        Effects::of(EffectClass::Write).using(ResourceKey::path("/w/a"), ResourceAccess::Write);
    let tool = act().effects(effects);
    for rule in [
        "delegate bureau act",
        "delegate bureau act(/w/**)",
        "delegate bureau fs.write(/w/**)",
    ] {
        let host = host(
            &tool,
            PermissionMode::Plan,
            &[rule],
            vec![Bureau::voting(Allow)],
        )
        .await;
        assert_eq!(
            host.call("act", json!({})).await.outcome,
            Outcome::Succeeded,
            "{rule}"
        );
    }
}

#[tokio::test]
async fn the_export_has_a_passthrough_with_the_delegate_in_front_of_the_decision() {
    let tool = act();
    let host = host(
        &tool,
        PermissionMode::Default,
        &["delegate bureau act"],
        vec![Bureau::voting(Allow)],
    )
    .await;
    host.call("act", json!({ "n": 1 })).await;
    let mut export = Export::new(ExportFormat::AgentTool);
    let mut written = Vec::new();
    for row in host.records().await {
        export.take(&row, &mut written).unwrap();
    }
    export.finish(&mut written);
    let lines: Vec<Value> = written
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        lines
            .iter()
            .filter(|line| line["record"] == kind)
            .collect::<Vec<_>>()
    };
    let decisions = of("permission_decision");
    assert_eq!(decisions.len(), 2, "{lines:#?}");
    assert_eq!(decisions[0]["behavior"], "passthrough");
    assert_eq!(decisions[0]["reason"]["type"], "rule");
    assert_eq!(
        decisions[0]["rule_refs"],
        json!(["delegate bureau act (test)"])
    );
    assert_eq!(decisions[0]["delegate"]["authority"], "bureau");
    assert_eq!(
        (
            &decisions[0]["delegate"]["behavior"],
            &decisions[0]["delegate"]["reason"]
        ),
        (&json!("allow"), &json!("so it is"))
    );
    assert_eq!(
        (&decisions[1]["behavior"], &decisions[1]["reason"]["type"]),
        (&json!("allow"), &json!("other"))
    );
    assert_eq!(decisions[1]["reason"]["ground"], "delegate");
    let refs = of("invocation")[0]["permission_decision_refs"]
        .as_array()
        .unwrap()
        .clone();
    let ids: Vec<Value> = decisions
        .iter()
        .map(|line| line["decision_id"].clone())
        .collect();
    assert_eq!(refs, ids);
}

/// The same tool under a name of its own, so that a rule about another tool does not match.
#[tokio::test]
async fn a_call_that_no_rule_delegates_and_one_that_another_rule_denies_ask_nobody() {
    let bureau = Bureau::voting(Allow);
    let other = MockNativeTool::named("demo.other").class(EffectClass::Write);
    let questions = bureau.questions.clone();
    let rules = ["delegate bureau act", "deny act[/n = 2]", "allow other"];
    let host = TestHost::build(|builder| {
        super::governed(
            builder.tool(act()).tool(other),
            PermissionMode::Default,
            &rules,
            vec![bureau],
        )
    })
    .await;
    assert_eq!(
        host.call("other", json!({})).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(
        host.call("act", json!({ "n": 2 })).await.outcome,
        Outcome::Denied
    );
    assert_eq!(questions.count(), 0);
    assert!(decision(&host).await["delegated"].is_null());
    assert_eq!(
        host.call("act", json!({ "n": 1 })).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(questions.count(), 1);
}

/// The decision on a call where the authority votes for it.
fn allowed_by_vote(rule: &str, call: &MadeCall) -> Behavior {
    let vote = DelegatedVote {
        authority: "bureau".parse().unwrap(),
        kind: None,
        behavior: Allow,
        reason: None,
        fault: None,
        rule: RuleRef::from(&Rule::parse(rule, RuleOrigin::Cli, "test").unwrap()),
        cached: false,
        at_us: 0,
        duration_us: 0,
    };
    let principal = Principal::agent("agent");
    let facts = PermissionFacts {
        delegated: &[vote],
        ..call.facts(&principal)
    };
    Policy::of(PermissionMode::Default, &[rule])
        .unwrap()
        .decide(&facts)
        .behavior
}

#[test]
fn the_allow_of_an_authority_reaches_no_further_than_an_allow_rule() {
    let check = |rule: &str, call: &MadeCall, expected: Behavior| {
        assert_eq!(allowed_by_vote(rule, call), expected, "{rule}");
        let allow = rule.replace("delegate bureau", "allow");
        let by_rule = Policy::of(PermissionMode::Default, &[&allow]).unwrap();
        let by_rule = by_rule.decide(&call.facts(&Principal::agent("agent")));
        assert_eq!(by_rule.behavior, expected, "{allow}");
    };
    let shell = |command: &str| MadeCall::read(&format!("shell: {command}"), None);
    check("delegate bureau shell", &shell("make"), Allow);
    check("delegate bureau shell(make *)", &shell("make all"), Allow);
    check(
        "delegate bureau shell(make *)",
        &shell("make all > .bashrc"),
        Ask,
    );
    let mut stranger = shell("make");
    stranger.declaration.tool_id = "evil.shell".parse().unwrap();
    stranger.declaration.provenance = Provenance::Outside;
    check("delegate bureau shell", &stranger, Ask);
    check("delegate bureau shell(make)", &stranger, Ask);
    check("delegate bureau evil.shell", &stranger, Allow);
}

#[tokio::test]
async fn the_exported_reason_is_that_of_the_authority_where_two_rules_delegate_to_it() {
    let tool = act();
    let bureau = Bureau {
        kind: AuthorityKind::Endpoint,
        ..Bureau::voting(Deny)
    };
    let rules = ["delegate bureau demo.act", "delegate bureau class:write"];
    let host = host(&tool, PermissionMode::Default, &rules, vec![bureau]).await;
    host.call("act", json!({ "n": 1 })).await;
    let mut export = Export::new(ExportFormat::AgentTool);
    let mut written = Vec::new();
    for row in host.records().await {
        export.take(&row, &mut written).unwrap();
    }
    export.finish(&mut written);
    let mut lines = written
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decided = lines
        .rfind(|line| line["record"] == "permission_decision")
        .unwrap();
    assert_eq!(decided["reason"]["type"], "policy", "{decided}");
}
