//! Catalog and surfaces on record, and what calls tell of their progress.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_core::{
    CallRequest, CatalogBody, Host, Journal as _, KnownSecrets, MemoryJournal, RecordKind,
    SurfaceRecordBody,
};
use toolpost_model::{
    BoxFuture, ContentDigest, Declaration, DynTool, EffectOrigin, ModelInput, Principal,
    SessionScope, Source, SourceError, SourceProblem, SourceSession, SurfaceRequest, Tool,
    ToolCall, ToolFailure, ToolOutput, ToolProgress, ToolSet, ToolSettings, ToolSurfaceSettings,
    WireNaming,
};
use toolpost_testkit::{MockNativeTool, TestHost};

async fn bodies<T: serde::de::DeserializeOwned>(
    journal: &MemoryJournal,
    kind: RecordKind,
) -> Vec<T> {
    let rows = journal.read(0, usize::MAX).await.unwrap();
    let of_kind = rows.iter().filter(|row| row.record.kind == kind);
    of_kind
        .map(|row| serde_json::from_str(&row.record.body).unwrap())
        .collect()
}

async fn catalogs(journal: &MemoryJournal) -> Vec<CatalogBody> {
    bodies(journal, RecordKind::Catalog).await
}

/// A source of one tool, one of whose parts is missing.
struct Partly(ToolSet, Option<SourceProblem>);

impl Source for Partly {
    fn name(&self) -> &str {
        "partly"
    }

    fn origin(&self) -> EffectOrigin {
        self.0.origin()
    }

    fn naming(&self) -> WireNaming {
        self.0.naming()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        self.0.list()
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.1.clone().into_iter().collect()
    }

    fn open<'a>(
        &'a self,
        scope: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        self.0.open(scope)
    }
}

#[tokio::test]
async fn what_is_missing_is_told_wherever_somebody_looks() {
    let missing = SourceProblem {
        part: "tool-gone".to_owned(),
        origin: Some("git+https://example.test/gone?key=sesame-open-9".to_owned()),
        code: "missing_source".to_owned(),
        message: "no such repository".to_owned(),
    };
    let journal = Arc::new(MemoryJournal::default());
    let host = |missing: Option<SourceProblem>| {
        let source = Partly(ToolSet::of(MockNativeTool::named("demo.one")), missing);
        let redactor = KnownSecrets::new([("key", "sesame-open-9")]);
        Host::builder()
            .journal(Arc::clone(&journal) as _)
            .redactor(redactor)
            .source(source)
            .build()
    };
    let whole = host(None).await.unwrap();
    assert!(whole.catalog().unavailable().is_empty() && whole.notices().is_empty());
    drop(whole);

    let partly = host(Some(missing)).await.unwrap();
    let notices: Vec<String> = partly.notices().iter().map(ToString::to_string).collect();
    let line = "`tool-gone` (from `git+https://example.test/gone?key=[redacted:key]`) is not available: no such repository";
    assert_eq!(notices, [line]);
    let told = catalogs(&journal).await;
    assert_eq!(
        told.len(),
        2,
        "a catalog that lacks something is another one"
    );
    assert!(told[0].unavailable.is_empty());
    assert_eq!(told[1].unavailable[0].to_string(), line);

    let session = partly.default_session(&Principal::operator("op"));
    let request =
        |tool: &str| CallRequest::new(session.clone(), tool, ModelInput::value(json!({})));
    let answer = partly.call(request("frobnicate")).await;
    let hint = answer.result().error.clone().unwrap().hint.unwrap();
    assert!(hint.contains("`tool-gone` could not be loaded"), "{hint}");
    let one = partly.call(request("one")).await;
    assert!(one.result().outcome.is_success(), "the rest serves");
}

async fn life(journal: &Arc<MemoryJournal>, tools: &[&MockNativeTool]) -> Host {
    let builder = Host::builder().journal(Arc::clone(journal) as _);
    tools
        .iter()
        .fold(builder, |builder, tool| builder.tool((*tool).clone()))
        .build()
        .await
        .unwrap()
}

fn ids(body: &CatalogBody) -> Vec<&str> {
    body.declared
        .iter()
        .map(|tool| tool.declaration.tool_id.as_str())
        .collect()
}

