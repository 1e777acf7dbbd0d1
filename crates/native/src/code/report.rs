//! The result of a run: its value, its output, its calls, or its failure.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResultContent, ToolFailure, ToolOutput, Truncation};
use toolpost_sandbox::CommandExit;

use super::{
    conversation::{CodeConversationError, CodeRunConversation},
    frame::{CodeRunEnd, UncaughtException},
    inner_calls::CallRecord,
    worker_process::WorkerDeath,
};

/// The most names of functions in a hint.
const NAMES: usize = 30;

/// What a run gave.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunResult {
    /// The value of the last expression. Missing where JSON cannot say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    value: Option<Value>,
    /// The value as Python shows it, where there is no JSON for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    repr: Option<String>,
    /// Why there is no JSON for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_json: Option<String>,
    /// What was printed.
    printed: String,
    /// How many printed bytes are missing, because there were too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    unprinted_bytes: Option<u64>,
    /// The tool calls that the code made, in order.
    calls: Vec<CallRecord>,
}

/// Why a run was ended from outside.
#[derive(Debug)]
pub(super) enum CodeStopReason {
    NotStarted(std::io::Error),
    TimedOut {
        seconds: f64,
    },
    Canceled,
    Died(WorkerDeath),
    Broken(CodeConversationError),
    /// CPython exited in the middle of the code.
    Exited(CommandExit),
}

/// The output of a run that completed.
pub(super) fn ended(
    ending: CodeRunEnd,
    talk: CodeRunConversation,
    seconds: f64,
) -> Result<ToolOutput, ToolFailure> {
    let (json, repr, not_json) = match ending {
        CodeRunEnd::Raised(raised) => return Err(raise(&raised, &talk, seconds)),
        // In a frame, `null` and a missing value are alike; a value without JSON has a reason.
        CodeRunEnd::Value {
            json,
            repr,
            not_json,
        } => (
            json.or_else(|| not_json.is_none().then_some(Value::Null)),
            repr,
            not_json,
        ),
    };
    let text = text_of(&talk, json.as_ref(), &repr);
    let is_empty = json == Some(Value::Null) && printed_of(&talk).is_empty();
    let truncated = (talk.unprinted > 0).then(|| Truncation {
        shown: talk.printed.len() as u64,
        total: Some(talk.printed.len() as u64 + talk.unprinted),
        unit: "bytes".to_owned(),
        hint: Some("print less, or return a value".to_owned()),
        artifact: None,
    });
    let calls = talk.calls.records().to_vec();
    let summary = match calls.len() {
        0 => "ran".to_owned(),
        1 => "ran, with 1 tool call".to_owned(),
        count => format!("ran, with {count} tool calls"),
    };
    let result = RunResult {
        repr: json.is_none().then_some(repr),
        value: json,
        not_json,
        printed: talk.printed,
        unprinted_bytes: (talk.unprinted > 0).then_some(talk.unprinted),
        calls,
    };
    Ok(ToolOutput {
        content: vec![ResultContent::text(text)],
        structured: Some(serde_json::to_value(&result)?),
        summary: Some(summary),
        truncated,
        is_empty,
        ..ToolOutput::default()
    })
}

/// The text for the model: the output, then the value.
fn text_of(talk: &CodeRunConversation, json: Option<&Value>, repr: &str) -> String {
    let mut text = printed_of(talk);
    match json {
        Some(Value::Null) if text.is_empty() => text.push_str("the code ran and returned nothing"),
        Some(Value::Null) => {}
        // Text of several lines is shown as it is.
        Some(Value::String(value)) if value.contains('\n') => {
            text.push_str("=>\n");
            text.push_str(value);
        }
        Some(_) | None => {
            text.push_str("=> ");
            text.push_str(repr);
        }
    }
    text
}

/// The output, ending with a newline and a note about missing bytes.
fn printed_of(talk: &CodeRunConversation) -> String {
    let mut text = talk.printed.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if talk.unprinted > 0 {
        text.push_str(&format!(
            "[{} more bytes were printed and are not shown]\n",
            talk.unprinted
        ));
    }
    text
}

