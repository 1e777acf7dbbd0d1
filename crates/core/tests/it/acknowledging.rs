//! When a caller hears that its call was taken, and what is on record by then.

use toolpost_core::{AcknowledgementTiming, RecordKind};
use toolpost_model::EffectClass;
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

use serde_json::json;

async fn kinds(host: &TestHost) -> Vec<RecordKind> {
    host.call_records()
        .await
        .iter()
        .map(|row| row.record.kind)
        .collect()
}

/// Calls `demo.tool` and gives the kinds of its records.
async fn check(class: EffectClass, acknowledged: AcknowledgementTiming, expected: &[RecordKind]) {
    let host = TestHost::with(MockNativeTool::named("demo.tool").class(class)).await;
    let mut request = host.request("tool", json!({}));
    request.delivery.acknowledged = acknowledged;
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
    check(EffectClass::Read, AcknowledgementTiming::AtTheEnd, &[Ended]).await;
    check(
        EffectClass::Read,
        AcknowledgementTiming::OnceOnRecord,
        &[Ended],
    )
    .await;
    check(
        EffectClass::Read,
        AcknowledgementTiming::Early,
        &[Accepted, Ended],
    )
    .await;
    check(
        EffectClass::Write,
        AcknowledgementTiming::AtTheEnd,
        &[Started, Ended],
    )
    .await;
    check(
        EffectClass::Write,
        AcknowledgementTiming::OnceOnRecord,
        &[Started, Ended],
    )
    .await;
    check(
        EffectClass::Write,
        AcknowledgementTiming::Early,
        &[Accepted, Started, Ended],
    )
    .await;
}

#[tokio::test]
async fn a_read_that_takes_longer_is_acknowledged_before_its_end() {
    let gate = MockToolGate::new();
    let host = TestHost::with(MockNativeTool::named("demo.tool").gate(&gate)).await;
    let mut request = host.request("tool", json!({}));
    request.delivery.acknowledged = AcknowledgementTiming::OnceOnRecord;
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
    let gate = MockToolGate::new();
    let host = TestHost::with(
        MockNativeTool::named("demo.tool")
            .class(EffectClass::Unknown)
            .gate(&gate),
    )
    .await;
    let first = host.host.start(host.request("tool", json!({}))).await;
    gate.entered(1).await;
    let mut request = host.request("tool", json!({}));
    request.delivery.acknowledged = AcknowledgementTiming::OnceOnRecord;
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
