//! Translates Toolpost's results and events into A2E. The host writes all of them through this module.

mod data;

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolpost_model::{
    AppliedSandbox, ApprovalStatus, ArtifactRef, Disposition, ErrorClass, Event, EventBody,
    InvocationId, LogLevel, Outcome, Redactions, ResultPersistence, RetryGuidance, ToolError,
    ToolResult as HostResult,
};

use crate::{ToolCallResponse, ToolEventMessage, ToolResult, codec};
use data::ResultData;

/// The limit of a text in a server-sent event: existing clients take quadratic time in the length of a line.
pub const MAX_TEXT: usize = 512 << 10;

/// The answer to a call, serialized directly from the host's result.
#[derive(Serialize)]
pub struct CallResponseView<'a> {
    req_id: &'a str,
    data: ResultView<'a>,
    created_at: f64,
}

#[derive(Serialize)]
struct ResultView<'a> {
    success: bool,
    tool_name: &'a str,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<ResultData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'a str>,
    #[serde(
        skip_serializing_if = "<[_]>::is_empty",
        serialize_with = "codec::whole_events"
    )]
    events: &'a [ToolEventMessage],
    invocation_id: InvocationId,
    outcome: Outcome,
    disposition: Disposition,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [ArtifactRef],
    #[serde(skip_serializing_if = "Option::is_none")]
    persistence: Option<&'a ResultPersistence>,
    #[serde(skip_serializing_if = "Redactions::is_empty")]
    redactions: &'a Redactions,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_class: Option<ErrorClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_safe: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'a RetryGuidance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'a AppliedSandbox>,
}

impl<'a> CallResponseView<'a> {
    /// The answer to the request `req_id`, which called the tool by `tool_name`.
    ///
    /// Its text takes at most `most` bytes in written form; see [`MAX_TEXT`].
    pub fn of(
        req_id: &'a str,
        tool_name: &'a str,
        result: &'a HostResult,
        events: &'a [ToolEventMessage],
        most: usize,
    ) -> Self {
        Self::with(
            ResultData::of(result, most),
            req_id,
            tool_name,
            result,
            events,
        )
    }

    /// The answer to a call of a plugin's tool, with the data exactly as the plugin gave it.
    pub fn of_plugin(
        req_id: &'a str,
        tool_name: &'a str,
        result: &'a HostResult,
        events: &'a [ToolEventMessage],
        most: usize,
    ) -> Self {
        Self::with(
            ResultData::of_plugin(result, most),
            req_id,
            tool_name,
            result,
            events,
        )
    }

    fn with(
        (data, cut): (Option<ResultData<'a>>, bool),
        req_id: &'a str,
        tool_name: &'a str,
        result: &'a HostResult,
        events: &'a [ToolEventMessage],
    ) -> Self {
        let error = result.error.as_ref();
        Self {
            req_id,
            data: ResultView {
                success: result.outcome.is_success(),
                tool_name,
                duration_ms: result.timings.total_us / 1_000,
                data,
                // The summary of a failure is the error message, unless the tool gave its own summary.
                summary: match error {
                    None => result.summary.as_deref(),
                    Some(_) => own_word(result, SUMMARY).and_then(Value::as_str),
                },
                truncated: cut
                    || result.truncated.is_some()
                    || own_word(result, TRUNCATED).is_some_and(|cut| *cut == Value::Bool(true)),
                exit_code: result.exit_code,
                error: error.map(told),
                error_code: own_code(result).or_else(|| result.error_class().map(error_code)),
                events,
                invocation_id: result.invocation_id,
                outcome: result.outcome,
                disposition: match result.disposition {
                    Disposition::Inline if cut => Disposition::Preview,
                    whole_or_less => whole_or_less,
                },
                artifacts: &result.artifacts,
                persistence: result.persistence.as_deref(),
                redactions: &result.redactions,
                error_class: result.error_class(),
                hint: hint(result, cut),
                retry_safe: error.map(|error| error.retry.safe),
                retry: error.map(|error| &error.retry),
                sandbox: result.sandbox.as_deref(),
            },
            created_at: ended_at(result),
        }
    }

    /// The time when the call ended, used as the message's time.
    pub fn ts(&self) -> f64 {
        self.created_at
    }

    /// The answer as an owned message, for callers in the same process.
    pub fn to_message(&self) -> ToolCallResponse {
        let data = &self.data;
        ToolCallResponse {
            req_id: self.req_id.to_owned(),
            created_at: self.created_at,
            data: ToolResult {
                success: data.success,
                tool_name: data.tool_name.to_owned(),
                duration_ms: data.duration_ms,
                data: data.data.as_ref().map(ResultData::to_value),
                summary: data.summary.map(Value::from),
                truncated: data.truncated,
                exit_code: data.exit_code,
                error: data.error.as_deref().map(str::to_owned),
                error_code: data.error_code.map(str::to_owned),
                events: data.events.to_vec(),
                invocation_id: Some(data.invocation_id),
                outcome: Some(data.outcome),
                disposition: Some(data.disposition),
                artifacts: data.artifacts.to_vec(),
                persistence: data.persistence.cloned().map(Box::new),
                redactions: data.redactions.clone(),
                error_class: data.error_class,
                hint: data.hint.as_deref().map(str::to_owned),
                retry_safe: data.retry_safe,
                retry: data.retry.copied(),
                sandbox: data.sandbox.cloned().map(Box::new),
            },
        }
    }
}

/// The answer to a call that continues in the background. It tells the agent how to ask for the result.
pub fn backgrounded(req_id: &str, tool_name: &str, call: InvocationId) -> ToolCallResponse {
    let hint = "it runs on; ask for its end with the tool `call_result`";
    ToolCallResponse {
        req_id: req_id.to_owned(),
        created_at: call.unix_millis() as f64 / 1_000.0,
        data: ToolResult {
            success: true,
            tool_name: tool_name.to_owned(),
            duration_ms: 0,
            data: Some(json!({ "status": "backgrounded", "invocation_id": call })),
            summary: Some(Value::from(hint)),
            truncated: false,
            exit_code: None,
            error: None,
            error_code: None,
            events: Vec::new(),
            invocation_id: Some(call),
            outcome: None,
            disposition: None,
            artifacts: Vec::new(),
            persistence: None,
            redactions: Redactions::default(),
            error_class: None,
            hint: None,
            retry_safe: None,
            retry: None,
            sandbox: None,
        },
    }
}

/// The error message with its hint: clients of this protocol have no other field for it.
fn told(error: &ToolError) -> Cow<'_, str> {
    match &error.hint {
        None => Cow::Borrowed(&error.message),
        Some(hint) => Cow::Owned(format!("{}\nhint: {hint}", error.message)),
    }
}

