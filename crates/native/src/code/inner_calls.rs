//! The tool calls of a run. The host decides and records each of them like any other call. This module binds their
//! arguments, counts them, and converts their results for Python.

use std::{cell::OnceCell, collections::VecDeque, future::pending};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolpost_model::{
    ArtifactId, BoxFuture, CallContext, Disposition, ErrorClass, InvocationId, NestedCall, Outcome,
    Redactions, ResultContent, RetryGuidance, ToolFailure, ToolPattern, ToolResult,
};

use super::{
    frame::{CodeFunction, CodeRequestAnswer, PythonException},
    grants::{FunctionCallMode, FunctionGrants},
};

/// The most calls of one run at the same time.
const AT_ONCE: usize = 8;

/// The calls of one run.
pub(super) struct InnerCalls {
    context: CallContext,
    asked: InnerCallScope,
    grants: OnceCell<FunctionGrants>,
    records: Vec<CallRecord>,
    running: FuturesUnordered<BoxFuture<'static, FinishedInnerCall>>,
    waiting: VecDeque<BoxFuture<'static, FinishedInnerCall>>,
}

/// The limits on the session's tools for a run.
pub(super) struct InnerCallScope {
    /// The operator's patterns.
    pub(super) granted: Vec<ToolPattern>,
    /// The names in the request; `None` for all.
    pub(super) wanted: Option<Vec<String>>,
    /// The most calls of the run.
    pub(super) most: usize,
}

/// A call that code made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CallRecord {
    /// The tool, by its name on the wire.
    tool: String,
    /// The call's own id, under which the journal has it. Missing where it was never made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    invocation_id: Option<InvocationId>,
    /// How it ended. Missing where the run ended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    /// The class of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorClass>,
    /// What became of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition: Option<Disposition>,
    /// What is kept of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    artifacts: Vec<ArtifactId>,
    /// Secrets that were taken out of it, by kind.
    #[serde(skip_serializing_if = "Redactions::is_empty")]
    #[schemars(default)]
    redactions: Redactions,
    /// What sending it again needs, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryGuidance>,
    /// The host or the tool cut its result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    truncated: bool,
}

impl CallRecord {
    fn new(tool: String) -> Self {
        Self {
            tool,
            invocation_id: None,
            outcome: None,
            error: None,
            disposition: None,
            artifacts: Vec::new(),
            redactions: Redactions::default(),
            retry: None,
            truncated: false,
        }
    }

    /// Records the parts of the result that the code's value does not contain.
    fn note(&mut self, result: &ToolResult) {
        self.invocation_id = Some(result.invocation_id);
        self.outcome = Some(result.outcome);
        self.error = result.error_class();
        self.truncated = result.truncated.is_some();
        self.disposition = Some(result.disposition);
        self.artifacts = result.artifacts.iter().map(|kept| kept.id).collect();
        self.redactions = result.redactions.clone();
        self.retry = result.error.as_ref().map(|error| error.retry);
    }
}

struct FinishedInnerCall {
    id: u32,
    record: usize,
    result: Result<ToolResult, ToolFailure>,
}

impl InnerCalls {
    pub(super) fn new(context: CallContext, asked: InnerCallScope) -> Self {
        Self {
            context,
            asked,
            grants: OnceCell::new(),
            records: Vec::new(),
            running: FuturesUnordered::new(),
            waiting: VecDeque::new(),
        }
    }

    /// The functions of the run. Built at first use: most code calls no tool, and a session may see thousands.
    pub(super) fn grants(&self) -> &FunctionGrants {
        self.grants.get_or_init(|| {
            FunctionGrants::new(
                self.context.callable(),
                &self.asked.granted,
                self.asked.wanted.as_deref(),
            )
        })
    }

    /// Fails if the request names a tool that the code may not call. Otherwise the code would only get a `NameError` in
    /// the middle of its work.
    pub(super) fn refuse_unknown(&self) -> Result<(), ToolFailure> {
        let wanted = self.asked.wanted.iter().flatten();
        match wanted.into_iter().find(|name| !self.grants().has(name)) {
            Some(name) => {
                let message = format!(
                    "`{}` is not a tool that code may call here",
                    name.escape_debug()
                );
                Err(ToolFailure::invalid(message)
                    .hint("leave `tools` out to get all tools for code, or name others"))
            }
            None => Ok(()),
        }
    }

