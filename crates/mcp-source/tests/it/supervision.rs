//! How servers are started, kept, ended and started again.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_core::MemoryPins;
use toolpost_mcp_source::{McpSharing, McpStartPolicy};
use toolpost_model::{ModelInput, Outcome, Principal, SourceState, SurfaceRequest};

use crate::stage::{Stage, Wanted, processes, until};

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_restarts_leave_no_process() {
    let stage = Stage::new("good").await;
    let words = stage
        .folder
        .path()
        .join("starts")
        .to_str()
        .unwrap()
        .to_owned();
    for round in 0..200 {
        let result = stage.call("fix__echo", json!({ "text": "x" })).await;
        assert_eq!(result.model_text(), "x", "round {round}: {result:?}");
        let error = stage.call("fix__die", json!({})).await.error.unwrap();
        assert_eq!(&*error.code, "connection_lost", "round {round}: {error:?}");
    }
    until("all ends", || processes(&words).is_empty()).await;
    assert_eq!((stage.starts(), stage.health().restarts), (200, 199));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_goes_leaves_no_process() {
    let stage = Stage::new("good").await;
    let words = stage
        .folder
        .path()
        .join("starts")
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .model_text(),
        "x"
    );
    assert!(!processes(&words).is_empty());
    stage.test.host.shutdown(Duration::from_secs(1)).await;
    until("its end", || processes(&words).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_dropped_leaves_no_process() {
    for mode in ["good", "modern"] {
        let stage = Stage::new(mode).await;
        let words = stage
            .folder
            .path()
            .join("starts")
            .to_str()
            .unwrap()
            .to_owned();
        assert!(!processes(&words).is_empty(), "{mode}");
        drop(stage);
        until("its end", || processes(&words).is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_listed_without_a_start() {
    let pins = Arc::new(MemoryPins::default());
    let wanted = || {
        let mut wanted = Wanted::new("good");
        wanted.pins = pins.clone();
        wanted
    };
    let first = wanted().start().await;
    assert_eq!(first.starts(), 1);
    let listed = first.tools();
    let second = wanted().start().await;
    assert_eq!((second.tools(), second.starts()), (listed.clone(), 0));
    assert_eq!(second.health().state, SourceState::Idle);
    assert_eq!(
        second
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .model_text(),
        "x"
    );
    assert_eq!(second.starts(), 1);
    let eager = wanted()
        .set(|server| server.start = McpStartPolicy::Eager)
        .start()
        .await;
    assert_eq!((eager.tools(), eager.starts()), (listed, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_nobody_uses_is_ended() {
    let stage = Wanted::new("good")
        .set(|server| server.idle_stop = Some(Duration::from_millis(200)))
        .start()
        .await;
    let words = stage
        .folder
        .path()
        .join("starts")
        .to_str()
        .unwrap()
        .to_owned();
    until("its end", || {
        stage.health().state == SourceState::Idle && processes(&words).is_empty()
    })
    .await;
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .model_text(),
        "x"
    );
    assert_eq!(stage.starts(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_to_an_idle_end() {
    // Calls come about as often as the server goes to rest, so some begin while it does.
    let idle = Some(Duration::from_millis(2));
    let stage = Wanted::new("good")
        .set(|server| server.idle_stop = idle)
        .start()
        .await;
    for round in 0..40 {
        let result = stage.call("fix__echo", json!({ "text": "x" })).await;
        assert_eq!(result.model_text(), "x", "round {round}: {result:?}");
        tokio::time::sleep(Duration::from_micros(1_500 + 50 * round)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eager_server_comes_back_by_itself() {
    let stage = Wanted::new("good")
        .set(|server| server.start = McpStartPolicy::Eager)
        .start()
        .await;
    stage.call("fix__die", json!({})).await;
    until("its return", || {
        stage.starts() == 2 && stage.health().state == SourceState::Ready
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_their_own_where_the_operator_wants_that() {
    for (sharing, expected) in [(McpSharing::Host, 1), (McpSharing::Session, 3)] {
        let stage = Wanted::new("good")
            .set(|server| server.sharing = sharing)
            .start()
            .await;
        let words = stage
            .folder
            .path()
            .join("starts")
            .to_str()
            .unwrap()
            .to_owned();
        let mut sessions = Vec::new();
        for who in ["a", "b"] {
            let opened = stage
                .test
                .host
                .open_session(Principal::agent(who), SurfaceRequest::default())
                .await;
            let session = opened.unwrap();
            let request = toolpost_core::CallRequest::new(
                Arc::clone(&session),
                "fix__echo",
                ModelInput::value(json!({ "text": who })),
            );
            assert_eq!(
                stage.test.host.call(request).await.result().model_text(),
                who
            );
            sessions.push(session);
        }
        assert_eq!(stage.starts(), expected, "{sharing:?}");
        for session in &sessions {
            stage.test.host.close_session(session).await.unwrap();
        }
        if sharing == McpSharing::Session {
            until("their ends", || processes(&words).is_empty()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_is_not_tried_with_every_call() {
    let pins = Arc::new(MemoryPins::default());
    let mut good = Wanted::new("good");
    good.pins = pins.clone();
    good.start().await;
    let mut bad = Wanted::new("dies_at_start");
    bad.pins = pins;
    let stage = bad.start().await;
    assert_eq!(stage.starts(), 0);
    let mut waits = 0;
    for _ in 0..20 {
        let error = stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .error
            .unwrap();
        assert!(error.retry.safe, "{error:?}");
        waits += usize::from(error.retry.after_ms.is_some());
    }
    assert!(waits >= 10, "{waits} of 20 calls were told to wait");
    assert!(stage.starts() <= 8, "{} starts", stage.starts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ends_before_its_server_is_there_may_be_sent_again() {
    let pins = Arc::new(MemoryPins::default());
    let mut good = Wanted::new("good");
    good.pins = pins.clone();
    good.start().await;
    let mut silent =
        Wanted::new("silent").set(|server| server.connect_timeout = Duration::from_secs(5));
    silent.pins = pins;
    let stage = silent.start().await;
    let result = stage
        .call_within("fix__fail", Duration::from_millis(300))
        .await;
    assert_eq!(result.outcome, Outcome::TimedOut, "{result:?}");
    let error = result.error.unwrap();
    assert!(
        error.retry.safe && !error.message.contains("may have taken effect"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_only_so_many_programs() {
    let stage = Wanted::new("good")
        .set(|server| server.sharing = McpSharing::Session)
        .start()
        .await;
    let call = async |who: String| {
        let opened = stage
            .test
            .host
            .open_session(Principal::agent(&who), SurfaceRequest::default())
            .await;
        let session = opened.unwrap();
        let input = ModelInput::value(json!({ "text": "x" }));
        let request = toolpost_core::CallRequest::new(Arc::clone(&session), "fix__echo", input);
        (
            stage.test.host.call(request).await.result().clone(),
            session,
        )
    };
    let mut sessions = Vec::new();
    for at in 0..64 {
        let (result, session) = call(format!("s{at}")).await;
        assert_eq!(result.model_text(), "x", "{at}: {result:?}");
        sessions.push(session);
    }
    let (refused, _) = call("more".to_owned()).await;
    let error = refused.error.unwrap();
    assert_eq!(
        (&*error.code, error.retry.safe),
        ("too_many_connections", true),
        "{error:?}"
    );
}
