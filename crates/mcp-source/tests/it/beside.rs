//! What servers offer beside tools.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::sync::broadcast;
use toolpost_core::{CallRequest, SourceNews};
use toolpost_model::{ModelInput, Principal, SourceNotice, SourceState, SurfaceRequest};

use crate::stage::{Stage, Wanted, until};

#[tokio::test(flavor = "multi_thread")]
async fn resources_and_prompts_are_offered_and_served() {
    let stage = Stage::new("companions").await;
    let (name, companions) = stage.test.host.companions(&stage.test.session).remove(0);
    assert_eq!(name, "fix");
    assert_eq!(
        companions.resources,
        [json!({ "uri": "x://a", "name": "a" })]
    );
    assert_eq!(
        companions.prompts,
        [json!({ "name": "hello", "description": "Greets." })]
    );
    let call = |id: &Option<toolpost_model::ToolId>, arguments| {
        let id = id.clone().unwrap();
        let stage = &stage;
        async move { stage.call(id.as_str(), arguments).await }
    };
    let read = call(&companions.read, json!({ "uri": "x://a" })).await;
    assert_eq!(
        read.structured_content,
        Some(json!({ "contents": [{ "uri": "x://a", "text": "here" }] })),
        "{read:?}"
    );
    let missing = call(&companions.read, json!({ "uri": "x://no" }))
        .await
        .error
        .unwrap();
    assert_eq!(missing.details.unwrap()["mcp_code"], -32002);
    let prompt = call(
        &companions.prompt,
        json!({ "name": "hello", "arguments": {} }),
    )
    .await;
    assert_eq!(
        prompt.structured_content.unwrap()["messages"][0]["role"],
        "user"
    );
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "hello" }, "argument": { "name": "a", "value": "" } });
    let complete = call(&companions.complete, complete).await;
    assert_eq!(
        complete.structured_content.unwrap()["completion"]["values"],
        json!(["a", "b"])
    );

    let mut news = stage.test.host.news();
    let subscribed = call(&companions.subscribe, json!({ "uri": "x://a" })).await;
    assert_eq!(
        subscribed.structured_content,
        Some(json!({})),
        "{subscribed:?}"
    );
    assert_eq!(updated(&mut news).await, "x://a");
}

/// The next resource that is said to have changed.
async fn updated(news: &mut broadcast::Receiver<SourceNews>) -> String {
    let told = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            if let SourceNotice::ResourceUpdated(uri) = news.recv().await.unwrap().notice {
                return uri;
            }
        }
    });
    told.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_them_has_none() {
    let stage = Stage::new("good").await;
    assert!(stage.test.host.companions(&stage.test.session).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_hears_of_the_first_subscriber_and_of_the_last() {
    let stage = Stage::new("companions").await;
    let (_, companions) = stage.test.host.companions(&stage.test.session).remove(0);
    let noted =
        || std::fs::read_to_string(stage.folder.path().join("starts.noted")).unwrap_or_default();
    let on = companions.subscribe.clone().unwrap();
    let off = companions.unsubscribe.clone().unwrap();
    let open = async || {
        stage
            .test
            .host
            .open_session(Principal::agent("other"), SurfaceRequest::default())
            .await
    };
    let one = &stage.test.session;
    let two = &open().await.unwrap();
    let three = &open().await.unwrap();
    for (session, id, expected) in [
        (one, &on, "s"),
        (one, &on, "s"),
        (two, &on, "s"),
        // What it never wanted, it cannot take from the others.
        (three, &off, "s"),
        (one, &off, "s"),
        (one, &off, "s"),
        (two, &off, "su"),
        (two, &off, "su"),
        (two, &on, "sus"),
        (three, &on, "sus"),
    ] {
        let input = ModelInput::value(json!({ "uri": "x://a" }));
        let request = CallRequest::new(Arc::clone(session), id.as_str(), input);
        let result = stage.test.host.call(request).await.result().clone();
        assert_eq!(result.structured_content, Some(json!({})), "{result:?}");
        assert_eq!(noted(), expected);
    }
    // Sessions that end take their wishes along.
    for session in [two, three] {
        assert_eq!(noted(), "sus");
        stage.test.host.close_session(session).await.unwrap();
    }
    until("the last word", || noted() == "susu").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_sessions_is_listened_to_as_long_as_anything_is_wanted() {
    let stage = Stage::new("shelf").await;
    let (_, companions) = stage.test.host.companions(&stage.test.session).remove(0);
    let noted =
        || std::fs::read_to_string(stage.folder.path().join("starts.noted")).unwrap_or_default();
    let on = companions.subscribe.clone().unwrap();
    let off = companions.unsubscribe.clone().unwrap();
    // `l`: a stream is opened and acknowledged; `c`: one is closed.
    for (id, uri, expected) in [
        (&on, "x://a", "l"),
        (&on, "x://b", "llc"),
        (&off, "x://a", "llclc"),
        (&off, "x://b", "llclcc"),
    ] {
        stage.call(id.as_str(), json!({ "uri": uri })).await;
        until(expected, || noted() == expected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_missed_while_nobody_listened_is_told() {
    let stage = Stage::new("shelf").await;
    let (_, companions) = stage.test.host.companions(&stage.test.session).remove(0);
    let noted =
        || std::fs::read_to_string(stage.folder.path().join("starts.noted")).unwrap_or_default();
    stage
        .call(
            companions.subscribe.as_ref().unwrap().as_str(),
            json!({ "uri": "x://a" }),
        )
        .await;
    until("the first stream", || noted() == "l").await;
    let mut news = stage.test.host.news();
    stage.call("fix__fail", json!({ "cut": true })).await;
    assert_eq!(updated(&mut news).await, "x://a");
    assert_eq!(noted(), "ll");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_only_watched_goes_on_and_comes_back() {
    let limit = Duration::from_millis(100);
    let stage = Wanted::new("deaf")
        .set(|server| server.idle_stop = Some(limit))
        .start()
        .await;
    let (_, companions) = stage.test.host.companions(&stage.test.session).remove(0);
    let on = companions.subscribe.clone().unwrap();
    let off = companions.unsubscribe.clone().unwrap();
    stage.call(on.as_str(), json!({ "uri": "x://a" })).await;
    stage.call("fix__echo", json!({ "text": "x" })).await;
    let mut news = stage.test.host.news();
    // It dies a while later, when it would have been at rest for long.
    stage.call("fix__die", json!({ "after": 1 })).await;
    assert_eq!(updated(&mut news).await, "x://a");
    until("its return", || stage.health().state == SourceState::Ready).await;
    assert_eq!(stage.starts(), 2);
    stage.call(off.as_str(), json!({ "uri": "x://a" })).await;
    until("its rest", || stage.health().state == SourceState::Idle).await;
    assert_eq!(stage.starts(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_leaves_subscriptions_unanswered_is_used_all_the_same() {
    let stage = Stage::new("deaf").await;
    let (_, companions) = stage.test.host.companions(&stage.test.session).remove(0);
    for at in 0..6 {
        let uri = format!("x://{at}");
        stage
            .call(
                companions.subscribe.as_ref().unwrap().as_str(),
                json!({ "uri": uri }),
            )
            .await;
    }
    stage.call("fix__die", json!({})).await;
    let began = Instant::now();
    let result = stage.call("fix__echo", json!({ "text": "on" })).await;
    assert_eq!(result.model_text(), "on", "{result:?}");
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
}
