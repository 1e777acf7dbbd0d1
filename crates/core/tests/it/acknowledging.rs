//! When a caller hears that its call was taken, and what is on record by then.

use toolpost_core::{Acknowledged, RecordKind};
use toolpost_model::EffectClass;
use toolpost_testkit::{Gate, MockTool, TestHost};

use serde_json::json;

async fn kinds(host: &TestHost) -> Vec<RecordKind> {
    host.call_records()
        .await
        .iter()
        .map(|row| row.record.kind)
        .collect()
}

/// Calls `demo.tool` and gives the kinds of its records.
async fn check(class: EffectClass, acknowledged: Acknowledged, expected: &[RecordKind]) {
    let host = TestHost::with(MockTool::named("demo.tool").class(class)).await;
    let mut request = host.request("tool", json!({}));
    request.acknowledged = acknowledged;
    let handle = host.host.start(request).await;
    handle.accepted().await;
    assert!(
        !kinds(&host).await.is_empty(),
        "{class:?} {acknowledged:?}: something is on record by then"
    );
    handle.answer().await;
    assert_eq!(kinds(&host).await, expected, "{class:?} {acknowledged:?}");
}

#[tokio::test]
async fn a_call_costs_the_records_its_acknowledgement_needs() {
    use RecordKind::{Accepted, Ended, Started};
    check(EffectClass::Read, Acknowledged::AtTheEnd, &[Ended]).await;
    check(EffectClass::Read, Acknowledged::OnceOnRecord, &[Ended]).await;
    check(EffectClass::Read, Acknowledged::Early, &[Accepted, Ended]).await;
    check(
        EffectClass::Write,
        Acknowledged::AtTheEnd,
        &[Started, Ended],
    )
    .await;
    check(
        EffectClass::Write,
        Acknowledged::OnceOnRecord,
        &[Started, Ended],
    )
    .await;
    check(
        EffectClass::Write,
        Acknowledged::Early,
        &[Accepted, Started, Ended],
    )
    .await;
}

#[tokio::test]
async fn a_read_that_takes_longer_is_acknowledged_before_its_end() {
    let gate = Gate::new();
    let host = TestHost::with(MockTool::named("demo.tool").gate(&gate)).await;
    let mut request = host.request("tool", json!({}));
    request.acknowledged = Acknowledged::OnceOnRecord;
    let handle = host.host.start(request).await;
    handle.accepted().await;
    assert_eq!(kinds(&host).await, [RecordKind::Accepted]);
    gate.let_through(1);
    handle.answer().await;
    assert_eq!(
        kinds(&host).await,
        [RecordKind::Accepted, RecordKind::Ended]
    );
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_is_acknowledged_before_it_runs() {
    let gate = Gate::new();
    let host = TestHost::with(
        MockTool::named("demo.tool")
            .class(EffectClass::Unknown)
            .gate(&gate),
    )
    .await;
    let first = host.host.start(host.request("tool", json!({}))).await;
    gate.entered(1).await;
    let mut request = host.request("tool", json!({}));
    request.acknowledged = Acknowledged::OnceOnRecord;
    let second = host.host.start(request).await;
    second.accepted().await;
    assert_eq!(
        kinds(&host).await,
        [RecordKind::Started, RecordKind::Accepted]
    );
    gate.let_through(2);
    first.answer().await;
    second.answer().await;
}
