//! What sources offer beside tools, how they are doing, and what they keep back.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use toolpost_core::ToolFilter;
use toolpost_model::{
    BoxFuture, ClassFact, Declaration, EffectClass, EffectOrigin, ErrorClass, HiddenReason,
    LoadingStrategy, Outcome, PermissionMode, QuarantinedDefinition, SessionScope, Source,
    SourceCompanions, SourceError, SourceFeed, SourceHealth, SourceNotice, SourceSession,
    SourceState, ToolCall, ToolFailure, ToolId, ToolOutput, Visibility, WireNaming,
};
use toolpost_testkit::TestHost;

/// A library: one tool that is held back until it is accepted, and books to read.
#[derive(Default)]
struct Library {
    accepted: Arc<AtomicBool>,
    feed: Arc<Mutex<Option<SourceFeed>>>,
}

fn declared(id: &str, loading: LoadingStrategy) -> Declaration {
    let mut declaration = Declaration::new(id.parse().unwrap(), "Of the library");
    declaration.loading = loading;
    declaration.interface.safety.class = ClassFact::Always(EffectClass::Read);
    declaration
}

fn read_id() -> ToolId {
    "library.read".parse().unwrap()
}

impl Source for Library {
    fn name(&self) -> &'static str {
        "library"
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Namespaced
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        let mut declarations = vec![declared("library.read", LoadingStrategy::Companion)];
        if self.accepted.load(Ordering::SeqCst) {
            declarations.push(declared("library.lend", LoadingStrategy::Eager));
        }
        Box::pin(std::future::ready(Ok(declarations)))
    }

    fn health(&self) -> SourceHealth {
        let kept = QuarantinedDefinition {
            tool: "library.lend".parse().unwrap(),
            change: "new".to_owned(),
            diff: "+ lend".to_owned(),
            digest: "1".to_owned(),
        };
        let quarantined = if self.accepted.load(Ordering::SeqCst) {
            Vec::new()
        } else {
            vec![kept]
        };
        SourceHealth {
            state: SourceState::Ready,
            quarantined,
            ..SourceHealth::default()
        }
    }

    fn companions(&self) -> Arc<SourceCompanions> {
        Arc::new(SourceCompanions {
            resources: vec![json!({ "uri": "book://1", "name": "first" })],
            read: Some(read_id()),
            ..SourceCompanions::default()
        })
    }

    fn accept<'a>(
        &'a self,
        _: Option<&'a ToolId>,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ToolId>, SourceError>> {
        self.accepted.store(true, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(vec![
            "library.lend".parse().unwrap(),
        ])))
    }

    fn connect(&self, feed: SourceFeed) {
        *self.feed.lock().unwrap() = Some(feed);
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(std::future::ready(Ok(
            Arc::new(Reading) as Arc<dyn SourceSession>
        )))
    }
}

struct Reading;

impl SourceSession for Reading {
    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let read = json!({ "tool": tool, "uri": call.input.arguments().value()["uri"] });
        Box::pin(std::future::ready(Ok(read.into())))
    }
}

async fn names(host: &TestHost) -> Vec<String> {
    let filter = ToolFilter {
        include_deferred: true,
        ..ToolFilter::default()
    };
    host.host
        .list(&host.session, &filter)
        .await
        .iter()
        .map(|tool| tool.entry.name().to_owned())
        .collect()
}

#[tokio::test]
async fn a_companion_is_in_no_list_and_called_by_its_id() {
    let host = TestHost::build(|builder| builder.source(Library::default())).await;
    assert!(names(&host).await.is_empty());
    assert!(
        host.host
            .show(&host.session, "library__read")
            .await
            .is_none()
    );
    assert_eq!(
        host.host
            .surface(&host.session)
            .find("library.read")
            .unwrap()
            .1,
        Visibility::Unlisted
    );
    let offered = host.host.companions(&host.session);
    assert_eq!(offered.len(), 1);
    assert_eq!(
        (offered[0].0.as_str(), offered[0].1.read.as_ref()),
        ("library", Some(&read_id()))
    );
    let result = host
        .call("library.read", json!({ "uri": "book://1" }))
        .await;
    assert_eq!(result.structured_content.unwrap()["uri"], "book://1");
    let ended = host.records().await;
    let row = ended
        .iter()
        .find(|row| row.record.body.contains("book://1"))
        .unwrap();
    let body: Value = serde_json::from_str(&row.record.body).unwrap();
    assert_eq!(
        body["tool_id"], "library.read",
        "it is a call on record like any other"
    );
}

#[tokio::test]
async fn what_a_caller_may_not_read_is_not_offered_to_it() {
    let rules = TestHost::policy(PermissionMode::Bypass, &["deny library.read"]);
    let host = TestHost::build(|builder| builder.source(Library::default()).policy(rules)).await;
    let visibility = host
        .host
        .surface(&host.session)
        .find("library.read")
        .unwrap()
        .1;
    assert_eq!(visibility, Visibility::Blocked(HiddenReason::Policy));
    assert!(host.host.companions(&host.session).is_empty());
}

#[tokio::test]
async fn what_is_kept_back_is_told_and_offered_once_it_is_accepted() {
    let host = TestHost::build(|builder| builder.source(Library::default())).await;
    let report = host
        .host
        .sources()
        .into_iter()
        .find(|report| report.name == "library")
        .unwrap();
    assert_eq!((report.tools, report.health.quarantined.len()), (1, 1));
    let denied = host.call("library__lend", json!({})).await;
    assert_eq!(denied.error.unwrap().class, ErrorClass::UnknownTool);
    assert_eq!(
        host.host.accept("library", None, None).await.unwrap().len(),
        1
    );
    assert_eq!(names(&host).await, ["library__lend"]);
    assert_eq!(
        host.call("library__lend", json!({})).await.outcome,
        Outcome::Succeeded
    );
    assert!(host.host.accept("nowhere", None, None).await.is_err());
}

#[tokio::test]
async fn news_of_resources_reach_who_listens() {
    let library = Library::default();
    let feed = Arc::clone(&library.feed);
    let host = TestHost::build(|builder| builder.source(library)).await;
    let mut news = host.host.news();
    feed.lock()
        .unwrap()
        .as_ref()
        .unwrap()
        .notify(SourceNotice::ResourceUpdated("book://1".to_owned()));
    let told = news.recv().await.unwrap();
    assert_eq!(&*told.source, "library");
    assert!(matches!(told.notice, SourceNotice::ResourceUpdated(uri) if uri == "book://1"));
}
