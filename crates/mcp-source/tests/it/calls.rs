//! Calls of an obedient server, in both eras.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_model::{
    BoxFuture, ConsultError, ConsultKinds, ConsultQuestion, ConsultReply, ConsultableCaller,
    EventBody, InvocationId, Outcome, ResultContent, SourceState, TraceContext,
};

use crate::stage::{Stage, Wanted, until};

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_and_called() {
    for mode in [
        "good",
        "modern",
        "ignores_discover",
        "dies_on_discover",
        "pages",
    ] {
        let stage = Wanted::new(mode)
            .set(|server| server.connect_timeout = Duration::from_secs(30))
            .start()
            .await;
        let result = stage.call("fix__echo", json!({ "text": "hello" })).await;
        assert_eq!(
            result.outcome,
            Outcome::Succeeded,
            "{mode}: {result:?} {:?}",
            stage.problems()
        );
        assert_eq!(result.model_text(), "hello", "{mode}");
        assert!(result.sandbox.is_some(), "{mode}");
        let odd = stage
            .tools()
            .into_iter()
            .find(|name| name.contains("odd_name"))
            .unwrap();
        assert_eq!(
            stage.call(&odd, json!({})).await.model_text(),
            "odd name!",
            "{mode}"
        );
        assert_eq!(stage.health().state, SourceState::Ready, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_answers_is_carried_through() {
    let stage = Stage::new("good").await;
    let every = stage.call("fix__every", json!({})).await;
    let kinds: Vec<Value> = every
        .content
        .iter()
        .map(|piece| json!(piece)["type"].clone())
        .collect();
    assert_eq!(
        kinds,
        ["text", "image", "audio", "resource", "link", "text"],
        "{every:?}"
    );
    assert_eq!(
        every.content[3],
        ResultContent::Resource {
            uri: "x://a".to_owned(),
            media_type: Some("text/plain".to_owned()),
            text: Some("r".to_owned()),
            data: None,
        }
    );
    assert_eq!(
        every.meta.as_deref().map(|meta| json!(meta)),
        Some(json!({ "example/x": 1 }))
    );

    let failed = stage.call("fix__fail", json!({})).await;
    assert_eq!(failed.meta.as_ref().unwrap()["why"], "because");
    assert_eq!(failed.error.as_ref().unwrap().code, "tool_error");
    assert!(failed.model_text().contains("no such thing"), "{failed:?}");

    let structured = stage.call("fix__structured", json!({})).await;
    assert_eq!(structured.structured_content, Some(json!({ "a": [1, 2] })));

    let mut request = stage.test.request("fix__meta", json!({}));
    let meta = json!({ "example/y": 2, "progressToken": 9, "io.modelcontextprotocol/z": 1 });
    request.meta = Some(Box::new(meta.as_object().unwrap().clone()));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    request.identity.trace = TraceContext::parse(parent, Some("vendor=1")).map(Box::new);
    let result = stage.test.host.call(request).await.result().clone();
    // The server is called under the span of the call, in the trace of its caller.
    let span = format!(
        "{}{}-01",
        &parent[..36],
        &result.invocation_id.to_hex()[16..]
    );
    let expected = json!({ "example/y": 2, "traceparent": span, "tracestate": "vendor=1" });
    assert_eq!(result.structured_content, Some(expected), "{result:?}");
    let own = stage.call("fix__meta", json!({})).await;
    let span = TraceContext::of_call(own.invocation_id).traceparent();
    assert_eq!(
        own.structured_content,
        Some(json!({ "traceparent": span })),
        "{own:?}"
    );

    let (slow, events) = stage.watched("fix__slow", json!({})).await;
    assert_eq!(slow.model_text(), "done");
    let steps: Vec<Option<u64>> = events
        .iter()
        .filter_map(|event| match event {
            EventBody::Progress(progress) => Some(progress.done),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [Some(1), Some(2), Some(3)]);
    let logged = |event: &EventBody| matches!(event, EventBody::Log { message, .. } if message == "nearly there");
    assert!(events.iter().any(logged), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_finds_a_clean_environment_and_its_own_values() {
    let wanted = Wanted::new("good").set(|server| {
        if let toolpost_mcp_source::McpTransport::Stdio(program) = &mut server.transport {
            program
                .environment
                .insert("API_KEY".to_owned(), toolpost_model::Secret::new("k"));
        }
    });
    let stage = wanted.start().await;
    let names: Vec<String> =
        serde_json::from_str(&stage.call("fix__environment", json!({})).await.model_text())
            .unwrap();
    assert!(names.contains(&"API_KEY".to_owned()), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("CARGO")),
        "{names:?}"
    );
}

/// A caller that answers every form the same way.
pub(crate) struct Person(pub(crate) Value);

impl ConsultableCaller for Person {
    fn answers(&self) -> ConsultKinds {
        ConsultKinds {
            elicitation: true,
            ..ConsultKinds::default()
        }
    }

    fn consult(
        &self,
        _: InvocationId,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>> {
        let reply = |question: ConsultQuestion| {
            assert_eq!(question.params["message"], "your name?");
            assert_eq!(question.params["_meta"]["toolpost/asked_by"], "fix");
            ConsultReply {
                key: question.key,
                value: self.0.clone(),
            }
        };
        Box::pin(std::future::ready(Ok(questions
            .into_iter()
            .map(reply)
            .collect())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_asks_the_caller_in_both_eras() {
    let accepted = json!({ "action": "accept", "content": { "name": "ada" } });
    for (mode, told, nobody) in [
        (
            "good",
            accepted.to_string(),
            json!({ "action": "cancel" }).to_string(),
        ),
        (
            "modern",
            json!({ "answers": { "who": accepted }, "state": "s1" }).to_string(),
            json!({ "answers": { "who": { "action": "cancel" } }, "state": "s1" }).to_string(),
        ),
    ] {
        let stage = Stage::new(mode).await;
        let mut request = stage.test.request("fix__ask", json!({}));
        request.delivery.caller = Some(Arc::new(Person(accepted.clone())));
        let result = stage.test.host.call(request).await.result().clone();
        let said: Value = serde_json::from_str(&result.model_text()).unwrap();
        assert_eq!(
            said,
            serde_json::from_str::<Value>(&told).unwrap(),
            "{mode}"
        );
        let alone: Value =
            serde_json::from_str(&stage.call("fix__ask", json!({})).await.model_text()).unwrap();
        assert_eq!(
            alone,
            serde_json::from_str::<Value>(&nobody).unwrap(),
            "{mode}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_nobody_asked_for_is_waited_for() {
    let stage = Stage::new("modern").await;
    assert_eq!(
        stage.call("fix__slow", json!({})).await.model_text(),
        "the task is done"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_call_is_canceled_there() {
    let stage = Stage::new("good").await;
    let result = stage
        .call_within("fix__hang", Duration::from_millis(300))
        .await;
    assert_eq!(result.outcome, Outcome::TimedOut, "{result:?}");
    assert!(!result.error.unwrap().retry.safe);
    let told = stage.folder.path().join("starts.canceled");
    until("the cancellation", || told.exists()).await;
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "on" }))
            .await
            .model_text(),
        "on"
    );
    assert_eq!(stage.starts(), 1);
}