/// The hint of the error, or the place of the rest of a text that was cut for the wire.
fn hint(result: &HostResult, cut: bool) -> Option<Cow<'_, str>> {
    let of_error = result
        .error
        .as_ref()
        .and_then(|error| error.hint.as_deref())
        .map(Cow::Borrowed);
    let whole = || {
        let id = result.invocation_id;
        Cow::Owned(format!(
            "the text was cut for this message; `GET /invocations/{id}` has it as the host gave it"
        ))
    };
    of_error.or_else(|| cut.then(whole))
}

/// The time when the call ended. It is computed from the record alone, so that a repeated answer is identical.
fn ended_at(result: &HostResult) -> f64 {
    let began = result.invocation_id.unix_millis();
    (began + result.timings.total_us / 1_000) as f64 / 1_000.0
}

/// The error code of a tool that uses this protocol itself.
fn own_code(result: &HostResult) -> Option<&str> {
    own_word(result, ERROR_CODE)?.as_str()
}

fn own_word<'a>(result: &'a HostResult, key: &str) -> Option<&'a Value> {
    result.error.as_ref()?.details.as_ref()?.get(key)
}

/// The member of the error details that holds the error code of a tool that uses this protocol itself.
pub const ERROR_CODE: &str = "a2e_error_code";
/// The member for the summary of a failed result.
pub const SUMMARY: &str = "a2e_summary";
/// The member that tells whether the tool cut its data.
pub const TRUNCATED: &str = "a2e_truncated";

/// The protocol's error code for a class of errors.
pub fn error_code(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::UnknownTool => "unknown_tool",
        ErrorClass::PolicyBlocked
        | ErrorClass::PermissionDenied
        | ErrorClass::ApprovalRejected
        | ErrorClass::HookBlocked
        | ErrorClass::HookFailed
        | ErrorClass::SandboxViolation => "tool_denied",
        ErrorClass::SchemaValidationFailed | ErrorClass::InvalidArguments => "schema_violation",
        ErrorClass::Timeout => "timeout",
        ErrorClass::SchemaNotLoaded
        | ErrorClass::RateLimited
        | ErrorClass::Queued
        | ErrorClass::ApprovalPending
        | ErrorClass::SiblingCanceled
        | ErrorClass::Canceled
        | ErrorClass::OutcomeUnknown
        | ErrorClass::SetupRequired => class.as_str(),
        ErrorClass::DependencyUnavailable
        | ErrorClass::ExecutionFailed
        | ErrorClass::ResultTooLarge
        | ErrorClass::RequestConflict
        | ErrorClass::JournalUnavailable => "tool_error",
    }
}

