//! Answers for more than one call.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use toolpost_core::{
    ApprovalError, CatalogNotice, MemoryRules, RememberedRule, RuleStore, RuleStoreError,
};
use toolpost_model::{
    ApprovalScope, ErrorClass, Outcome, PermissionMode, Principal, SurfaceRequest, Verdict,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{
    Engine, act, asking, body, decide, host, question, records_of, runs_unasked, scoped, start,
    target, yes,
};

async fn answered(host: &TestHost, verdict: Verdict) -> toolpost_core::VerdictReceipt {
    let handle = start(host, target("main")).await;
    let decided = decide(host, question(&host.host).await.ask_id, verdict)
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    decided
}

/// Whether a call of another session runs without anybody being asked.
async fn runs_elsewhere(host: &TestHost) -> bool {
    let other = host
        .host
        .open_session(Principal::agent("other"), SurfaceRequest::default())
        .await
        .unwrap();
    let mut request = host.request("act", target("elsewhere"));
    request.session = other;
    runs_unasked(&host.host, request).await
}

#[tokio::test]
async fn a_yes_for_the_session_is_for_the_session() {
    let tool = act();
    let host = host(&tool).await;
    let decided = answered(&host, scoped(ApprovalScope::Session)).await;
    assert_eq!(
        (decided.rule.as_deref(), decided.remembered),
        (Some("allow demo.act"), None)
    );
    let result = host.call("act", target("other")).await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    let rows = records_of(&host, result.invocation_id).await;
    let rule = body(&rows[0])["decision"]["reason"]["rule"].clone();
    assert_eq!(
        (rule["origin"].as_str(), rule["rule"].as_str()),
        (Some("session"), Some("allow demo.act"))
    );
    assert!(
        rule["place"].as_str().unwrap().ends_with("by ann"),
        "{rule}"
    );
    assert!(!runs_elsewhere(&host).await);

    // Another policy: what was said for the session stands on that one, and no higher than an allow ever does.
    host.host.replace_policy(Arc::new(Engine::new(
        PermissionMode::Default,
        &["ask shell"],
    )));
    assert_eq!(
        host.call("act", target("third")).await.outcome,
        Outcome::Succeeded
    );
    host.host
        .replace_policy(Arc::new(Engine::new(PermissionMode::Default, &["ask act"])));
    let mut request = host.request("act", target("fourth"));
    request.times.patience = Some(toolpost_core::Patience::Turn(
        std::time::Duration::from_millis(1),
    ));
    assert_eq!(
        host.host.call(request).await.result().error_class(),
        Some(ErrorClass::ApprovalPending)
    );
    host.host.replace_policy(Arc::new(Engine::new(
        PermissionMode::Default,
        &["deny act"],
    )));
    assert_eq!(
        host.call("act", target("fifth")).await.outcome,
        Outcome::Denied
    );
}

#[tokio::test]
async fn a_remembered_yes_is_for_everybody_until_it_is_forgotten() {
    let tool = act();
    let store = Arc::new(MemoryRules::default());
    let host = TestHost::build(|builder| asking(builder, &tool).rule_store(store.clone())).await;
    assert!(!runs_elsewhere(&host).await);
    let verdict = Verdict::Allow {
        scope: ApprovalScope::Remember,
        rule: Some("allow demo.*".to_owned()),
        valid_for_seconds: Some(3_600),
        arguments: None,
    };
    let mut generations = host.host.changes();
    generations.mark_unchanged();
    let kept = answered_of(&host, verdict).await;
    assert!(
        generations.has_changed().unwrap(),
        "what is shown may have changed with the rules"
    );
    assert_eq!(
        (kept.rule.as_str(), kept.by.as_str()),
        ("allow demo.*", "ann")
    );
    assert_eq!(kept.expires.duration_since(kept.at).as_secs(), 3_600);
    assert!(runs_elsewhere(&host).await);
    host.host.replace_policy(Arc::new(Engine::default()));
    assert!(runs_elsewhere(&host).await);
    assert_eq!(host.host.remembered(), std::slice::from_ref(&kept));
    assert_eq!(store.load().unwrap(), std::slice::from_ref(&kept));

    // Another host finds it.
    let next = TestHost::build(|builder| asking(builder, &tool).rule_store(store.clone())).await;
    assert!(runs_elsewhere(&next).await);
    assert!(next.host.forget(&kept.id).await.unwrap());
    assert!(!runs_elsewhere(&next).await);
    assert!(!next.host.forget(&kept.id).await.unwrap());
    assert!(next.host.remembered().is_empty() && store.load().unwrap().is_empty());
}

async fn answered_of(host: &TestHost, verdict: Verdict) -> RememberedRule {
    let open: Vec<_> = host
        .host
        .approvals()
        .iter()
        .map(|asked| asked.ask_id)
        .collect();
    let handle = start(host, target("main")).await;
    let asked = super::questions(&host.host, open.len() + 1).await;
    let new = asked
        .iter()
        .find(|asked| !open.contains(&asked.ask_id))
        .unwrap();
    let decided = decide(host, new.ask_id, verdict).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    decided.remembered.unwrap()
}

#[tokio::test]
async fn an_expired_rule_does_not_speak() {
    let tool = act();
    let store = Arc::new(MemoryRules::default());
    let host = TestHost::build(|builder| asking(builder, &tool).rule_store(store.clone())).await;
    let mut kept = answered(&host, scoped(ApprovalScope::Remember))
        .await
        .remembered
        .unwrap();
    kept.expires = kept.at;
    store.remember(std::slice::from_ref(&kept)).unwrap();
    let next = TestHost::build(|builder| asking(builder, &tool).rule_store(store)).await;
    assert!(!runs_elsewhere(&next).await);
    assert!(next.host.remembered().is_empty());
}

#[tokio::test]
async fn nothing_is_remembered_that_was_not_suggested() {
    let tool = act();
    let mut mute = Engine::default();
    mute.suggests = false;
    for (engine, rule) in [(Engine::default(), Some("allow *")), (mute, None)] {
        let host = TestHost::build(|builder| asking(builder, &tool).policy(engine)).await;
        let _handle = start(&host, target("main")).await;
        let id = question(&host.host).await.ask_id;
        for scope in [ApprovalScope::Session, ApprovalScope::Remember] {
            let rule = rule.map(ToOwned::to_owned);
            let verdict = Verdict::Allow {
                scope,
                rule,
                valid_for_seconds: None,
                arguments: None,
            };
            let refused = decide(&host, id, verdict).await;
            assert!(
                matches!(refused, Err(ApprovalError::NothingToRemember { .. })),
                "{refused:?}"
            );
        }
        assert_eq!(host.host.approvals().len(), 1);
    }
    assert_eq!(tool.call_count(), 0);
}

/// A store whose disk can break.
#[derive(Default)]
struct Breaking {
    inner: MemoryRules,
    broken: AtomicBool,
}

impl Breaking {
    fn check(&self) -> Result<(), RuleStoreError> {
        let broken = RuleStoreError {
            reason: "the disk is gone".to_owned(),
            source: None,
        };
        if self.broken.load(Ordering::SeqCst) {
            Err(broken)
        } else {
            Ok(())
        }
    }
}

impl RuleStore for Breaking {
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError> {
        self.check().and_then(|()| self.inner.load())
    }
    fn remember(&self, rules: &[RememberedRule]) -> Result<(), RuleStoreError> {
        self.check().and_then(|()| self.inner.remember(rules))
    }
    fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        self.check().and_then(|()| self.inner.forget(id))
    }
}

