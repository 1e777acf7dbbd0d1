//! Answers with the host's own engine: what it suggests is what is remembered, and that is enough and not more.

use serde_json::{Value, json};
use toolpost_core::{ApprovalError, Approvals, Policy, PolicySpec};
use toolpost_model::{
    ApprovalScope, ArgumentKind, ArgumentMeaning, EffectClass, ErrorClass, Outcome, PermissionMode,
    RememberOffer, Rule, RuleOrigin, Verdict,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{body, decide, question, records_of, runs_unasked, scoped};

fn shell() -> MockNativeTool {
    MockNativeTool::named("shell.shell")
        .class(EffectClass::Execute)
        .output("done")
        .declare(|declaration| {
            declaration.interface.permission.arguments = vec![
                ArgumentMeaning::of("command", ArgumentKind::Command),
                ArgumentMeaning::of("environment", ArgumentKind::Environment),
            ];
        })
}

async fn host(tool: &MockNativeTool, rules: Vec<Rule>) -> TestHost {
    let policy = Policy::compile(PolicySpec {
        mode: PermissionMode::Default,
        rules,
        ..PolicySpec::default()
    })
    .unwrap();
    TestHost::build(|builder| {
        builder
            .tool(tool.clone())
            .policy(policy)
            .approvals(Approvals::ASK)
    })
    .await
}

fn rule(line: &str) -> Rule {
    Rule::parse(line, RuleOrigin::User, "toolpost.yaml:3").unwrap()
}

fn command(text: &str) -> Value {
    json!({ "command": text })
}

/// Runs a command after an answer, and returns the rule that came of it.
async fn answered(host: &TestHost, text: &str, verdict: Verdict) -> Option<String> {
    let handle = host.host.start(host.request("shell", command(text))).await;
    let decided = decide(host, question(&host.host).await.ask_id, verdict)
        .await
        .unwrap();
    assert_eq!(
        handle.answer().await.result().outcome,
        Outcome::Succeeded,
        "{text}"
    );
    decided.rule
}

async fn runs(host: &TestHost, text: &str) -> bool {
    runs_unasked(&host.host, host.request("shell", command(text))).await
}

#[tokio::test]
async fn a_command_that_was_approved_for_the_session_passes_and_its_likes_do_not() {
    let tool = shell();
    let host = host(&tool, vec![rule("ask shell(git push *)")]).await;
    let asked = {
        let handle = host
            .host
            .start(host.request("shell", command("git push origin main")))
            .await;
        let asked = question(&host.host).await;
        assert_eq!(asked.commands, ["git push origin main"]);
        assert_eq!(asked.summary, "shell: git push origin main");
        assert_eq!(
            asked.decision.reason.rule.as_ref().unwrap().place,
            "toolpost.yaml:3"
        );
        assert_eq!(
            asked.suggestions[0],
            "allow shell.shell(git push origin main)"
        );
        decide(&host, asked.ask_id, scoped(ApprovalScope::Session))
            .await
            .unwrap();
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
        asked
    };
    assert!(runs(&host, "git push origin main").await);
    for other in [
        "git push origin other",
        "git push --force origin main",
        "git push origin main; rm -rf x",
    ] {
        assert!(!runs(&host, other).await, "{other}");
    }
    // The story: asked by the rule, answered by a person.
    let end = body(records_of(&host, asked.ask_id).await.last().unwrap());
    assert_eq!(end["decision"]["behavior"], "allow");
}

#[tokio::test]
async fn a_yes_for_a_command_is_none_for_it_with_other_variables() {
    let tool = shell();
    let host = host(&tool, Vec::new()).await;
    let with =
        |path: &str| json!({ "command": "make x", "environment": { "PATH": path, "LANG": "C" } });
    assert_eq!(
        answered(&host, "make x", scoped(ApprovalScope::Session))
            .await
            .as_deref(),
        Some("allow shell.shell(make x)")
    );
    let free = json!({ "command": "make x", "environment": { "LANG": "C" } });
    assert!(runs_unasked(&host.host, host.request("shell", free)).await);
    assert!(!runs_unasked(&host.host, host.request("shell", with("/w/bin"))).await);
    let handle = host.host.start(host.request("shell", with("/w/bin"))).await;
    let asked = question(&host.host).await;
    assert_eq!(asked.commands, ["PATH=/w/bin make x"]);
    assert_eq!(asked.summary, "shell: PATH=/w/bin make x");
    assert_eq!(asked.suggestions, ["allow shell.shell(PATH=/w/bin make x)"]);
    decide(&host, asked.ask_id, scoped(ApprovalScope::Session))
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert!(runs_unasked(&host.host, host.request("shell", with("/w/bin"))).await);
    assert!(!runs_unasked(&host.host, host.request("shell", with("/w/other"))).await);
}

#[tokio::test]
async fn every_suggestion_works_as_an_answer_that_is_remembered() {
    let tool = shell();
    let count = {
        let host = host(&tool, Vec::new()).await;
        let _handle = host
            .host
            .start(host.request("shell", command("cargo build --release")))
            .await;
        question(&host.host).await.suggestions.len()
    };
    assert!(count >= 2, "narrow and wide");
    for place in 0..count {
        let host = host(&tool, Vec::new()).await;
        let handle = host
            .host
            .start(host.request("shell", command("cargo build --release")))
            .await;
        let asked = question(&host.host).await;
        let rule = Some(asked.suggestions[place].clone());
        let scope = ApprovalScope::Remember;
        let verdict = Verdict::Allow {
            scope,
            rule,
            valid_for_seconds: None,
            arguments: None,
        };
        let decided = decide(&host, asked.ask_id, verdict).await.unwrap();
        assert_eq!(decided.remembered.unwrap().rule, asked.suggestions[place]);
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
        assert!(
            runs(&host, "cargo build --release").await,
            "{}",
            asked.suggestions[place]
        );
        assert!(
            !runs(&host, "rm -rf /").await,
            "{}",
            asked.suggestions[place]
        );
    }
}

#[tokio::test]
async fn what_must_be_asked_every_time_is_asked_every_time() {
    let tool = shell();
    let mut never = rule("ask shell(git push *)");
    never.remember = RememberOffer::Never;
    let host = host(&tool, vec![never]).await;
    for text in ["git push origin main", "$(cat todo)"] {
        let handle = host.host.start(host.request("shell", command(text))).await;
        let asked = question(&host.host).await;
        assert!(
            asked.suggestions.is_empty(),
            "{text}: {:?}",
            asked.suggestions
        );
        for scope in [ApprovalScope::Session, ApprovalScope::Remember] {
            let refused = decide(&host, asked.ask_id, scoped(scope)).await;
            assert!(
                matches!(refused, Err(ApprovalError::NothingToRemember { .. })),
                "{text}: {refused:?}"
            );
        }
        decide(&host, asked.ask_id, scoped(ApprovalScope::Once))
            .await
            .unwrap();
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
        assert!(!runs(&host, text).await);
    }
}

#[tokio::test]
async fn with_other_arguments_the_rule_is_about_those() {
    let tool = shell();
    let host = host(&tool, vec![rule("ask shell(git push *)")]).await;
    let verdict = Verdict::Allow {
        scope: ApprovalScope::Session,
        rule: None,
        valid_for_seconds: None,
        arguments: Some(command("git push origin branch")),
    };
    let rule = answered(&host, "git push origin main", verdict).await;
    assert_eq!(
        rule.as_deref(),
        Some("allow shell.shell(git push origin branch)")
    );
    assert_eq!(tool.inputs(), [command("git push origin branch")]);
    assert!(runs(&host, "git push origin branch").await);
    assert!(!runs(&host, "git push origin main").await);
}

#[tokio::test]
async fn an_edit_into_what_is_denied_is_denied() {
    let tool = shell();
    let host = host(&tool, vec![rule("deny shell(rm *)")]).await;
    let handle = host
        .host
        .start(host.request("shell", command("make")))
        .await;
    let id = question(&host.host).await.ask_id;
    decide(&host, id, super::edited(command("make && rm -rf build")))
        .await
        .unwrap();
    let answer = handle.answer().await;
    assert_eq!(
        answer.result().error_class(),
        Some(ErrorClass::PermissionDenied)
    );
    assert_eq!(tool.call_count(), 0);
}