    /// The calls so far.
    pub(super) fn records(&self) -> &[CallRecord] {
        &self.records
    }

    pub(super) fn look_up(&self, name: String) -> CodeRequestAnswer {
        match self.grants().find(&CodeFunction::Named(name)) {
            Some(_) => CodeRequestAnswer::Known,
            None => CodeRequestAnswer::Unknown,
        }
    }

    /// Starts a call. `None` if the answer comes from [`Self::done`].
    pub(super) fn begin(
        &mut self,
        id: u32,
        function: &CodeFunction,
        positional: Vec<Value>,
        keywords: Map<String, Value>,
    ) -> Option<CodeRequestAnswer> {
        let Some((granted, when)) = self.grants().find(function) else {
            return Some(CodeRequestAnswer::Unknown);
        };
        let tool = granted.tool.clone();
        if self.records.len() >= self.asked.most {
            let message = format!("more than {} tool calls in one run", self.asked.most);
            return Some(CodeRequestAnswer::Abort { message });
        }
        let arguments = match granted.bind(positional, keywords) {
            Ok(arguments) => arguments,
            Err(error) => {
                return Some(CodeRequestAnswer::Raise {
                    kind: PythonException::Type,
                    message: error.to_string(),
                });
            }
        };
        let record = self.records.len();
        self.records.push(CallRecord::new(tool.clone()));
        let context = self.context.clone();
        self.waiting.push_back(Box::pin(async move {
            FinishedInnerCall {
                id,
                record,
                result: context.call_tool(NestedCall::new(tool, arguments)).await,
            }
        }));
        self.fill_up();
        (when == FunctionCallMode::Later).then_some(CodeRequestAnswer::Pending)
    }

    /// Whether a further call may wait. At most as many calls wait as run.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < AT_ONCE
    }

    fn fill_up(&mut self) {
        while self.running.len() < AT_ONCE {
            let Some(call) = self.waiting.pop_front() else {
                return;
            };
            self.running.push(call);
        }
    }

    /// The next call that ends, as the answer to its request. Waits for ever if none runs.
    pub(super) async fn done(&mut self) -> (u32, CodeRequestAnswer) {
        let Some(FinishedInnerCall { id, record, result }) = self.running.next().await else {
            return pending().await;
        };
        self.fill_up();
        let Some(record) = self.records.get_mut(record) else {
            return (id, CodeRequestAnswer::Unknown);
        };
        let answer = match result {
            Ok(result) => {
                record.note(&result);
                answer_of(&record.tool, result)
            }
            Err(failure) => {
                record.outcome = Some(Outcome::Failed);
                record.error = Some(failure.class);
                raise(
                    &record.tool,
                    failure.class,
                    failure.code.as_deref(),
                    &failure.message,
                    failure.hint.as_deref(),
                )
            }
        };
        (id, answer)
    }
}

fn answer_of(tool: &str, result: ToolResult) -> CodeRequestAnswer {
    if let Some(error) = &result.error {
        return raise(
            tool,
            error.class,
            Some(&error.code),
            &error.message,
            error.hint.as_deref(),
        );
    }
    CodeRequestAnswer::Value(value_of(result))
}

/// A result as a value: the structured content, with the text as `text` unless it has such a member; or the text alone.
fn value_of(result: ToolResult) -> Value {
    let texts: Vec<_> = result
        .content
        .iter()
        .filter_map(ResultContent::reading)
        .collect();
    // The text of an empty result explains to models that it is empty. A program that joins texts gets an empty text.
    let is_empty = result.disposition == Disposition::Empty;
    let text = if is_empty {
        String::new()
    } else {
        texts.join("\n")
    };
    let text = (!texts.is_empty()).then_some(Value::String(text));
    match (result.structured_content, text) {
        (Some(Value::Object(mut map)), Some(text)) => {
            map.entry("text").or_insert(text);
            Value::Object(map)
        }
        (Some(value), _) => value,
        (None, text) => text.unwrap_or(Value::Null),
    }
}

