//! Rules that the host writes name the id of the tool.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use toolpost_core::{
    Approvals, CatalogNotice, MemoryJournal, MemoryRules, Patience, RememberedRule, RuleStore,
};
use toolpost_model::{
    ApprovalScope, ErrorClass, InvocationId, Outcome, PermissionMode, PrincipalName, Verdict,
    WireNaming,
};
use toolpost_testkit::TestHost;

use super::crowd;

async fn host(
    journal: &Arc<MemoryJournal>,
    rules: &Arc<MemoryRules>,
    naming: WireNaming,
) -> TestHost {
    TestHost::on(Arc::clone(journal), |builder| {
        let policy = TestHost::policy(PermissionMode::Default, &[]);
        crowd(builder, naming)
            .policy(policy)
            .approvals(Approvals::ASK)
            .rule_store(rules.clone())
    })
    .await
}

/// Whether a call runs without a question.
async fn runs(host: &TestHost, tool: &str) -> bool {
    let mut request = host.request(tool, json!({}));
    request.times.patience = Some(Patience::Turn(std::time::Duration::from_millis(1)));
    let answer = host.host.call(request).await;
    match answer.result().outcome {
        Outcome::Succeeded => true,
        _ => {
            assert_eq!(
                answer.result().error_class(),
                Some(ErrorClass::ApprovalPending),
                "{tool}"
            );
            false
        }
    }
}

/// Calls a tool, says yes with a scope, and returns the suggestions and the rule that came of it.
async fn approved(host: &TestHost, tool: &str, scope: ApprovalScope) -> (Vec<String>, String) {
    let open: Vec<InvocationId> = host
        .host
        .approvals()
        .iter()
        .map(|asked| asked.ask_id)
        .collect();
    let handle = host
        .host
        .start(host.request(tool, json!({ "new": open.len() })))
        .await;
    let mut changes = host.host.approval_changes();
    let asked = loop {
        let new = host
            .host
            .approvals()
            .into_iter()
            .find(|asked| !open.contains(&asked.ask_id));
        match new {
            Some(asked) => break asked,
            None => changes.changed().await.unwrap(),
        }
    };
    let verdict = Verdict::Allow {
        scope,
        rule: None,
        valid_for_seconds: None,
        arguments: None,
    };
    let by = toolpost_model::Principal::operator("ann");
    let decided = host.host.decide(asked.ask_id, verdict, &by).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    (asked.suggestions, decided.rule.unwrap())
}

#[tokio::test]
async fn a_yes_for_one_tool_is_none_for_another_of_the_same_name() {
    for naming in [WireNaming::Bare, WireNaming::Namespaced] {
        for scope in [ApprovalScope::Session, ApprovalScope::Remember] {
            let journal = Arc::default();
            let rules = Arc::default();
            let host = host(&journal, &rules, naming).await;
            let (suggestions, rule) = approved(&host, "evil.echo", scope).await;
            assert_eq!(
                (suggestions.as_slice(), rule.as_str()),
                (&["allow evil.echo".to_owned()][..], "allow evil.echo")
            );
            assert!(runs(&host, "evil.echo").await);
            assert!(!runs(&host, "good.echo").await, "{naming:?} {scope:?}");
            let (_, rule) = approved(&host, "tool-a.shell", scope).await;
            assert_eq!(rule, "allow tool-a.shell");
            for other in ["evil.shell", "good.shell"] {
                assert!(!runs(&host, other).await, "{other}");
            }
        }
    }
}

#[tokio::test]
async fn hints_explanations_and_errors_name_the_id() {
    let policy = TestHost::policy(PermissionMode::Default, &[]);
    let host = TestHost::build(|builder| crowd(builder, WireNaming::Bare).policy(policy)).await;
    let error = host.call("echo", json!({})).await.error.unwrap();
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("--allow evil.echo"), "{hint}");
    let explained = host.host.explain(host.request("echo", json!({}))).await;
    let rules: Vec<&String> = explained
        .would_change
        .iter()
        .flat_map(|change| &change.rules)
        .collect();
    assert!(
        rules.iter().any(|rule| *rule == "allow evil.echo"),
        "{rules:?}"
    );
    assert!(
        rules.iter().all(|rule| !rule.starts_with("allow echo")),
        "{rules:?}"
    );
}

fn old(rule: &str, ask_id: InvocationId) -> RememberedRule {
    RememberedRule {
        id: ask_id.to_string(),
        rule: rule.to_owned(),
        principal: None,
        by: PrincipalName::new("ann"),
        at: Timestamp::UNIX_EPOCH,
        expires: Timestamp::MAX,
        ask_id,
        tool_id: None,
        definition: None,
    }
}

#[tokio::test]
async fn a_rule_of_the_old_form_is_rewritten_to_the_tool_it_was_about_or_dropped() {
    let journal: Arc<MemoryJournal> = Arc::default();
    let first: Arc<MemoryRules> = Arc::default();
    let before = host(&journal, &first, WireNaming::Namespaced).await;
    approved(&before, "evil.echo", ApprovalScope::Remember).await;
    let asked = first.load().unwrap()[0].ask_id;
    drop(before);

    // What an older host would have left behind: one that is on record, one that is not.
    let rules: Arc<MemoryRules> = Arc::default();
    rules.remember(&[old("allow echo", asked)]).unwrap();
    rules
        .remember(&[old("allow read_file", InvocationId::new())])
        .unwrap();
    rules
        .remember(&[old("allow fs.read(src/**)", InvocationId::new())])
        .unwrap();
    let host = host(&journal, &rules, WireNaming::Namespaced).await;
    let kept: Vec<String> = rules
        .load()
        .unwrap()
        .into_iter()
        .map(|kept| kept.rule)
        .collect();
    assert_eq!(kept, ["allow fs.read(src/**)", "allow evil.echo"]);
    assert!(runs(&host, "evil.echo").await && !runs(&host, "good.echo").await);
    assert!(!runs(&host, "good.read_file").await && !runs(&host, "tool-a.read_file").await);
    let dropped = CatalogNotice::DroppedRule {
        rule: "allow read_file".to_owned(),
    };
    assert!(
        host.host.notices().contains(&dropped),
        "{:?}",
        host.host.notices()
    );
}