/// An event of a call. `None`: the protocol has no such event, for example for stages.
pub fn event(req_id: &str, event: &Event) -> Option<ToolEventMessage> {
    let (kind, data) = match &event.body {
        EventBody::Stage { .. } | EventBody::Message { .. } => return None,
        EventBody::Custom { name, data } => (name.as_str(), object(data.clone())),
        EventBody::Progress(progress) => ("progress", {
            let mut data = Map::new();
            let share = match (progress.done, progress.total) {
                (Some(done), Some(total)) if total > 0 => Some(done as f64 * 100.0 / total as f64),
                _ => None,
            };
            if let Some(percent) = progress
                .percent
                .or(share)
                .filter(|percent| percent.is_finite())
            {
                // Clients expect a whole number.
                data.insert(
                    "pct".to_owned(),
                    Value::from(percent.clamp(0.0, 100.0) as u8),
                );
            }
            data.insert("message".to_owned(), Value::from(progress.message.as_str()));
            for (name, count) in [("done", progress.done), ("total", progress.total)] {
                if let Some(count) = count {
                    data.insert(name.to_owned(), Value::from(count));
                }
            }
            data
        }),
        EventBody::Status { message } => ("status", object(json!({ "message": message }))),
        EventBody::Approval(status) => ("status", {
            let message = match status {
                ApprovalStatus::Pending { .. } => "waiting for a person's approval",
                ApprovalStatus::Granted { .. } => "a person approved the call",
            };
            let mut data = object(serde_json::to_value(status).unwrap_or_default());
            data.insert("message".to_owned(), Value::from(message));
            data
        }),
        EventBody::Log { level, message } => (
            "log",
            object(json!({ "level": level_word(*level), "message": message })),
        ),
        EventBody::Artifact { name, content } => {
            let (mime, chunk) = match content.encoded() {
                Some((data, media_type)) => (media_type, Cow::Borrowed(data)),
                None => {
                    let text = content.reading().unwrap_or_default();
                    (
                        "text/plain; charset=utf-8",
                        Cow::Owned(STANDARD.encode(&*text)),
                    )
                }
            };
            (
                "artifact",
                object(json!({ "name": name, "mime": mime, "chunk": chunk, "final": true })),
            )
        }
        // The event does not carry the artifact's bytes. Clients that concatenate chunks then add nothing, and other
        // clients fetch the reference.
        EventBody::Kept(piece) => (
            "artifact",
            object(json!({
                "name": piece.name,
                "mime": piece.media_type,
                "chunk": "",
                "ref": piece.id,
                "size": piece.size,
                "digest": piece.digest,
                "final": true,
            })),
        ),
        // Clients of this protocol have no event for output, but they show log lines. The counters are an addition.
        EventBody::Output(chunk) => (
            "log",
            object(json!({
                "level": level_word(LogLevel::Info),
                "message": chunk.text,
                "stream": chunk.stream.as_str(),
                "bytes": chunk.bytes,
                "lines": chunk.lines,
                "skipped": chunk.skipped,
            })),
        ),
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds of this century fit"
    )]
    let at = Some(event.at.as_microsecond() as f64 / 1_000_000.0);
    Some(ToolEventMessage {
        kind: kind.to_owned(),
        req_id: req_id.to_owned(),
        data,
        seq: event.seq,
        at,
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn level_word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warning",
        LogLevel::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> HostResult {
        let value = json!({
            "invocation_id": "01a1e178-8bea-76ab-b7f3-8ce1209dbf75",
            "tool_id": "demo.read",
            "outcome": "succeeded",
            "disposition": "inline",
            "is_error": false,
            "content": [{ "type": "text", "text": text }],
            "timings": { "total_us": 1, "queued_us": 0, "execute_us": 1 },
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_text_that_is_cut_for_the_wire_is_a_preview_and_says_where_the_whole_is() {
        let result = result(&"a".repeat(100));
        let whole = CallResponseView::of("r", "read", &result, &[], 100)
            .to_message()
            .data;
        assert_eq!(
            (whole.disposition, whole.truncated, whole.hint),
            (Some(Disposition::Inline), false, None)
        );
        let cut = CallResponseView::of("r", "read", &result, &[], 99)
            .to_message()
            .data;
        assert_eq!(
            (cut.disposition, cut.truncated),
            (Some(Disposition::Preview), true)
        );
        let place = format!("`GET /invocations/{}`", result.invocation_id);
        assert!(cut.hint.is_some_and(|hint| hint.contains(&place)));
        assert_eq!(cut.data.unwrap()["text"].as_str().map(str::len), Some(99));
    }
}
