//! The output and the error message of a result, as events show them.

use serde_json::{Map, Value, json};
use toolpost_model::{ArtifactRef, Disposition, Outcome, ResultContent, ToolResult};

use super::bounded::{JsonMeasurement, head};
use super::plainly;

/// The limits of an error message and of the printed text of a failed tool that follows it.
const LONGEST_MESSAGE: usize = 8 << 10;
const LONGEST_PRINTED: usize = 2 << 10;

/// The output of a success. It is the value alone or the text alone if the result has nothing else. Otherwise it is an
/// object with both, the artifacts by id, and remarks on missing content. A tool that gives both a text and a value
/// puts different things into them: a command prints text and has its exit code as its value, and readers need the
/// text.
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

/// Whether a text is only the JSON of the value, as tools write it for clients that read text alone.
fn is_json_of(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|written| written == *value)
}

/// Whether the content is the complete output of the call.
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

/// The message for a call that did not succeed: the reason, the hint and the beginning of the printed text.
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
    // Many tools print their error message too, so a text that the message contains is left out.
    if !printed.trim().is_empty() && !message.contains(printed.trim()) {
        message.push('\n');
        message.push_str(head(&printed, LONGEST_PRINTED));
    }
    message
}

/// Whether a hint repeats the message. For a call that a rule decided, both name the rule and its place.
fn says_nothing_new(message: &str, hint: &str) -> bool {
    let names = hint.strip_suffix(" decides this").unwrap_or(hint);
    message.contains(names)
        || names != hint && names.split(" in ").all(|name| message.contains(name))
}
