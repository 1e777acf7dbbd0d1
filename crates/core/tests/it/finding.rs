//! Calls can be found by what they are, and the oldest records go when the host is told so.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_core::{
    AcknowledgementTiming, AppendStrength, FacetReader, Journal, KnownSecrets, MemoryJournal,
    Query, Record, RecordKind, Retention, ToolQueryPattern,
};
use toolpost_model::{EffectClass, InvocationId, Outcome, PermissionMode};
use toolpost_testkit::{MockNativeTool, TestHost};

const SECRET: &str = "tp_sentinel_host_0123456789";

async fn kinds(host: &TestHost, query: Query) -> Vec<RecordKind> {
    host.journal
        .find(query)
        .await
        .unwrap()
        .iter()
        .map(|row| row.record.kind)
        .collect()
}

#[tokio::test]
async fn calls_are_found_by_tool_caller_outcome_and_correlation() {
    let host = TestHost::build(|builder| {
        builder
            .tool(MockNativeTool::named("demo.look").class(EffectClass::Read))
            .tool(MockNativeTool::named("demo.act").class(EffectClass::Write))
            .policy(TestHost::policy(PermissionMode::Bypass, &["deny act"]))
    })
    .await;
    let mut marked = host.request("look", json!({}));
    marked.identity.correlation_id = Some("trace-1".into());
    marked.delivery.acknowledged = AcknowledgementTiming::Early;
    host.host.call(marked).await;
    host.call("act", json!({})).await;
    host.call("nowhere", json!({})).await;
    let all = Query::newest(9);
    let tool = |text: &str| Query {
        tool: Some(ToolQueryPattern::new(text)),
        ..all.clone()
    };
    assert_eq!(
        kinds(&host, all.clone()).await,
        [RecordKind::Ended; 3],
        "each call once, by its end"
    );
    assert_eq!(kinds(&host, tool("demo.look")).await.len(), 1);
    assert_eq!(kinds(&host, tool("act")).await.len(), 1);
    assert_eq!(kinds(&host, tool("nowhere")).await.len(), 1);
    assert_eq!(
        kinds(
            &host,
            Query {
                principal: Some("test".into()),
                ..all.clone()
            }
        )
        .await
        .len(),
        3
    );
    assert_eq!(
        kinds(
            &host,
            Query {
                outcome: Some(Outcome::Denied),
                ..tool("demo.*")
            }
        )
        .await
        .len(),
        1
    );
    let marked = Query {
        correlation: Some("trace-1".into()),
        ..all.clone()
    };
    assert_eq!(kinds(&host, marked).await.len(), 1);
    let session = Query {
        session: Some(host.session.id().clone()),
        ..all
    };
    assert_eq!(kinds(&host, session).await.len(), 3);
    // The bodies say the same, record by record: that is what a check of the record compares.
    let mut reader = FacetReader::default();
    let mut told = Vec::new();
    for row in host.records().await {
        told.extend(reader.read(&row.record).and_then(|told| told.into_facets()));
    }
    let told: Vec<(&str, Option<Outcome>)> = told
        .iter()
        .map(|is| (is.tool.as_str(), is.outcome))
        .collect();
    let done = Some(Outcome::Succeeded);
    let denied = Some(Outcome::Denied);
    assert_eq!(
        told[..3],
        [
            ("demo.look", None),
            ("demo.look", done),
            ("demo.act", denied)
        ]
    );
    assert_eq!(told[3].0, "nowhere");
}

/// Names and marks come from callers, and a journal writes them beside the record.
#[tokio::test]
async fn what_calls_are_looked_for_by_is_redacted() {
    let redactor = KnownSecrets::new([("host_token", SECRET)]);
    let host = TestHost::build(|builder| builder.redactor(redactor)).await;
    let mut request = host.request(SECRET, json!({}));
    request.identity.correlation_id = Some(format!("mark-{SECRET}"));
    host.host.call(request).await;
    let find = |query: Query| host.journal.find(query);
    let by = |text: &str| Query {
        correlation: Some(text.into()),
        ..Query::newest(9)
    };
    assert_eq!(find(by(&format!("mark-{SECRET}"))).await.unwrap().len(), 0);
    assert_eq!(
        find(by("mark-[redacted:host_token]")).await.unwrap().len(),
        1
    );
    let tool = Query {
        tool: Some(ToolQueryPattern::new("[redacted:host_token]")),
        ..Query::newest(9)
    };
    assert_eq!(find(tool).await.unwrap().len(), 1);
}

#[tokio::test]
async fn old_records_go_when_a_host_starts_with_a_retention() {
    let journal = Arc::new(MemoryJournal::default());
    let old = Record {
        kind: RecordKind::Ended,
        at: "2020-06-01T00:00:00Z".parse().unwrap(),
        invocation_id: Some(InvocationId::new()),
        session_id: None,
        request: None,
        body: "{}".into(),
        facets: None,
    };
    for _ in 0..3 {
        journal
            .append(old.clone(), AppendStrength::Committed)
            .await
            .unwrap();
    }
    let month = Retention {
        age: Some(Duration::from_secs(30 * 86_400)),
        size: None,
    };
    let host = TestHost::on(Arc::clone(&journal), |builder| builder.retention(month)).await;
    // The work is done beside the host; it needs no time that passes, only turns.
    for _ in 0..10_000 {
        if journal.head().await.unwrap().first == 4 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let kinds: Vec<RecordKind> = host
        .records()
        .await
        .iter()
        .map(|row| row.record.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            RecordKind::HostStarted,
            RecordKind::Catalog,
            RecordKind::Pruned
        ]
    );
    host.host.shutdown(Duration::from_secs(5)).await;
}