#[tokio::test]
async fn the_catalog_is_told_once_and_again_only_where_it_differs() {
    let one = MockNativeTool::named("demo.one");
    let two = MockNativeTool::named("demo.two");
    let journal = Arc::new(MemoryJournal::default());
    for _ in 0..3 {
        life(&journal, &[&one]).await;
    }
    let told = catalogs(&journal).await;
    assert_eq!(
        told.len(),
        1,
        "the hosts after the first have nothing to add"
    );
    assert!(told[0].whole && told[0].part == 1 && told[0].parts == 1);
    assert_eq!(ids(&told[0]), ["demo.one"]);

    life(&journal, &[&one, &two]).await;
    let told = catalogs(&journal).await;
    assert_eq!(told.len(), 2);
    assert!(told[1].whole, "at a start all of it");
    assert_eq!(ids(&told[1]), ["demo.one", "demo.two"]);
    assert_ne!(told[0].digest, told[1].digest);
}

#[tokio::test]
async fn while_a_host_runs_only_what_changed_is_told() {
    let host = TestHost::build(|b| {
        b.tool(MockNativeTool::named("demo.one"))
            .tool(MockNativeTool::named("demo.two"))
    })
    .await;
    let first = catalogs(&host.journal).await.remove(0);
    host.call("one", json!({})).await;
    let off = |name: &str, settings: ToolSettings| {
        std::collections::HashMap::from([(name.to_owned(), settings)])
    };
    let disabled = ToolSettings {
        surface: ToolSurfaceSettings {
            enabled: Some(false),
            ..ToolSurfaceSettings::default()
        },
        ..ToolSettings::default()
    };
    host.host.replace_settings(off("two", disabled)).await;
    host.call("one", json!({})).await;
    host.call("one", json!({})).await;
    host.host
        .replace_settings(off("two", ToolSettings::default()))
        .await;
    host.call("one", json!({})).await;

    let told = catalogs(&host.journal).await;
    assert_eq!(told.len(), 3);
    for change in &told[1..] {
        assert!(!change.whole);
        assert_eq!(ids(change), ["demo.two"]);
    }
    assert_eq!(told[2].digest, first.digest, "it is what it was");

    let surfaces: Vec<SurfaceRecordBody> = bodies(&host.journal, RecordKind::Surface).await;
    assert_eq!(surfaces.len(), 2, "a known surface is not told again");
    assert_eq!(
        (surfaces[0].catalog, surfaces[1].catalog),
        (told[0].digest, told[1].digest)
    );
    assert_eq!(surfaces[0].loaded.len(), 2);
    assert_eq!(surfaces[1].blocked[0].tool_id.as_str(), "demo.two");
    let calls = host.call_records().await;
    let named: Vec<Value> = calls
        .iter()
        .map(|row| serde_json::from_str::<Value>(&row.record.body).unwrap()["surface"].clone())
        .collect();
    let expected =
        [&surfaces[0], &surfaces[1], &surfaces[1], &surfaces[0]].map(|body| json!(body.surface_id));
    assert_eq!(named, expected, "every call names what its session saw");
}

