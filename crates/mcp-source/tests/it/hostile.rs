//! Servers that die, hang, flood and lie: the host stays up, and calls end truthfully.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_model::{
    BoxFuture, ConsultError, ConsultKinds, ConsultQuestion, ConsultReply, ConsultableCaller,
    ErrorClass, EventBody, InvocationId, Outcome, SourceState,
};

use crate::stage::{Stage, Wanted, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_at_start_says_why() {
    let stage = Stage::new("dies_at_start").await;
    let told = stage.problems().join("\n");
    assert!(
        told.contains("exit code 4") && told.contains("no configuration found"),
        "{told}"
    );
    assert_eq!(stage.health().state, SourceState::Failing);
    assert!(stage.tools().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_in_the_middle_of_a_call_is_told_as_it_is() {
    let stage = Stage::new("good").await;
    // One that did some work is started again at once.
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "first" }))
            .await
            .model_text(),
        "first"
    );
    let error = stage.call("fix__die", json!({})).await.error.unwrap();
    assert_eq!(
        (error.class, &*error.code),
        (ErrorClass::DependencyUnavailable, "connection_lost"),
        "{error:?}"
    );
    assert!(
        error.message.contains("exit code 7") && error.message.contains("it was too much"),
        "{error:?}"
    );
    assert!(!error.retry.safe);
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "again" }))
            .await
            .model_text(),
        "again"
    );
    assert_eq!(stage.health().restarts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_between_answers_harms_no_call() {
    for mode in ["wrong_ids", "garbage", "duplicates"] {
        let stage = Stage::new(mode).await;
        for text in ["one", "two", "three"] {
            let result = stage.call("fix__echo", json!({ "text": text })).await;
            assert_eq!(result.model_text(), text, "{mode}: {result:?}");
        }
        assert_eq!(stage.starts(), 1, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_borne_ends_the_connection() {
    for (mode, words) in [
        ("huge_line", "more than 2097152 bytes"),
        ("flood", "unsolicited messages"),
        ("half", "exit code 3"),
    ] {
        let stage = Stage::new(mode).await;
        let result = stage.call("fix__fail", json!({})).await;
        let error = result.error.unwrap();
        assert_eq!(&*error.code, "connection_lost", "{mode}: {error:?}");
        assert!(error.message.contains(words), "{mode}: {error:?}");
    }
}

/// A caller that never answers.
struct Absent;

impl ConsultableCaller for Absent {
    fn answers(&self) -> ConsultKinds {
        ConsultKinds {
            elicitation: true,
            ..ConsultKinds::default()
        }
    }

    fn consult(
        &self,
        _: InvocationId,
        _: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_a_server_withdraws_wait_for_nobody() {
    let stage = Stage::new("retracts").await;
    let mut request = stage.test.request("fix__retract", json!({}));
    request.delivery.caller = Some(Arc::new(Absent));
    let result = stage.test.host.call(request).await.result().clone();
    assert_eq!(result.model_text(), "never mind", "{result:?}");
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "on" }))
            .await
            .model_text(),
        "on"
    );
    assert_eq!(stage.starts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_server_is_started_anew() {
    let stage = Stage::new("stuck").await;
    for _ in 0..3 {
        let result = stage
            .call_within("fix__hang", Duration::from_millis(100))
            .await;
        assert_eq!(result.outcome, Outcome::TimedOut);
    }
    until("the end of it", || {
        stage.health().state != SourceState::Ready
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
async fn one_bad_tool_does_not_take_the_others() {
    let stage = Stage::new("bad_tools").await;
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .model_text(),
        "x"
    );
    let told = stage.problems().join("\n");
    for words in [
        "has no input schema",
        "is not an object",
        "without a name",
        "is invalid",
        "the limit is",
        "more than once",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_leads_in_a_circle_ends() {
    let stage = Stage::new("loop").await;
    assert_eq!(stage.tools().len(), 1);
    assert!(
        stage
            .problems()
            .join("\n")
            .contains("the same next page twice")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_characters_reach_no_model() {
    let stage = Stage::new("bidi").await;
    let surface = stage.test.host.surface(&stage.test.session);
    let (entry, _) = surface.find("fix__tricky").unwrap();
    assert_eq!(entry.declaration().description, "Reads files.");
    assert!(
        !entry
            .declaration()
            .input
            .schema
            .to_string()
            .contains('\u{2066}')
    );
    // A name without them would be another name, so such a schema is not used at all.
    let told = stage.problems().join("\n");
    for name in ["hidden_name", "hidden_value"] {
        let (entry, _) = surface.find(&format!("fix__{name}")).unwrap();
        assert!(
            entry
                .declaration()
                .input
                .schema
                .get("properties")
                .is_none_or(|all| *all == json!({}))
        );
        assert!(
            told.contains(&format!(
                "`fix.{name}` is invalid, so any object is accepted"
            )),
            "{told}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_costs_no_more_than_its_patience() {
    let began = std::time::Instant::now();
    let wanted =
        Wanted::new("silent").set(|server| server.connect_timeout = Duration::from_secs(2));
    let stage = wanted.start().await;
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    let error = stage.call("fix__echo", json!({})).await.error.unwrap();
    assert_eq!(error.class, ErrorClass::UnknownTool);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_is_told_is_bounded_in_bytes() {
    let stage = Stage::new("wordy").await;
    let (_, events) = stage.watched("fix__every_word", json!({})).await;
    let lines: Vec<&String> = events
        .iter()
        .filter_map(|event| match event {
            EventBody::Log { message, .. } => Some(message),
            _ => None,
        })
        .collect();
    let told: usize = lines.iter().map(|line| line.len()).sum();
    assert!((1 << 19..=(1 << 20) + 200).contains(&told), "{told}");
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.contains("the rest is left out"))
            .count(),
        1
    );
}
