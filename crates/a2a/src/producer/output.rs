//! What a result says, for readers of events.

use serde_json::{Map, Value, json};
use toolpost_model::{ArtifactRef, Disposition, Outcome, ResultContent, ToolResult};

use super::bounded::{JsonMeasurement, head};
use super::plainly;

/// How much an error may say, and how much of what a failed tool printed comes with it.
const LONGEST_MESSAGE: usize = 8 << 10;
const LONGEST_PRINTED: usize = 2 << 10;

/// The output of a success: its value, or its text, where that is all there is to say. Otherwise an object with those, the
/// kept pieces by id, and in words what a reader of the rest would not know. A tool that gives both says different things
/// in them: a command prints text and has an exit code as its value, and a reader wants to see the text.
pub(super) fn of(result: &ToolResult) -> Value {
    let output = whole(result);
    let kept = result.truncated.as_ref().and_then(|cut| cut.artifact);
    let kept = kept.or_else(|| result.artifacts.first().map(|piece| piece.id));
    JsonMeasurement::of(&output).value(|| output, kept)
}

fn whole(result: &ToolResult) -> Value {
    let text = text(result);
    let only_text = result
        .content
        .iter()
        .all(|piece| matches!(piece, ResultContent::Text { .. }));
    if result.disposition == Disposition::Empty
        && text.is_none()
        && result.structured_content.is_none()
    {
        return Value::Null;
    }
    if is_all_there(result) {
        match (&result.structured_content, &text) {
            (Some(value), None) if only_text => return value.clone(),
            (Some(value), Some(text)) if only_text && is_json_of(text, value) => {
                return value.clone();
            }
            (None, Some(text)) if only_text => return Value::from(text.as_str()),
            (None, None) if only_text => return Value::Null,
            (Some(_) | None, _) => {}
        }
    }
    let mut output = Map::new();
    let mut put = |name: &str, value: Value| output.insert(name.to_owned(), value);
    if let Some(text) = text {
        put("text", Value::from(text));
    }
    if let Some(value) = &result.structured_content {
        put("structured", value.clone());
    }
    if !only_text {
        put("content", json!(result.content));
    }
    if !result.artifacts.is_empty() {
        put(
            "artifacts",
            result.artifacts.iter().map(reference).collect(),
        );
    }
    let remarks = result.remarks();
    if !remarks.is_empty() {
        put("remarks", remarks.into());
    }
    Value::Object(output)
}

/// Whether a text is nothing but the value once more, as tools write it for readers of text alone.
fn is_json_of(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|written| written == *value)
}

/// Whether the content is everything that the call gave.
fn is_all_there(result: &ToolResult) -> bool {
    let shown = match result.disposition {
        Disposition::Inline | Disposition::Empty | Disposition::Synthetic => true,
        Disposition::Preview
        | Disposition::RefOnly
        | Disposition::Redacted
        | Disposition::Dropped => false,
    };
    shown
        && result.outcome != Outcome::Partial
        && result.truncated.is_none()
        && result.artifacts.is_empty()
        && result.redactions.is_empty()
}

fn reference(piece: &ArtifactRef) -> Value {
    let ArtifactRef {
        id,
        name,
        media_type,
        size,
        ..
    } = piece;
    json!({ "id": id, "name": name, "mediaType": media_type, "size": size })
}

fn text(result: &ToolResult) -> Option<String> {
    let texts: Vec<_> = result
        .content
        .iter()
        .filter_map(ResultContent::reading)
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What a person reads of a call that did not succeed: why, what to do about it, and the beginning of what it printed.
pub(super) fn message(result: &ToolResult) -> String {
    let mut message = match &result.error {
        None => plainly(result.outcome).to_owned(),
        Some(error) if error.message.trim().is_empty() => plainly(result.outcome).to_owned(),
        Some(error) => head(&error.message, LONGEST_MESSAGE / 2).to_owned(),
    };
    let hint = result
        .error
        .as_ref()
        .and_then(|error| error.hint.as_deref());
    if let Some(hint) = hint.filter(|hint| !says_nothing_new(&message, hint)) {
        message.push_str("\nhint: ");
        message.push_str(head(hint, LONGEST_MESSAGE / 4));
    }
    let printed = text(result).unwrap_or_default();
    // What the tool printed is often the message once more.
    if !printed.trim().is_empty() && !message.contains(printed.trim()) {
        message.push('\n');
        message.push_str(head(&printed, LONGEST_PRINTED));
    }
    message
}

/// Whether a hint is the message once more: of a call that a rule decided about, both name the rule and its place.
fn says_nothing_new(message: &str, hint: &str) -> bool {
    let names = hint.strip_suffix(" decides this").unwrap_or(hint);
    message.contains(names)
        || names != hint && names.split(" in ").all(|name| message.contains(name))
}
