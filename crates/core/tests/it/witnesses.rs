//! Witnesses: what they hear of every call, and that nothing they do is felt.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolpost_core::{
    CancelReason, KnownSecrets, Witness, WitnessedCall, WitnessedEnd, WitnessedStart,
};
use toolpost_model::{
    CallContext, Declaration, Event, EventBody, LogLevel, NestedCall, Outcome, Principal,
    RequestId, SessionId, SurfaceRequest, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, MockToolGate, TestHost};

/// Writes down what it hears, a line each.
#[derive(Default)]
struct Scribe(Mutex<Vec<String>>);

impl Scribe {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Witness for Scribe {
    fn hear(&self, call: &WitnessedCall, event: &Event) {
        let body = match &event.body {
            EventBody::Status { message } | EventBody::Log { message, .. } => message.clone(),
            other => format!("{other:?}"),
        };
        self.write(format!("{} {} {body}", call.tool, event.seq));
    }

    fn begun(&self, call: &WitnessedCall, start: &WitnessedStart<'_>) {
        self.write(format!("{} begins with {}", call.tool, start.arguments));
    }

    fn canceled(&self, call: &WitnessedCall, reason: CancelReason, _: jiff::Timestamp) {
        self.write(format!("{} canceled: {}", call.tool, reason.explain()));
    }

    fn ended(&self, call: &WitnessedCall, end: &WitnessedEnd<'_>) {
        let request = call.request_id.as_ref().map_or("-", RequestId::as_str);
        let child = if call.parent.is_some() {
            " (child)"
        } else {
            ""
        };
        self.write(format!(
            "{} {request} {}{child}",
            call.tool,
            end.result.outcome.as_str()
        ));
    }

    fn session_closed(&self, session: &SessionId) {
        self.write(format!("closed {session}"));
    }
}

/// Panics at everything.
struct Clumsy;

impl Witness for Clumsy {
    fn hear(&self, _: &WitnessedCall, _: &Event) {
        panic!("heard");
    }

    fn ended(&self, _: &WitnessedCall, _: &WitnessedEnd<'_>) {
        panic!("ended");
    }
}

/// Tells what it does, and calls another tool where there is one.
struct Talker;

impl Tool for Talker {
    fn declaration(&self) -> Declaration {
        Declaration::new("test.talk".parse().unwrap(), "Talks")
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let context: CallContext = call.context;
        context.status("the word is hunter2-hunter2");
        context.log(LogLevel::Info, "half way");
        let nested = NestedCall::new("act", json!({}));
        context.call_tool(nested).await?;
        Ok(ToolOutput::text("told"))
    }
}

async fn host(witnesses: Vec<Arc<dyn Witness>>) -> TestHost {
    TestHost::build(|builder| {
        let builder = builder
            .redactor(KnownSecrets::new([("password", "hunter2-hunter2")]))
            .tool(Talker)
            .tool(MockNativeTool::named("test.act").output("done"));
        witnesses
            .into_iter()
            .fold(builder, |builder, witness| builder.witness(witness))
    })
    .await
}

#[tokio::test]
async fn every_call_is_heard_redacted_numbered_and_to_its_end() {
    let scribe = Arc::new(Scribe::default());
    let host = host(vec![scribe.clone()]).await;
    let mut request = host.request("talk", json!({}));
    request.identity.request_id = Some(RequestId::new("r1"));
    host.host.call(request).await;
    let expected = [
        "talk begins with {}",
        "talk 1 the word is [redacted:password]",
        "talk 2 half way",
        "act begins with {}",
        "act - succeeded (child)",
        "talk r1 succeeded",
    ];
    assert_eq!(scribe.lines(), expected);
    // With a listener that hears stages, the numbers count those too; witnesses are not told them.
    let (sender, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("talk", json!({}));
    request.delivery.listener = Some(Arc::new(sender));
    host.host.call(request).await;
    let heard = recorder.all().await;
    let status = heard
        .iter()
        .find(|event| matches!(event.body, EventBody::Status { .. }))
        .unwrap();
    assert_eq!(
        scribe.lines()[1],
        format!("talk {} the word is [redacted:password]", status.seq)
    );
    // What ends before it begins is told as well.
    host.call("nothing", json!({})).await;
    assert_eq!(scribe.lines(), ["nothing - failed"]);
}

#[tokio::test]
async fn a_stop_is_told_once_and_a_closed_session_too() {
    let scribe = Arc::new(Scribe::default());
    let gate = MockToolGate::new();
    let slow = MockNativeTool::named("test.slow").gate(&gate);
    let host = TestHost::build(|builder| builder.tool(slow).witness(scribe.clone())).await;
    let me = Principal::agent("test");
    let handle = host.host.start(host.request("slow", json!({}))).await;
    gate.entered(1).await;
    host.host.cancel(handle.invocation_id(), &me);
    host.host.cancel(handle.invocation_id(), &me);
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
    let expected = [
        "slow begins with {}",
        "slow canceled: it was canceled on request",
        "slow - canceled",
    ];
    assert_eq!(scribe.lines(), expected);
    let session = host
        .host
        .open_session(me, SurfaceRequest::default())
        .await
        .unwrap();
    host.host.close_session(&session).await.unwrap();
    assert_eq!(scribe.lines(), [format!("closed {}", session.id())]);
}

#[tokio::test]
async fn a_witness_that_panics_harms_nobody() {
    let scribe = Arc::new(Scribe::default());
    let host = host(vec![Arc::new(Clumsy), scribe.clone()]).await;
    let result = host.call("talk", json!({})).await;
    assert_eq!(
        (result.outcome, result.model_text().as_str()),
        (Outcome::Succeeded, "told")
    );
    assert_eq!(scribe.lines().len(), 6);
}

#[tokio::test]
async fn a_dry_run_is_heard_by_nobody() {
    let scribe = Arc::new(Scribe::default());
    let host = host(vec![scribe.clone()]).await;
    host.host.explain(host.request("talk", json!({}))).await;
    assert!(scribe.lines().is_empty());
}
