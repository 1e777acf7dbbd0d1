//! The same request twice gets one run and one answer.

use serde_json::{Value, json};
use toolpost_model::{EffectClass, ErrorClass, Outcome, RequestId};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

async fn start(host: &TestHost, id: &str, arguments: Value) -> toolpost_core::CallHandle {
    let mut request = host.request("act", arguments);
    request.identity.request_id = Some(RequestId::new(id));
    host.host.start(request).await
}

#[tokio::test]
async fn a_repeat_gets_the_same_bytes_whether_the_first_is_running_over_or_from_another_life() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .output("done")
        .gate(&gate);
    let host = TestHost::with(tool.clone()).await;
    let first = start(&host, "r1", json!({ "n": 1 })).await;
    gate.entered(1).await;
    let beside = start(&host, "r1", json!({ "n": 1 })).await;
    let conflict = start(&host, "r1", json!({ "n": 2 })).await.answer().await;
    assert_eq!(
        conflict.result().error_class(),
        Some(ErrorClass::RequestConflict)
    );
    gate.let_through(1);
    let first = first.answer().await;
    assert_eq!(first.result().outcome, Outcome::Succeeded);
    assert_eq!(beside.answer().await.json(), first.json());
    assert_eq!(
        start(&host, "r1", json!({ "n": 1 }))
            .await
            .answer()
            .await
            .json(),
        first.json()
    );

    let next_life = TestHost::on(host.journal.clone(), |b| b.tool(tool.clone())).await;
    assert_eq!(
        start(&next_life, "r1", json!({ "n": 1 }))
            .await
            .answer()
            .await
            .json(),
        first.json()
    );
    let conflict = start(&next_life, "r1", json!({ "n": 2 }))
        .await
        .answer()
        .await;
    assert_eq!(
        conflict.result().error_class(),
        Some(ErrorClass::RequestConflict)
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn many_at_once_run_once() {
    let tool = MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .output("done");
    let host = TestHost::with(tool.clone()).await;
    let handles: Vec<_> = futures(&host).await;
    let mut answers = Vec::new();
    for handle in handles {
        answers.push(handle.answer().await.json().to_owned());
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(tool.call_count(), 1);
}

async fn futures(host: &TestHost) -> Vec<toolpost_core::CallHandle> {
    let mut handles = Vec::new();
    for _ in 0..20 {
        handles.push(start(host, "same", json!({})).await);
    }
    handles
}

#[tokio::test]
async fn a_call_the_host_did_not_take_may_be_sent_again_under_its_id() {
    let gate = MockToolGate::new();
    let limits = toolpost_core::HostLimits {
        scheduler: toolpost_core::SchedulerLimits {
            concurrency: 1,
            session_concurrency: 1,
            queue: 0,
        },
        ..toolpost_core::HostLimits::default()
    };
    let tool = MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .gate(&gate);
    let host = TestHost::build(|b| b.tool(tool.clone()).limits(limits)).await;
    let first = start(&host, "r1", json!({})).await;
    gate.entered(1).await;
    let rejected = start(&host, "r2", json!({})).await.answer().await;
    assert_eq!(rejected.result().outcome, Outcome::Rejected);
    gate.let_through(2);
    first.answer().await;
    let again = start(&host, "r2", json!({})).await.answer().await;
    assert_eq!(
        again.result().outcome,
        Outcome::Succeeded,
        "the queue has room now"
    );
    assert_eq!(
        start(&host, "r2", json!({})).await.answer().await.json(),
        again.json()
    );
    assert_eq!(tool.call_count(), 2);
}