fn raise(
    tool: &str,
    class: ErrorClass,
    code: Option<&str>,
    message: &str,
    hint: Option<&str>,
) -> CodeRequestAnswer {
    let kind = match class {
        ErrorClass::PermissionDenied
        | ErrorClass::PolicyBlocked
        | ErrorClass::ApprovalRejected
        | ErrorClass::SandboxViolation
        | ErrorClass::HookBlocked
        | ErrorClass::HookFailed => PythonException::Permission,
        ErrorClass::InvalidArguments | ErrorClass::SchemaValidationFailed => PythonException::Value,
        ErrorClass::Timeout => PythonException::Timeout,
        ErrorClass::ExecutionFailed if code == Some("not_found") => PythonException::FileNotFound,
        ErrorClass::ExecutionFailed
        | ErrorClass::UnknownTool
        | ErrorClass::SchemaNotLoaded
        | ErrorClass::SetupRequired
        | ErrorClass::RateLimited
        | ErrorClass::Queued
        | ErrorClass::ApprovalPending
        | ErrorClass::SiblingCanceled
        | ErrorClass::Canceled
        | ErrorClass::DependencyUnavailable
        | ErrorClass::ResultTooLarge
        | ErrorClass::OutcomeUnknown
        | ErrorClass::RequestConflict
        | ErrorClass::JournalUnavailable => PythonException::Runtime,
    };
    let hint = hint
        .map(|hint| format!(" (hint: {hint})"))
        .unwrap_or_default();
    CodeRequestAnswer::Raise {
        kind,
        message: format!("{tool}: {class}: {message}{hint}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::CallRecord;

    /// An inner call as in the run's own result, without the names of tool and call.
    fn told(result: &Value) -> Value {
        let mut whole = json!({
            "invocation_id": "01900000-0000-7000-8000-000000000001", "outcome": "succeeded",
            "disposition": "inline", "is_error": false, "content": [{ "type": "text", "text": "text" }],
            "timings": { "total_us": 1, "queued_us": 0, "execute_us": 1 },
        });
        for (name, value) in result.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let mut record = CallRecord::new("tool".to_owned());
        record.note(&serde_json::from_value(whole).unwrap());
        let mut told = serde_json::to_value(&record).unwrap();
        for name in ["tool", "invocation_id"] {
            told.as_object_mut().unwrap().remove(name);
        }
        told
    }

    #[test]
    fn code_that_calls_tools_leaves_on_record_which_kind_of_end_each_call_had() {
        let kept = json!([{
            "id": "art_01900000000070008000000000000001_1", "name": "result", "media_type": "text/plain", "size": 9,
            "digest": format!("sha256:{}", "0a".repeat(32)),
        }]);
        let error = |class: &str, safe: bool| {
            json!({
                "class": class, "code": class, "message": "so", "recoverability": "never",
                "retry": {
                    "safe": safe, "change_arguments": false, "discover_first": false, "needs_approval": false,
                },
            })
        };
        let cut = json!({ "shown": 1, "unit": "characters" });
        let ends = [
            json!({}),
            json!({ "disposition": "empty", "content": [] }),
            json!({ "outcome": "partial" }),
            json!({ "disposition": "preview", "truncated": cut, "artifacts": kept }),
            json!({ "disposition": "ref_only", "artifacts": kept }),
            json!({ "disposition": "redacted", "content": [] }),
            json!({ "disposition": "dropped", "truncated": cut }),
            json!({ "redactions": { "github": 1 } }),
            json!({ "outcome": "failed", "error": error("execution_failed", false) }),
            json!({ "outcome": "failed", "error": error("execution_failed", true) }),
            json!({ "outcome": "failed", "disposition": "synthetic", "error": error("invalid_arguments", true) }),
            json!({ "outcome": "unknown", "disposition": "synthetic", "error": error("outcome_unknown", false) }),
        ];
        let told: Vec<Value> = ends.iter().map(told).collect();
        for (place, one) in told.iter().enumerate() {
            let same = told.iter().position(|other| other == one);
            assert_eq!(
                same,
                Some(place),
                "{} looks like {}",
                ends[place],
                ends[same.unwrap()]
            );
        }
        assert_eq!(
            told[7],
            json!({ "outcome": "succeeded", "disposition": "inline", "redactions": { "github": 1 } })
        );
    }
}
