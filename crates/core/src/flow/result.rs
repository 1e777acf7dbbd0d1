//! Layer 8: every way a call can end, made into one result.

mod failures;
mod retry;

use toolpost_model::{
    AppliedSandbox, Content, Disposition, Effects, ErrorClass, EventBody, LogLevel, Outcome, Recoverability,
    RetryGuidance, Timings, ToolError, ToolFailure, ToolOutput, ToolResult, Truncation,
};

pub(crate) use failures::*;

use crate::flow::invocation::{Call, micros};

/// How a call ended, before it is made into a result.
pub(crate) enum Ending {
    /// The tool did its work.
    Output(ToolOutput),
    /// Anything else. Normal failures are endings, never lost errors.
    Failure { outcome: Outcome, error: Box<ToolError>, shown: Shown, by: EndedBy },
}

/// What a failure has to show beside its error.
#[derive(Default)]
pub(crate) struct Shown {
    content: Vec<Content>,
    exit_code: Option<i32>,
    sandbox: Option<Box<AppliedSandbox>>,
}

impl Shown {
    fn of(failure: &mut ToolFailure) -> Self {
        Self {
            content: std::mem::take(&mut failure.content),
            exit_code: failure.exit_code,
            sandbox: failure.sandbox.take(),
        }
    }
}

/// Who made the ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    Tool,
    Host,
}

/// Makes the result, once. Redacts it, cuts it to size and keeps outcome and disposition apart.
pub(crate) fn map(call: &mut Call, default_inline_chars: usize) -> ToolResult {
    let ending = call.ending.take().unwrap_or_else(|| {
        // The loop always sets an ending before it comes here; if it ever does not, say so instead of lying.
        internal("the call reached its end without an outcome")
    });
    let total = call.live.began.elapsed();
    let timings = Timings {
        total_us: micros(total),
        queued_us: micros(call.queued),
        execute_us: micros(call.executed),
    };
    let entry = call.resolved.as_ref().map(|resolved| &resolved.entry);
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
        artifacts: Vec::new(),
        persistence: None,
        redactions: toolpost_model::Redactions::default(),
        error: None,
        sandbox: None,
        timings,
    };
    let limit = entry.and_then(|entry| entry.declaration().interface.persistence.max_inline_chars);
    let inline_chars = limit.unwrap_or(default_inline_chars);
    match ending {
        Ending::Output(mut output) => {
            call.live.redactor().output(&mut output);
            cut(&mut output, inline_chars);
            check_promise(call, &output);
            fill(&mut result, output);
        }
        Ending::Failure { outcome, mut error, shown, by } => {
            call.live.redactor().error(&mut error);
            let mut output = ToolOutput { content: shown.content, ..ToolOutput::default() };
            call.live.redactor().output(&mut output);
            cut(&mut output, inline_chars);
            result.outcome = outcome;
            result.content = output.content;
            result.truncated = output.truncated;
            result.exit_code = shown.exit_code;
            result.sandbox = shown.sandbox;
            if by == EndedBy::Tool {
                result.disposition = Disposition::Inline;
            }
            result.summary = Some(error.message.clone());
            result.error = Some(*error);
        }
    }
    result
}

/// Puts other output in place of a result's own, redacted and cut like it. How the call ended stays as it is.
pub(crate) fn replace_output(
    call: &Call,
    result: &mut ToolResult,
    mut output: ToolOutput,
    default_inline_chars: usize,
) {
    let declared = call.resolved.as_ref().map(|resolved| &resolved.entry.declaration().interface.persistence);
    let inline_chars =
        declared.and_then(|declared| declared.max_inline_chars).unwrap_or(default_inline_chars);
    call.live.redactor().output(&mut output);
    cut(&mut output, inline_chars);
    // What the tool left out is still left out.
    output.truncated = output.truncated.or_else(|| result.truncated.take());
    if !result.is_error {
        check_promise(call, &output);
        result.summary = output.summary.take();
    }
    if result.disposition != Disposition::Synthetic {
        result.disposition = disposition(&output);
    }
    result.content = output.content;
    result.structured_content = output.structured;
    result.truncated = output.truncated;
}

/// Takes away what a call has to show, and says so. How it ended stays: what was done was done.
pub(crate) fn withhold(result: &mut ToolResult, class: ErrorClass, hook: &str, why: &str, safe: bool) {
    result.content.clear();
    result.structured_content = None;
    result.truncated = None;
    result.is_error = true;
    let done = if result.outcome.is_success() { "the call was done" } else { "the call ran and failed" };
    let message = format!("{done}, but the hook `{hook}` keeps what it gave back: {why}");
    result.disposition = Disposition::Synthetic;
    // Clients that see a success may look for its content only.
    result.content.push(Content::text(format!("[withheld: {message}]")));
    result.summary = Some(message.clone());
    result.error = Some(ToolError {
        class,
        code: "result_withheld".into(),
        message,
        hint: None,
        recoverability: Recoverability::Operator,
        retry: RetryGuidance { safe, ..RetryGuidance::SAFE },
        details: None,
    });
}

