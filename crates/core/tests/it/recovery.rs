//! What a host finds open after a restart gets its end, as the durability table says.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_core::{AcknowledgementTiming, Journal as _, MemoryJournal, RecordKind};
use toolpost_model::{EffectClass, Effects, InvocationId, Principal, RequestId};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

/// Runs a call until it stands inside the tool, then forgets the host as a crash would: nothing after the
/// records made so far reaches the copy of the journal.
async fn crash_inside(
    tool: MockNativeTool,
    arguments: Value,
    early: bool,
) -> (Arc<MemoryJournal>, InvocationId) {
    let gate = MockToolGate::new();
    let host = TestHost::with(tool.gate(&gate)).await;
    let mut request = host.request("act", arguments);
    request.identity.request_id = Some(RequestId::new("r1"));
    if early {
        request.delivery.acknowledged = AcknowledgementTiming::Early;
    }
    let handle = host.host.start(request).await;
    gate.entered(1).await;
    let copy = Arc::new(MemoryJournal::default());
    for row in host.records().await {
        copy.append(row.record, toolpost_core::AppendStrength::Committed)
            .await
            .unwrap();
    }
    (copy, handle.invocation_id())
}

async fn ends(journal: &MemoryJournal, id: InvocationId) -> Vec<Value> {
    let rows = journal.records_of(id).await.unwrap();
    let ended = rows
        .iter()
        .filter(|row| row.record.kind == RecordKind::Ended);
    ended
        .map(|row| serde_json::from_str::<Value>(&row.record.body).unwrap()["result"].clone())
        .collect()
}

async fn settle(host: &TestHost) {
    host.host.shutdown(std::time::Duration::from_secs(10)).await;
}

async fn check(effects: Effects, outcome: &str, runs_again: usize) {
    let tool = MockNativeTool::named("demo.act")
        .class(effects.class)
        .effects(effects.clone())
        .output("done");
    let (journal, id) = crash_inside(tool, json!({}), true).await;
    let again = MockNativeTool::named("demo.act")
        .class(effects.class)
        .effects(effects.clone())
        .output("done");
    let host = TestHost::on(journal.clone(), |b| b.tool(again.clone())).await;
    settle(&host).await;
    let ends_now = ends(&journal, id).await;
    assert_eq!(ends_now.len(), 1, "exactly one end: {effects:?}");
    assert_eq!(ends_now[0]["outcome"], outcome, "{effects:?}");
    assert_eq!(again.call_count(), runs_again, "{effects:?}");

    // A third life finds nothing to do.
    let host = TestHost::on(journal.clone(), |b| b.tool(again.clone())).await;
    settle(&host).await;
    assert_eq!(
        (ends(&journal, id).await.len(), again.call_count()),
        (1, runs_again)
    );
}

#[tokio::test]
async fn a_write_is_never_run_again_not_even_an_idempotent_one_and_a_read_is() {
    check(Effects::of(EffectClass::Write), "unknown", 0).await;
    check(Effects::unknown(), "unknown", 0).await;
    check(Effects::of(EffectClass::Read), "succeeded", 1).await;
    check(Effects::of(EffectClass::Write).idempotent(), "unknown", 0).await;
}

#[tokio::test]
async fn a_repeat_after_the_crash_gets_the_recovered_end() {
    let (journal, id) = crash_inside(
        MockNativeTool::named("demo.act").class(EffectClass::Write),
        json!({}),
        false,
    )
    .await;
    let tool = MockNativeTool::named("demo.act").class(EffectClass::Write);
    let host = TestHost::on(journal, |b| b.tool(tool.clone())).await;
    let mut request = host.request("act", json!({}));
    request.identity.request_id = Some(RequestId::new("r1"));
    let answer = host.host.call(request).await;
    assert_eq!(answer.result().invocation_id, id);
    assert_eq!(answer.result().outcome, toolpost_model::Outcome::Unknown);
    assert!(!answer.result().error.as_ref().unwrap().retry.safe);
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_call_whose_secret_is_not_on_record_is_canceled_and_says_why() {
    let schema = json!({ "type": "object", "properties": { "pin": { "type": "string", "x-sensitive": true } } });
    let tool = MockNativeTool::named("demo.act").schema(schema.clone());
    let (journal, id) = crash_inside(tool, json!({ "pin": "123456789" }), true).await;
    let tool = MockNativeTool::named("demo.act").schema(schema);
    let host = TestHost::on(journal.clone(), |b| b.tool(tool.clone())).await;
    settle(&host).await;
    let end = &ends(&journal, id).await[0];
    assert_eq!(
        (end["outcome"].as_str(), tool.call_count()),
        (Some("canceled"), 0)
    );
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("sensitive")
    );
}

#[tokio::test]
async fn an_opened_session_comes_back_for_its_owner_only() {
    let host = TestHost::with(MockNativeTool::named("demo.act")).await;
    let owner = Principal::agent("owner");
    let request = toolpost_model::SurfaceRequest {
        task: Some("t".into()),
        ..Default::default()
    };
    let id = host
        .host
        .open_session(owner.clone(), request)
        .await
        .unwrap()
        .id()
        .clone();
    let next_life = TestHost::on(host.journal.clone(), |b| {
        b.tool(MockNativeTool::named("demo.act"))
    })
    .await;
    assert!(
        next_life
            .host
            .session(&id, &Principal::agent("thief"))
            .await
            .is_err()
    );
    let session = next_life.host.session(&id, &owner).await.unwrap();
    assert_eq!(session.surface_request().task.as_deref(), Some("t"));
}