fn raise(raised: &UncaughtException, talk: &CodeRunConversation, seconds: f64) -> ToolFailure {
    // The interpreter's message for its limits. Code can raise the same message, and only gets a wrong failure for
    // itself.
    let failure = if raised.kind == "TimeoutError"
        && raised.message.starts_with("time limit exceeded")
    {
        ToolFailure::of(
            ErrorClass::Timeout,
            format!(
                "the code was stopped at its limit of {seconds} s\n{}",
                raised.traceback
            ),
        )
        .code("time_limit")
        .hint("do less in one run, or give a larger `timeout_seconds`")
    } else if raised.kind == "MemoryError" && raised.message.starts_with("memory limit exceeded") {
        ToolFailure::new(raised.traceback.clone())
            .code("out_of_memory")
            .hint(MEMORY_HINT)
    } else {
        let failure = ToolFailure::new(raised.traceback.clone()).code("python_error");
        match hint_of(raised, talk) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    };
    let details = json!({
        "exception": raised.kind,
        "line": raised.line,
        "calls": talk.calls.records(),
    });
    shown(failure, details, talk)
}

const MEMORY_HINT: &str =
    "hold less data at once: filter and count as you go, and drop values after use";
const SUBSET_HINT: &str = "the embedded interpreter has no generators, no class inheritance and few modules; \
    `language: \"python3\"` is full Python in the sandbox";

fn hint_of(raised: &UncaughtException, talk: &CodeRunConversation) -> Option<String> {
    match raised.kind.as_str() {
        "NameError" => {
            let names: Vec<&str> = talk.calls.grants().names().take(NAMES + 1).collect();
            let more = if names.len() > NAMES {
                " and others"
            } else {
                ""
            };
            Some(match names.len().min(NAMES) {
                0 => "no tools are granted to this code".to_owned(),
                count => format!("tools of this code: {}{more}", names[..count].join(", ")),
            })
        }
        "ModuleNotFoundError" | "ImportError" | "NotImplementedError" => {
            Some(SUBSET_HINT.to_owned())
        }
        _ => None,
    }
}

/// The failure of a run that was ended.
pub(super) fn failed(stop: &CodeStopReason, talk: &CodeRunConversation) -> ToolFailure {
    let failure = match stop {
        CodeStopReason::NotStarted(error) => {
            ToolFailure::new(format!("the code worker cannot be started: {error}"))
                .code("worker_failed")
        }
        CodeStopReason::TimedOut { seconds } => ToolFailure::of(
            ErrorClass::Timeout,
            format!("the code was stopped at its limit of {seconds} s"),
        )
        .code("time_limit")
        .hint("do less in one run, or give a larger `timeout_seconds`"),
        CodeStopReason::Canceled => {
            ToolFailure::of(ErrorClass::Canceled, "the code was stopped before its end")
        }
        CodeStopReason::Died(WorkerDeath::OutOfMemory) => {
            ToolFailure::new("the code reached its memory limit and was ended")
                .code("out_of_memory")
                .hint(MEMORY_HINT)
        }
        CodeStopReason::Died(WorkerDeath::StackOverflow) => {
            ToolFailure::new("the code nested too deeply and was ended").code("stack_overflow")
        }
        CodeStopReason::Exited(CommandExit {
            code: Some(code), ..
        }) => {
            let failure =
                ToolFailure::new(format!("the code ended its process with exit code {code}"));
            ToolFailure {
                exit_code: Some(*code),
                ..failure.code("exited")
            }
        }
        CodeStopReason::Exited(CommandExit { signal, .. }) => {
            let signal = signal
                .map(|signal| format!(" {signal}"))
                .unwrap_or_default();
            ToolFailure::new(format!(
                "the process of the code was ended by signal{signal}"
            ))
            .code("killed")
        }
        CodeStopReason::Died(WorkerDeath::Other) => {
            ToolFailure::new(CodeConversationError::Gone.to_string()).code("worker_failed")
        }
        CodeStopReason::Broken(broken @ CodeConversationError::Unfit(_)) => {
            ToolFailure::of(ErrorClass::SetupRequired, broken.to_string()).code("cannot_confine")
        }
        CodeStopReason::Broken(broken) => {
            ToolFailure::new(broken.to_string()).code("worker_failed")
        }
    };
    shown(failure, json!({ "calls": talk.calls.records() }), talk)
}

/// Adds output and calls to a failure. A run without calls changed nothing.
fn shown(failure: ToolFailure, details: Value, talk: &CodeRunConversation) -> ToolFailure {
    let printed = printed_of(talk);
    ToolFailure {
        content: if printed.is_empty() {
            Vec::new()
        } else {
            vec![ResultContent::text(printed)]
        },
        details: Some(details),
        untouched: Some(talk.calls.records().is_empty()),
        ..failure
    }
}
