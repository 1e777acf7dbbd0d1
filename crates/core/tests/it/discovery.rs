//! Surfaces, search and deferral.

use std::{collections::HashMap, sync::Arc};

use serde_json::json;
use toolpost_core::{CatalogNotice, ToolFilter};
use toolpost_model::{
    BoxFuture, Declaration, EffectClass, EffectOrigin, ErrorClass, HiddenReason, Lifecycle,
    LoadingStrategy, Outcome, PermissionMode, Principal, PrincipalRole, Requirements, SessionScope,
    Source, SourceError, SourceFeed, SourceNotice, SourceSession, SurfaceRequest, ToolSet,
    ToolSettings, ToolSurfaceSettings, Visibility, WireNaming,
};
use toolpost_testkit::{MockNativeTool, TestHost};

fn tool(id: &str, description: &str, tags: &[&str]) -> MockNativeTool {
    MockNativeTool::named(id).declare(|d| {
        d.description = description.to_owned();
        d.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
    })
}

async fn names(host: &TestHost, filter: ToolFilter) -> Vec<String> {
    host.host
        .list(&host.session, &filter)
        .await
        .iter()
        .map(|tool| tool.entry.name().to_owned())
        .collect()
}

fn search(query: &str) -> ToolFilter {
    ToolFilter {
        query: query.to_owned(),
        ..ToolFilter::default()
    }
}

#[tokio::test]
async fn every_hidden_tool_has_a_reason_and_cannot_be_called() {
    let requires =
        |change: fn(&mut Requirements)| move |d: &mut Declaration| change(&mut d.requires);
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("a.open"))
            .tool(MockNativeTool::named("a.denied"))
            .tool(MockNativeTool::named("a.writes").class(EffectClass::Write))
            .tool(
                MockNativeTool::named("a.sees")
                    .declare(requires(|r| r.model_capabilities.push("vision".into()))),
            )
            .tool(
                MockNativeTool::named("a.ops")
                    .declare(requires(|r| r.roles.push(PrincipalRole::Operator))),
            )
            .tool(
                MockNativeTool::named("a.release")
                    .declare(requires(|r| r.tasks.push("release".into()))),
            )
            .tool(
                MockNativeTool::named("a.unset")
                    .declare(|d| d.lifecycle = Lifecycle::RequiresSetup("no key".into())),
            )
            .tool(MockNativeTool::named("a.off"))
            .tool(
                MockNativeTool::named("a.later").declare(|d| d.loading = LoadingStrategy::Deferred),
            )
            .settings(HashMap::from([(
                "off".to_owned(),
                ToolSettings {
                    surface: ToolSurfaceSettings {
                        enabled: Some(false),
                        ..ToolSurfaceSettings::default()
                    },
                    ..ToolSettings::default()
                },
            )]))
            .policy(TestHost::policy(PermissionMode::Plan, &["deny denied"]))
    })
    .await;
    let surface = host.host.surface(&host.session);
    for (name, reason) in [
        ("denied", HiddenReason::Policy),
        ("writes", HiddenReason::Policy),
        ("sees", HiddenReason::ModelCapability),
        ("ops", HiddenReason::Role),
        ("release", HiddenReason::TaskScope),
        ("unset", HiddenReason::Setup),
        ("off", HiddenReason::Disabled),
    ] {
        assert_eq!(
            surface.find(name).unwrap().1,
            Visibility::Blocked(reason),
            "{name}"
        );
        let error = host.call(name, json!({})).await.error.unwrap();
        assert!(
            matches!(
                error.class,
                ErrorClass::PolicyBlocked | ErrorClass::SetupRequired
            ),
            "{name}: {error:?}"
        );
        assert_eq!(error.code, reason.as_str());
    }
    assert_eq!(names(&host, ToolFilter::default()).await, ["open"]);

    let request = SurfaceRequest {
        task: Some("release".into()),
        model_capabilities: vec!["vision".into()],
        ..SurfaceRequest::default()
    };
    let session = host
        .host
        .open_session(Principal::operator("op"), request)
        .await
        .unwrap();
    let listed = host.host.list(&session, &ToolFilter::default()).await;
    let seen: Vec<&str> = listed.iter().map(|tool| tool.entry.name()).collect();
    assert_eq!(seen, ["open", "sees", "ops", "release"]);
}

#[tokio::test]
async fn a_deferred_tool_must_be_shown_in_the_session_before_it_is_called() {
    let later = MockNativeTool::named("a.later").declare(|d| d.loading = LoadingStrategy::Deferred);
    let host = TestHost::build(|b| b.tool(later.clone())).await;
    let error = host.call("later", json!({})).await.error.unwrap();
    assert_eq!(error.class, ErrorClass::SchemaNotLoaded);
    assert!(error.retry.discover_first);
    assert!(
        names(&host, search("later")).await.is_empty(),
        "search skips deferred tools by default"
    );
    assert_eq!(
        host.call("later", json!({})).await.error_class(),
        Some(ErrorClass::SchemaNotLoaded)
    );
    let deferred = ToolFilter {
        include_deferred: true,
        ..search("later")
    };
    assert_eq!(names(&host, deferred).await, ["later"]);
    assert_eq!(
        host.call("later", json!({})).await.outcome,
        Outcome::Succeeded
    );
    let other = host.host.default_session(&Principal::agent("other"));
    let mut request = host.request("later", json!({}));
    request.session = other;
    assert_eq!(
        host.host.call(request).await.result().error_class(),
        Some(ErrorClass::SchemaNotLoaded)
    );

    let host = TestHost::build(|b| b.tool(later).require_shown(false)).await;
    assert_eq!(
        host.call("later", json!({})).await.outcome,
        Outcome::Succeeded
    );
}

