//! Calls made by calls ask too.

use std::time::Duration;

use serde_json::json;
use toolpost_model::{
    EffectClass, ErrorClass, FnTool, NestedCall, PermissionMode, Principal, ToolFailure,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{
    Engine, act, asking, crashed, decide, ends, operator, question, questions, target, yes,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A host with a tool `outer` that is allowed and calls `act`, which is asked about.
async fn host(
    inner: &MockNativeTool,
    on: Option<std::sync::Arc<toolpost_core::MemoryJournal>>,
) -> TestHost {
    let outer = FnTool::named("demo.outer")
        .unwrap()
        .class(EffectClass::Execute)
        .run(
            |_: Nothing, context: toolpost_model::CallContext| async move {
                let call = NestedCall::new("act", target("main"));
                let result = context.call_tool(call).await?;
                Ok::<_, ToolFailure>(format!("{:?}", result.outcome))
            },
        );
    let engine = Engine::new(PermissionMode::Default, &["allow outer"]);
    TestHost::on(on.unwrap_or_default(), |builder| {
        asking(builder, inner).tool(outer).policy(engine)
    })
    .await
}

#[tokio::test]
async fn a_nested_call_waits_for_its_answer_while_the_call_above_it_runs() {
    let inner = act();
    let host = host(&inner, None).await;
    let handle = host.host.start(host.request("outer", json!({}))).await;
    let asked = question(&host.host).await;
    assert_ne!(asked.ask_id, handle.invocation_id());
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().model_text(), "Succeeded");
    assert_eq!(inner.call_count(), 1);
}

#[tokio::test]
async fn a_nested_call_waits_no_longer_than_whoever_waits_for_the_call_above() {
    let inner = act();
    let host = host(&inner, None).await;
    for nested in [None, Some(Duration::ZERO)] {
        let mut request = host.request("outer", json!({}));
        request.times.nested_patience = nested;
        if nested.is_none() {
            request.times.patience = Some(toolpost_core::Patience::Approval(Duration::ZERO));
        }
        let answer = host.host.call(request).await;
        assert_eq!(
            answer.result().model_text(),
            "Rejected",
            "the code can go on and report it"
        );
        assert_eq!(
            question(&host.host).await.waiting,
            0,
            "the question stays open"
        );
    }
    assert_eq!(inner.call_count(), 0);
}

#[tokio::test]
async fn who_stops_the_call_above_withdraws_the_question() {
    let inner = act();
    let host = host(&inner, None).await;
    let handle = host.host.start(host.request("outer", json!({}))).await;
    let asked = question(&host.host).await;
    host.host
        .cancel(handle.invocation_id(), &Principal::agent("test"));
    questions(&host.host, 0).await;
    handle.answer().await;
    assert_eq!(
        ends(&host.journal, asked.ask_id).await[0]["outcome"],
        "canceled"
    );
    assert_eq!(inner.call_count(), 0);
}

#[tokio::test]
async fn a_nested_call_does_not_outlive_the_host() {
    let inner = act();
    let first = host(&inner, None).await;
    let handle = first.host.start(first.request("outer", json!({}))).await;
    let id = question(&first.host).await.ask_id;
    let next = host(&inner, Some(crashed(&first.journal).await)).await;
    assert_eq!(ends(&next.journal, id).await[0]["error"]["code"], "restart");
    assert_eq!(
        ends(&next.journal, handle.invocation_id()).await[0]["outcome"],
        "unknown"
    );
    assert!(next.host.approvals().is_empty());

    // Nor where the host goes in order: what made the call is gone, so nobody comes again.
    let going = first.host.clone();
    let shutdown = tokio::spawn(async move { going.shutdown(Duration::from_secs(60)).await });
    let above = handle.answer().await;
    assert_eq!(above.result().model_text(), "Rejected");
    shutdown.await.unwrap();
    let told = &ends(&first.journal, id).await[0];
    assert_eq!(told["error"]["class"], json!(ErrorClass::ApprovalPending));
    let next = host(&inner, Some(first.journal.clone())).await;
    super::settle(&next).await;
    assert!(next.host.approvals().is_empty());
    assert!(next.host.decide(id, yes(), &operator()).await.is_err());
    assert_eq!(inner.call_count(), 0);
}
