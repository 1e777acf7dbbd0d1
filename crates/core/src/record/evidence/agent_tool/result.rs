//! The result of a call, and the handling of its size.

use serde_json::{Value, json};
use toolpost_model::{Disposition, PersistStrategy, ToolResult};

use super::{push, story::CallEvidence, words};

fn redaction_state(story: &CallEvidence, result: &ToolResult) -> &'static str {
    if result.disposition == Disposition::Redacted {
        "withheld"
    } else if story.redacted || !result.redactions.is_empty() {
        "redacted"
    } else {
        "none"
    }
}

pub(super) fn result(story: &CallEvidence, lines: &mut Vec<String>) {
    let Some(result) = &story.result else { return };
    let error = result.error.as_ref().map(|error| {
        let mut object = json!(error);
        object["error_class"] = error.class.as_str().into();
        object
    });
    push(
        lines,
        "result",
        json!({
            "result_id": format!("{}/result", story.id),
            "invocation_id": story.id,
            "tool_id": story.tool(),
            "status": words::result_status(result),
            "outcome": result.outcome,
            "disposition": result.disposition,
            "is_error": result.is_error,
            "is_empty": result.disposition == Disposition::Empty,
            "is_synthetic": result.disposition == Disposition::Synthetic,
            // An answer of the tool after the cancellation: told, unheard or discarded.
            "late_answer": story.met.as_ref().map(|met| &met["late"]),
            "content": result.content,
            "structured_content": result.structured_content,
            "model_facing_content": [{ "type": "text", "text": result.model_text() }],
            "ui_facing_summary": result.summary,
            "summary": result.summary,
            "exit_code": result.exit_code,
            "truncated": result.truncated,
            "artifact_refs": result.artifacts,
            "persistence_refs": [format!("{}/persistence", story.id)],
            "redaction_state": redaction_state(story, result),
            "redactions": result.redactions,
            "sandbox": result.sandbox,
            "timings": result.timings,
            "error": error,
            "created_at": story.last_at,
        }),
    );
    persistence(story, result, lines);
}

fn persistence(story: &CallEvidence, result: &ToolResult, lines: &mut Vec<String>) {
    let done = result.persistence.as_ref();
    let strategy = done.map_or(PersistStrategy::Inline, |done| done.strategy);
    let kept = done.and_then(|done| done.artifact);
    let reference = kept.and_then(|id| result.artifacts.iter().find(|artifact| artifact.id == id));
    push(
        lines,
        "result_persistence",
        json!({
            "decision_id": format!("{}/persistence", story.id),
            "invocation_id": story.id,
            "result_id": format!("{}/result", story.id),
            "strategy": strategy,
            "threshold": done.map(|done| json!({ "characters": done.threshold })),
            "original_size_bytes": done.map(|done| done.original),
            "preview_size_bytes": done.map(|done| done.preview),
            "persisted_ref": reference.map(|artifact| json!(artifact)).or(kept.map(|id| json!({ "id": id }))),
            "redaction_state": redaction_state(story, result),
            "reason": done.map_or_else(
                || Some(Value::from("it is within the limit of whole results")),
                |done| done.reason.as_deref().map(Value::from),
            ),
            "created_at": story.last_at,
        }),
    );
}