#[tokio::test]
async fn surfaces_have_the_same_id_in_every_life_and_each_life_tells_those_it_uses() {
    let tool = MockNativeTool::named("demo.one");
    let journal = Arc::new(MemoryJournal::default());
    for _ in 0..2 {
        let host = life(&journal, &[&tool]).await;
        let agent = Principal::agent("a");
        let other = SurfaceRequest {
            task: Some("review".to_owned()),
            ..SurfaceRequest::default()
        };
        let sessions = [
            host.default_session(&agent),
            host.default_session(&Principal::agent("b")),
            host.open_session(agent, other).await.unwrap(),
        ];
        for session in sessions {
            host.call(CallRequest::new(
                session,
                "one",
                ModelInput::value(json!({})),
            ))
            .await;
        }
    }
    let told: Vec<SurfaceRecordBody> = bodies(&journal, RecordKind::Surface).await;
    let ids: Vec<&str> = told.iter().map(|body| body.surface_id.as_str()).collect();
    assert_eq!(ids.len(), 4, "two kinds of session, two lives: {ids:?}");
    assert_eq!((ids[0], ids[1]), (ids[2], ids[3]));
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn digests_follow_from_the_record_and_secrets_in_descriptions_stay_out_of_it() {
    use sha2::Digest as _;
    let tool = MockNativeTool::named("demo.one")
        .declare(|d| d.description = "uses hunter2hunter2 inside".to_owned());
    let secrets = KnownSecrets::new([("token", "hunter2hunter2")]);
    let host = TestHost::build(|b| {
        b.tool(tool)
            .tool(MockNativeTool::named("demo.a"))
            .redactor(secrets)
    })
    .await;
    let rows = host.records().await;
    let row = rows
        .iter()
        .find(|row| row.record.kind == RecordKind::Catalog)
        .unwrap();
    assert!(!row.record.body.contains("hunter2") && row.record.body.contains("[redacted:token]"));

    #[derive(serde::Deserialize)]
    struct Texts<'a> {
        digest: ContentDigest,
        #[serde(borrow)]
        declared: Vec<&'a serde_json::value::RawValue>,
    }
    let texts: Texts<'_> = serde_json::from_str(&row.record.body).unwrap();
    let mut tools: Vec<(String, &str)> = texts
        .declared
        .iter()
        .map(|raw| {
            let value: Value = serde_json::from_str(raw.get()).unwrap();
            (
                value["declaration"]["tool_id"].as_str().unwrap().to_owned(),
                raw.get(),
            )
        })
        .collect();
    tools.sort_unstable();
    let mut hasher = sha2::Sha256::new();
    for (id, text) in tools {
        hasher.update(id.as_bytes());
        hasher.update([0]);
        hasher.update(sha2::Sha256::digest(text.as_bytes()));
    }
    assert_eq!(texts.digest, ContentDigest(hasher.finalize().into()));
}

#[tokio::test]
async fn ten_thousand_tools_are_told_in_pieces() {
    let text = "what it does, at some length ".repeat(8);
    let tools = (0..10_000).map(|place| {
        let tool = MockNativeTool::named(&format!("many.tool_{place}"));
        Arc::new(tool.declare(|d| d.description.clone_from(&text))) as Arc<dyn DynTool>
    });
    let set = ToolSet::new("many", tools);
    let host = TestHost::build(|b| b.source(set)).await;
    let told = catalogs(&host.journal).await;
    assert!(told.len() > 2, "{} pieces", told.len());
    assert!(
        told.iter()
            .all(|body| body.parts as usize == told.len() && body.digest == told[0].digest)
    );
    assert_eq!(
        told.iter().map(|body| body.declared.len()).sum::<usize>(),
        10_000
    );
    let rows = host.records().await;
    let most = rows.iter().map(|row| row.record.body.len()).max().unwrap();
    assert!(most < 1_100_000, "a piece of {most} bytes");
}

struct Chatty;

impl Tool for Chatty {
    fn declaration(&self) -> Declaration {
        Tool::declaration(&MockNativeTool::named("demo.chatty"))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        for done in 1..=1_000 {
            let message = if done == 1 {
                "with hunter2hunter2".to_owned()
            } else {
                String::new()
            };
            call.context.progress(ToolProgress {
                message,
                done: Some(done),
                total: Some(1_000),
                ..ToolProgress::default()
            });
        }
        Ok("done".into())
    }
}

#[tokio::test]
async fn progress_is_on_record_in_milestones_without_secrets() {
    let secrets = KnownSecrets::new([("token", "hunter2hunter2")]);
    let host = TestHost::build(|b| b.tool(Chatty).redactor(secrets)).await;
    host.call("chatty", json!({})).await;
    let rows = host.call_records().await;
    let body: Value = serde_json::from_str(&rows.last().unwrap().record.body).unwrap();
    let told = body["progress"].as_array().unwrap();
    assert!((8..=16).contains(&told.len()), "{}", told.len());
    assert_eq!(told[0]["message"], "with [redacted:token]");
    assert_eq!(
        (&told[0]["seq"], &told[0]["kind"]),
        (&json!(1), &json!("progress"))
    );
    assert_eq!(told.last().unwrap()["done"], 1_000);
    assert_eq!(body["events"]["sent"], 1_000);
}