#[tokio::test]
async fn a_rule_that_cannot_be_kept_is_no_answer() {
    let tool = act();
    let store = Arc::new(Breaking::default());
    let host = TestHost::build(|builder| asking(builder, &tool).rule_store(store.clone())).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    store.broken.store(true, Ordering::SeqCst);
    let refused = decide(&host, id, scoped(ApprovalScope::Remember)).await;
    assert!(
        matches!(&refused, Err(ApprovalError::Rules(_))),
        "{refused:?}"
    );
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("the disk is gone")
    );
    assert_eq!((host.host.approvals().len(), tool.call_count()), (1, 0));
    // Once is still possible.
    decide(&host, id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn rules_that_cannot_be_read_allow_nothing_and_that_is_said() {
    let tool = act();
    let store = Arc::new(Breaking::default());
    let host = TestHost::build(|builder| asking(builder, &tool).rule_store(store.clone())).await;
    answered(&host, scoped(ApprovalScope::Remember)).await;
    assert!(host.host.notices().is_empty());
    store.broken.store(true, Ordering::SeqCst);
    let host = TestHost::build(|builder| asking(builder, &tool).rule_store(store)).await;
    assert!(!runs_elsewhere(&host).await);
    let notices = host.host.notices();
    assert!(
        matches!(&notices[..], [CatalogNotice::RememberedRules(why)] if why.contains("the disk is gone")),
        "{notices:?}"
    );
}

#[tokio::test]
async fn another_policy_shows_other_tools_at_once() {
    let tool = act();
    let other = MockNativeTool::named("demo.other");
    let host = TestHost::build(|builder| asking(builder, &tool).tool(other)).await;
    assert_eq!(names(&host), ["act", "other"]);
    host.host.replace_policy(Arc::new(Engine::new(
        PermissionMode::Default,
        &["deny act"],
    )));
    assert_eq!(names(&host), ["other"]);
    host.host.replace_policy(Arc::new(Engine::default()));
    assert_eq!(names(&host), ["act", "other"]);
}

fn names(host: &TestHost) -> Vec<String> {
    let surface = host.host.surface(&host.session);
    let shown = surface
        .all()
        .filter(|(_, seen)| *seen == toolpost_model::Visibility::Loaded);
    shown.map(|(entry, _)| entry.name().to_owned()).collect()
}