#[tokio::test]
async fn search_ranks_names_over_descriptions_and_finds_substrings() {
    let host = TestHost::build(|b| {
        b.tool(tool("git.commit_log", "Shows history", &["vcs"]))
            .tool(tool(
                "files.read_file",
                "Reads a file of the workspace",
                &["files", "read"],
            ))
            .tool(tool(
                "files.write_file",
                "Writes text; creates the file if needed",
                &["files", "write"],
            ))
            .tool(tool(
                "http.fetch",
                "Fetches a URL and can save it to a file",
                &["net"],
            ))
    })
    .await;
    assert_eq!(names(&host, search("read_file")).await[0], "read_file");
    assert_eq!(names(&host, search("write text")).await[0], "write_file");
    assert_eq!(
        names(&host, search("files")).await.last().unwrap(),
        "fetch",
        "a word in a name counts more"
    );
    assert_eq!(
        names(&host, search("mmit_l")).await,
        ["commit_log"],
        "a substring is found"
    );
    assert_eq!(names(&host, search("FETCHES A URL")).await[0], "fetch");
    assert!(names(&host, search("zebra")).await.is_empty());
    let tags = ToolFilter {
        tags: vec!["files".into(), "write".into()],
        ..ToolFilter::default()
    };
    assert_eq!(names(&host, tags).await, ["write_file"]);
    let kind = ToolFilter {
        kind: Some("shell".into()),
        ..ToolFilter::default()
    };
    assert!(names(&host, kind).await.is_empty());
}

#[tokio::test]
async fn names_never_overwrite_one_another_and_settings_that_fit_nothing_are_told() {
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("a.same").output("first"))
            .tool(MockNativeTool::named("b.same").output("second"))
            .tool(MockNativeTool::named("a.same").output("third"))
            .tool(
                MockNativeTool::named("c.other")
                    .declare(|d| d.aliases = vec!["same".into(), "another".into()]),
            )
            .tool(MockNativeTool::named("c.bad").schema(json!({ "$ref": "https://example.com/x" })))
            .settings(HashMap::from([(
                "smae".to_owned(),
                ToolSettings::default(),
            )]))
    })
    .await;
    assert_eq!(host.call("same", json!({})).await.model_text(), "first");
    assert_eq!(host.call("b__same", json!({})).await.model_text(), "second");
    assert_eq!(host.call("b.same", json!({})).await.model_text(), "second");
    assert_eq!(
        host.call("another", json!({})).await.outcome,
        Outcome::Succeeded
    );
    let notices = host.host.notices();
    assert!(
        matches!(&notices[0], CatalogNotice::Namespaced { name, .. } if name == "b__same"),
        "{notices:?}"
    );
    assert!(
        matches!(&notices[1], CatalogNotice::NameTaken { name, .. } if name == "same"),
        "{notices:?}"
    );
    assert!(matches!(&notices[2], CatalogNotice::AliasTaken { alias, .. } if alias == "same"));
    assert!(matches!(&notices[3], CatalogNotice::BadSchema { .. }));
    assert!(matches!(&notices[4], CatalogNotice::UnusedSettings { name } if name == "smae"));
}

/// A source from outside: claims to be harmless, changes its list, has a search of its own.
#[derive(Clone, Default)]
struct Outside {
    tools: Arc<std::sync::Mutex<Vec<MockNativeTool>>>,
    feed: Arc<std::sync::OnceLock<SourceFeed>>,
}

impl Source for Outside {
    fn name(&self) -> &str {
        "outside"
    }
    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }
    fn naming(&self) -> WireNaming {
        WireNaming::Namespaced
    }
    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        use toolpost_model::DynTool as _;
        let listed = self
            .tools
            .lock()
            .unwrap()
            .iter()
            .map(|tool| tool.declaration())
            .collect();
        Box::pin(std::future::ready(Ok(listed)))
    }
    fn search<'a>(
        &'a self,
        query: &'a str,
        _: usize,
    ) -> Option<BoxFuture<'a, Vec<toolpost_model::ToolId>>> {
        let found = if query == "meaning" {
            vec!["up.two".parse().unwrap()]
        } else {
            Vec::new()
        };
        Some(Box::pin(std::future::ready(found)))
    }
    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(async move {
            let tools = self.tools.lock().unwrap().clone();
            let tools = tools
                .into_iter()
                .map(|tool| Arc::new(tool) as Arc<dyn toolpost_model::DynTool>);
            ToolSet::new("outside", tools).open(session).await
        })
    }
    fn connect(&self, feed: SourceFeed) {
        self.feed.set(feed).ok().unwrap();
    }
}

#[tokio::test]
async fn a_source_from_outside_cannot_claim_to_be_harmless_and_may_change_its_list() {
    let outside = Outside::default();
    outside
        .tools
        .lock()
        .unwrap()
        .push(MockNativeTool::named("up.one"));
    let source = outside.clone();
    let host = TestHost::build(|b| {
        b.source(source)
            .policy(TestHost::policy(PermissionMode::Default, &[]))
    })
    .await;
    let error = host.call("up__one", json!({})).await.error.unwrap();
    assert_eq!(
        error.code, "no_approver",
        "claimed to be a read, and still asks"
    );

    outside
        .tools
        .lock()
        .unwrap()
        .push(MockNativeTool::named("up.two"));
    outside
        .feed
        .get()
        .unwrap()
        .notify(SourceNotice::ToolsChanged);
    let changed = async {
        while names(&host, ToolFilter::default()).await.len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), changed)
        .await
        .unwrap();
    assert_eq!(
        names(&host, search("meaning")).await,
        ["up__two"],
        "the source's own search counts"
    );
}