fn fill(result: &mut ToolResult, output: ToolOutput) {
    result.disposition = disposition(&output);
    result.outcome = if output.partial { Outcome::Partial } else { Outcome::Succeeded };
    result.is_error = false;
    result.content = output.content;
    result.structured_content = output.structured;
    result.summary = output.summary;
    result.exit_code = output.exit_code;
    result.truncated = output.truncated;
    result.sandbox = output.sandbox;
}

fn disposition(output: &ToolOutput) -> Disposition {
    let empty = output.structured.is_none()
        && output.content.iter().all(|piece| matches!(piece, Content::Text { text } if text.is_empty()));
    match (&output.truncated, empty) {
        (Some(_), _) => Disposition::Preview,
        (None, true) => Disposition::Empty,
        (None, false) => Disposition::Inline,
    }
}

/// Cuts text to the limit, head and tail kept, and says so. Structured content over the limit is left out:
/// half a JSON value is none.
fn cut(output: &mut ToolOutput, limit: usize) {
    let mut shown = 0;
    let mut total = 0;
    for piece in &mut output.content {
        let Content::Text { text } = piece else { continue };
        // Bytes bound characters from above, so that the common small text is never counted.
        let room = limit.saturating_sub(shown);
        if text.len() <= room {
            shown += text.len();
            total += text.len();
            continue;
        }
        let length = text.chars().count();
        total += length;
        if length > room {
            *text = head_and_tail(text, length, room);
        }
        shown += length.min(room);
    }
    let oversize =
        output.structured.as_ref().map(|value| value.to_string().len()).filter(|&size| size > limit);
    if let Some(size) = oversize {
        output.structured = None;
        total = total.max(size);
    }
    if total > shown || oversize.is_some() {
        output.truncated = Some(Truncation {
            shown: shown as u64,
            total: Some(total as u64),
            unit: "characters".to_owned(),
            hint: Some(format!(
                "the host shows at most {limit} characters of a result; ask for a smaller part"
            )),
            artifact: None,
        });
    }
}

fn head_and_tail(text: &str, length: usize, room: usize) -> String {
    let (head, tail) = (room - room / 3, room / 3);
    let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(byte, _)| byte);
    format!("{}\n[… {} characters cut …]\n{}", &text[..at(head)], length - room, &text[at(length - tail)..])
}

/// A promise the tool did not keep is said aloud; the content still goes out, because text is what models read.
fn check_promise(call: &Call, output: &ToolOutput) {
    let Some(schema) = call.resolved.as_ref().and_then(|resolved| resolved.entry.output()) else {
        return;
    };
    let broken = match &output.structured {
        None => Some("the tool promised structured content and gave none".to_owned()),
        Some(value) => match schema.violations(value) {
            Ok(violations) => violations.first().map(|v| {
                format!("structured content at `{}`: expected {}, got {}", v.at, v.expected, v.given)
            }),
            Err(error) => Some(error.to_string()),
        },
    };
    if let Some(message) = broken {
        call.live.emit(EventBody::Log { level: LogLevel::Warn, message });
    }
}

/// Whether a tool's failure may pass by itself: what it needs did not answer, or was too busy.
pub(crate) fn may_pass(failure: &ToolFailure) -> bool {
    use toolpost_model::ErrorClass;
    matches!(failure.class, ErrorClass::DependencyUnavailable | ErrorClass::RateLimited)
}

/// A tool's own failure as an ending.
pub(crate) fn tool_failed(mut failure: ToolFailure, effects: &Effects) -> Ending {
    let shown = Shown::of(&mut failure);
    let untouched = failure.untouched.unwrap_or_else(|| effects.may_run_again());
    let (recoverability, mut retry) = retry::after_failure(failure.class, untouched);
    retry.after_ms = failure.after_ms;
    let outcome = if failure.class == ErrorClass::Canceled {
        Outcome::Canceled
    } else if failure.class == ErrorClass::Timeout {
        // A time the caller set in the arguments, within the host's own deadline.
        Outcome::TimedOut
    } else {
        Outcome::Failed
    };
    let error = ToolError {
        class: failure.class,
        code: failure.code.unwrap_or_else(|| failure.class.as_str().into()),
        message: failure.message,
        hint: failure.hint,
        recoverability,
        retry,
        details: failure.details,
    };
    Ending::Failure { outcome, error: Box::new(error), shown, by: EndedBy::Tool }
}

/// The work was stopped from outside. What the tool still said of it on its way out is told too: the output up to
/// the deadline is often what explains it.
pub(crate) fn stopped(ending: Ending, said: Option<ToolFailure>) -> Ending {
    match (ending, said) {
        (Ending::Failure { outcome, mut error, by, .. }, Some(mut failure)) => {
            error.details = error.details.or_else(|| failure.details.take());
            error.hint = error.hint.or_else(|| failure.hint.take());
            Ending::Failure { outcome, error, shown: Shown::of(&mut failure), by }
        }
        (ending, _) => ending,
    }
}
