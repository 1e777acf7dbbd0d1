//! Layer 8: the result of a call, from every way in which a call can end.

mod failures;
mod fit;
mod preview;
mod retry;

use serde_json::{Map, Value};
use toolpost_model::{
    AppliedSandbox, ArtifactRef, Disposition, Effects, ErrorClass, EventBody, LogLevel, Outcome,
    Recoverability, ResultContent, RetryGuidance, Timings, ToolError, ToolFailure, ToolOutput,
    ToolResult, Truncation,
};

pub(crate) use failures::*;
use fit::ResultFitReport;
pub(crate) use fit::{ResultReaderTools, ResultSizePolicy, UnkeptPart};

use crate::invocation::{PipelineCall, micros};

/// The end of a call, before it becomes a result.
pub(crate) enum CallEnding {
    /// The tool did its work.
    Output(Box<ToolOutput>),
    /// Anything else. Normal failures are endings, never lost errors.
    Failure {
        outcome: Outcome,
        error: Box<ToolError>,
        shown: FailureContent,
        by: EndedBy,
    },
}

#[derive(Default)]
pub(crate) struct FailureContent {
    content: Vec<ResultContent>,
    truncated: Option<Box<Truncation>>,
    exit_code: Option<i32>,
    sandbox: Option<Box<AppliedSandbox>>,
    meta: Option<Box<Map<String, Value>>>,
}

