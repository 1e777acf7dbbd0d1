//! The tools on other calls: what they make of what the host tells them. That the host tells of the caller's own calls
//! only is the host's business, and tested there.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolpost_model::{
    BoxFuture, CallContext, CallPort, CallReport, CallSurroundings, Disposition, ErrorClass,
    EventBody, InvocationId, Outcome, Principal, ResultContent, SessionId, SiblingCalls, Stage,
    ToolCall, ToolError, ToolFailure, ToolOutput, ToolResult,
};

use crate::desk::{Desk, input};

/// Knows one call, and is asked how long to wait for it.
struct Around {
    session: SessionId,
    principal: Principal,
    deadline: Instant,
    report: CallReport,
    asked: Mutex<Vec<Option<Duration>>>,
}

impl Around {
    fn knowing(report: CallReport) -> Arc<Self> {
        Arc::new(Self {
            session: SessionId::new("s"),
            principal: Principal::agent("a"),
            deadline: Instant::now() + Duration::from_secs(60),
            report,
            asked: Mutex::default(),
        })
    }

    fn answer(&self, id: InvocationId, wait: Option<Duration>) -> Result<CallReport, ToolFailure> {
        self.asked.lock().unwrap().push(wait);
        if id == self.report.invocation_id {
            Ok(self.report.clone())
        } else {
            Err(ToolFailure::invalid("unknown"))
        }
    }
}

impl CallPort for Around {
    fn invocation_id(&self) -> InvocationId {
        InvocationId::new()
    }
    fn session_id(&self) -> &SessionId {
        &self.session
    }
    fn principal(&self) -> &Principal {
        &self.principal
    }
    fn deadline(&self) -> Instant {
        self.deadline
    }
    fn emit(&self, _: EventBody) {}
    fn is_canceled(&self) -> bool {
        false
    }
    fn canceled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    fn around(&self) -> CallSurroundings<'_> {
        CallSurroundings {
            calls: self,
            ..CallSurroundings::default()
        }
    }
}

impl SiblingCalls for Around {
    fn look_at_call(
        &self,
        id: InvocationId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        Box::pin(std::future::ready(self.answer(id, Some(wait))))
    }
    fn cancel_call(&self, id: InvocationId) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        Box::pin(std::future::ready(self.answer(id, None)))
    }
}

fn ended(outcome: Outcome, error: Option<ToolError>) -> CallReport {
    let invocation_id = InvocationId::new();
    let result = ToolResult {
        invocation_id,
        tool_id: None,
        outcome,
        disposition: Disposition::Inline,
        is_error: error.is_some(),
        content: vec![ResultContent::text("what it said")],
        structured_content: Some(json!({ "answer": 42 })),
        summary: None,
        exit_code: Some(3),
        truncated: None,
        artifacts: Vec::new(),
        persistence: None,
        redactions: toolpost_model::Redactions::default(),
        error,
        sandbox: None,
        approval_waived: None,
        meta: None,
        timings: Default::default(),
    };
    CallReport {
        invocation_id,
        tool: Some("shell".to_owned()),
        stage: None,
        result: Some(result),
    }
}

fn call(
    desk: &Desk,
    around: &Arc<Around>,
    tool: &str,
    mut arguments: Value,
) -> Result<ToolOutput, ToolFailure> {
    arguments["invocation_id"] = json!(around.report.invocation_id);
    let context = CallContext::new(Arc::clone(around) as Arc<dyn CallPort>);
    let call = ToolCall {
        input: input(arguments),
        context,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let output = runtime.block_on(desk.tool(tool).execute(call))?;
    let schema = desk.tool(tool).declaration().output.schema.unwrap();
    let known = schema["properties"].as_object().unwrap();
    let told = output.structured.as_ref().unwrap().as_object().unwrap();
    assert!(told.keys().all(|key| known.contains_key(key)), "{told:?}");
    Ok(output)
}

fn lines(output: &ToolOutput) -> Vec<&str> {
    fn text(piece: &ResultContent) -> &str {
        match piece {
            ResultContent::Text { text } => text,
            other => panic!("{other:?}"),
        }
    }
    output.content.iter().map(text).collect()
}

#[test]
fn a_call_that_has_ended_is_told_with_what_it_said() {
    let desk = Desk::new();
    let around = Around::knowing(ended(Outcome::Succeeded, None));
    let output = call(&desk, &around, "calls.call_result", json!({})).unwrap();
    assert_eq!(
        lines(&output),
        ["`shell` has ended: succeeded", "what it said"]
    );
    let told = output.structured.unwrap();
    assert_eq!(
        (&told["status"], &told["outcome"], &told["exit_code"]),
        (&json!("ended"), &json!("succeeded"), &json!(3))
    );
    assert_eq!(told["structured_content"], json!({ "answer": 42 }));
}

#[test]
fn a_call_that_failed_is_no_failure_of_the_question() {
    let error = serde_json::from_value(json!({
        "class": "execution_failed", "code": "exited", "message": "it broke", "recoverability": "never",
        "retry": { "safe": false, "change_arguments": false, "discover_first": false, "needs_approval": false },
    }));
    let around = Around::knowing(ended(Outcome::Failed, Some(error.unwrap())));
    let output = call(&Desk::new(), &around, "calls.call_result", json!({})).unwrap();
    assert_eq!(lines(&output)[0], "`shell` has ended: failed: it broke");
    assert_eq!(output.structured.unwrap()["error"]["code"], "exited");
}

#[test]
fn a_call_under_way_and_one_without_an_end_are_told_apart() {
    let desk = Desk::new();
    let id = InvocationId::new();
    for (stage, status) in [(Some(Stage::Execute), "running"), (None, "unknown")] {
        let around = Around::knowing(CallReport {
            invocation_id: id,
            tool: None,
            stage,
            result: None,
        });
        for tool in ["calls.call_result", "calls.call_cancel"] {
            let told = call(&desk, &around, tool, json!({}))
                .unwrap()
                .structured
                .unwrap();
            assert_eq!(told["status"], status, "{tool}");
        }
    }
}

#[test]
fn it_waits_as_long_as_asked_and_not_beyond_its_own_time() {
    let desk = Desk::new();
    let around = Around::knowing(ended(Outcome::Succeeded, None));
    for wait in [
        json!({}),
        json!({ "wait_seconds": 7 }),
        json!({ "wait_seconds": 600 }),
    ] {
        call(&desk, &around, "calls.call_result", wait).unwrap();
    }
    let asked = around.asked.lock().unwrap().clone();
    assert_eq!(
        asked[..2],
        [Some(Duration::ZERO), Some(Duration::from_secs(7))]
    );
    assert!(
        asked[2].unwrap() < Duration::from_secs(60),
        "the call ends before it is stopped"
    );
}

#[test]
fn what_is_no_id_is_refused_and_nothing_is_scheduled() {
    let desk = Desk::new();
    for tool in ["calls.call_result", "calls.call_cancel"] {
        let refused = desk
            .call(tool, json!({ "invocation_id": "nonsense" }))
            .unwrap_err();
        assert_eq!(
            (refused.class, refused.hint.as_str()),
            (ErrorClass::InvalidArguments, "/invocation_id")
        );
        let unknown = desk
            .call(tool, json!({ "invocation_id": InvocationId::new() }))
            .unwrap_err();
        assert_eq!(
            unknown.class,
            ErrorClass::InvalidArguments,
            "there is no host here"
        );
        let effects = desk.effects(tool, json!({ "invocation_id": InvocationId::new() }));
        assert!(effects.unscheduled && effects.is_harmless() && effects.uses.is_empty());
    }
}