impl FailureContent {
    fn of(failure: &mut ToolFailure) -> Self {
        Self {
            content: std::mem::take(&mut failure.content),
            truncated: failure.truncated.take(),
            exit_code: failure.exit_code,
            sandbox: failure.sandbox.take(),
            meta: failure.meta.take(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    Tool,
    Host,
}

/// Makes the result, once. Redacts it, cuts it to the size limits, and sets outcome and disposition separately.
pub(crate) fn map(call: &mut PipelineCall, room: ResultSizePolicy) -> ToolResult {
    let ending = call.conclusion.ending.take().unwrap_or_else(|| {
        // Every path of the loop sets an ending. If one ever does not, the result reports that fault.
        internal("the call reached its end without an outcome")
    });
    let total = call.live.began.elapsed();
    let timings = Timings {
        total_us: micros(total),
        queued_us: micros(call.progress.queued),
        execute_us: micros(call.progress.executed),
    };
    let entry = call
        .findings
        .resolved
        .as_ref()
        .map(|resolved| &resolved.entry);
    let mut result = ToolResult {
        invocation_id: call.live.id,
        tool_id: entry.map(|entry| entry.id().clone()),
        outcome: Outcome::Failed,
        disposition: Disposition::Synthetic,
        is_error: true,
        content: Vec::new(),
        structured_content: None,
        summary: None,
        exit_code: None,
        truncated: None,
        artifacts: call.live.artifacts.close(),
        persistence: None,
        redactions: toolpost_model::Redactions::default(),
        error: None,
        sandbox: None,
        approval_waived: call
            .findings
            .decision
            .as_ref()
            .and_then(|decision| decision.approval_waived.clone()),
        meta: None,
        timings,
    };
    match ending {
        CallEnding::Output(mut output) => {
            call.live
                .redactor()
                .output(&mut output, &mut result.redactions);
            check_promise(call, &output);
            let fitted = fit::fit(&call.live, room, &mut output);
            fill(&mut result, *output);
            take_fitted(call, &mut result, fitted);
        }
        CallEnding::Failure {
            outcome,
            mut error,
            shown,
            by,
        } => {
            let redactor = call.live.redactor();
            redactor.error(&mut error, &mut result.redactions);
            let truncated = shown.truncated.map(|cut| *cut);
            let mut output = ToolOutput {
                content: shown.content,
                truncated,
                meta: shown.meta,
                ..ToolOutput::default()
            };
            redactor.output(&mut output, &mut result.redactions);
            let fitted = fit::fit(&call.live, room, &mut output);
            if fitted.is_redacted {
                error.details = None;
            }
            result.outcome = outcome;
            result.content = output.content;
            result.truncated = output.truncated;
            result.meta = output.meta;
            result.exit_code = shown.exit_code;
            result.sandbox = shown.sandbox;
            if by == EndedBy::Tool {
                result.disposition = Disposition::Inline;
            }
            result.summary = Some(error.message.clone());
            result.error = Some(*error);
            take_fitted(call, &mut result, fitted);
        }
    }
    result
}

/// Notes the handling of the result's size.
fn take_fitted(call: &mut PipelineCall, result: &mut ToolResult, fitted: ResultFitReport) {
    if result.disposition != Disposition::Synthetic {
        result.disposition = fitted.disposition.unwrap_or(result.disposition);
    }
    result.persistence = fitted.persistence;
    call.conclusion.unkept.extend(fitted.unkept);
    if fitted.is_redacted {
        result.artifacts.clear();
        call.live.artifacts.withhold();
    }
}

/// The replacement of a result's output. The other parts stay.
pub(crate) enum OutputReplacement {
    /// All of the output.
    Output {
        content: Vec<ResultContent>,
        structured: Option<Value>,
    },
    /// The value for programs.
    Structured(Value),
}

/// Replaces the output of a result; the new output is redacted and cut to the limits too. The outcome stays. The
/// artifacts of the replaced output become unavailable.
pub(crate) fn replace_output(
    call: &mut PipelineCall,
    result: &mut ToolResult,
    replacement: OutputReplacement,
    room: ResultSizePolicy,
) {
    let (mut output, is_whole) = match replacement {
        OutputReplacement::Output {
            content,
            structured,
        } => {
            // It described the replaced output.
            result.meta = None;
            (
                ToolOutput {
                    content,
                    structured,
                    ..ToolOutput::default()
                },
                true,
            )
        }
        OutputReplacement::Structured(value) => {
            let content = std::mem::take(&mut result.content);
            let summary = result.summary.take();
            let truncated = result.truncated.take();
            let structured = Some(value);
            (
                ToolOutput {
                    content,
                    structured,
                    summary,
                    truncated,
                    ..ToolOutput::default()
                },
                false,
            )
        }
    };
    call.live
        .redactor()
        .output(&mut output, &mut result.redactions);
    if !result.is_error {
        check_promise(call, &output);
    }
    let fitted = if is_whole {
        call.conclusion.unkept.clear();
        call.live.artifacts.withhold();
        result.artifacts.clear();
        result.persistence = None;
        fit::fit(&call.live, room, &mut output)
    } else {
        call.conclusion
            .unkept
            .retain(|part| part.name != ArtifactRef::STRUCTURED);
        fit::fit_structured(&call.live, room, &mut output)
    };
    // The tool's own cut still applies, but its artifact belongs to the replaced output.
    let left_out = result.truncated.take().map(|cut| Truncation {
        artifact: None,
        hint: None,
        ..cut
    });
    output.truncated = output.truncated.or(left_out);
    if !result.is_error {
        result.summary = output.summary.take();
    }
    if result.disposition != Disposition::Synthetic {
        result.disposition = disposition(&output);
    }
    result.content = output.content;
    result.structured_content = output.structured;
    result.truncated = output.truncated;
    let persistence = fitted
        .persistence
        .clone()
        .or_else(|| result.persistence.take());
    take_fitted(call, result, fitted);
    result.persistence = persistence;
}

/// Removes the content of a result, and states that in the result. The outcome stays, because the effects of the call
/// stay.
pub(crate) fn withhold(
    result: &mut ToolResult,
    class: ErrorClass,
    hook: &str,
    why: &str,
    safe: bool,
) {
    result.content.clear();
    result.artifacts.clear();
    result.persistence = None;
    result.structured_content = None;
    result.meta = None;
    result.truncated = None;
    result.is_error = true;
    let done = if result.outcome.is_success() {
        "the call ran"
    } else {
        "the call ran and failed"
    };
    let message = format!("{done}, but the hook `{hook}` withheld its result: {why}");
    result.disposition = Disposition::Synthetic;
    // Clients that see a success may read its content only.
    result
        .content
        .push(ResultContent::text(format!("[withheld: {message}]")));
    result.summary = Some(message.clone());
    result.error = Some(ToolError {
        class,
        code: "result_withheld".into(),
        message,
        hint: None,
        recoverability: Recoverability::Operator,
        retry: RetryGuidance {
            safe,
            ..RetryGuidance::SAFE
        },
        details: None,
    });
}

fn fill(result: &mut ToolResult, output: ToolOutput) {
    result.disposition = disposition(&output);
    result.outcome = if output.partial {
        Outcome::Partial
    } else {
        Outcome::Succeeded
    };
    result.is_error = false;
    result.content = output.content;
    result.structured_content = output.structured;
    result.summary = output.summary;
    result.exit_code = output.exit_code;
    result.truncated = output.truncated;
    result.sandbox = output.sandbox;
    result.meta = output.meta;
}

fn disposition(output: &ToolOutput) -> Disposition {
    let is_blank = || {
        output
            .content
            .iter()
            .all(|piece| matches!(piece, ResultContent::Text { text } if text.is_empty()))
    };
    let empty = output.is_empty || (output.structured.is_none() && is_blank());
    match (&output.truncated, empty) {
        (Some(_), _) => Disposition::Preview,
        (None, true) => Disposition::Empty,
        (None, false) => Disposition::Inline,
    }
}

/// Reports output that breaks the tool's declared schema. The content is still sent, because models read the text.
fn check_promise(call: &PipelineCall, output: &ToolOutput) {
    let Some(schema) = call
        .findings
        .resolved
        .as_ref()
        .and_then(|resolved| resolved.entry.output())
    else {
        return;
    };
    let broken = match &output.structured {
        None => {
            Some("the tool declares an output schema and returned no structured content".to_owned())
        }
        Some(value) => match schema.violations(value) {
            Ok(violations) => violations
                .first()
                .map(|violation| format!("structured content: {violation}")),
            Err(error) => Some(error.to_string()),
        },
    };
    if let Some(message) = broken {
        call.live.emit(EventBody::Log {
            level: LogLevel::Warn,
            message,
        });
    }
}

/// A tool's own failure as an ending.
pub(crate) fn tool_failed(mut failure: ToolFailure, effects: &Effects) -> CallEnding {
    let shown = FailureContent::of(&mut failure);
    let untouched = failure.untouched.unwrap_or_else(|| effects.may_run_again());
    let (recoverability, mut retry) = retry::after_failure(failure.class, untouched);
    retry.after_ms = failure.after_ms;
    let outcome = if failure.class == ErrorClass::Canceled {
        Outcome::Canceled
    } else if failure.class == ErrorClass::Timeout {
        // A timeout that the caller set in the arguments, within the host's own deadline.
        Outcome::TimedOut
    } else {
        Outcome::Failed
    };
    let error = ToolError {
        class: failure.class,
        code: failure
            .code
            .unwrap_or_else(|| failure.class.as_str().into()),
        message: failure.message,
        hint: failure.hint,
        recoverability,
        retry,
        details: failure.details,
    };
    CallEnding::Failure {
        outcome,
        error: Box::new(error),
        shown,
        by: EndedBy::Tool,
    }
}

/// The work was stopped from outside. The tool's last output is included: the output up to the deadline often explains
/// the timeout.
pub(crate) fn stopped(ending: CallEnding, said: Option<ToolFailure>) -> CallEnding {
    match (ending, said) {
        (
            CallEnding::Failure {
                outcome,
                mut error,
                by,
                ..
            },
            Some(mut failure),
        ) => {
            error.details = error.details.or_else(|| failure.details.take());
            error.hint = error.hint.or_else(|| failure.hint.take());
            CallEnding::Failure {
                outcome,
                error,
                shown: FailureContent::of(&mut failure),
                by,
            }
        }
        (ending, _) => ending,
    }
}
