//! Converts between a module's result and Toolpost's: the one pair of functions for all code that runs modules.

use serde_json::{Map, Value, json};
use toolpost_model::{ResultContent, ToolFailure, ToolOutput};

use crate::{ContentBlock, ToolResult, VerbatimJson};

/// The message of an error without one.
const UNKNOWN: &str = "Error: Unknown error";
/// The message of a failure without an error and an output.
const FAILED: &str = "Error: Failed";
/// The same with an output that holds the explanation.
const NO_REASON: &str = "the tool failed and gave no reason";

/// Whether the message of a failure was made up by [`into_outcome`], since the module wrote none.
pub fn is_without_reason(message: &str) -> bool {
    [UNKNOWN, FAILED, NO_REASON].contains(&message)
}

/// A module's result as the end of a Toolpost call.
///
/// The model gets Amplifier's text, then the content blocks. An output that is an object or a list is also the
/// structured content. A failure loses nothing: its message becomes the failure's message, the whole error and the
/// output become its details, and an output with more than the message is shown. A result of content blocks alone is
/// shown without the `Success` that Amplifier's text would have for it.
pub fn into_outcome(result: ToolResult) -> Result<ToolOutput, ToolFailure> {
    if result.is_success() {
        let mut content = Vec::new();
        if !result.output().is_null() || result.content().is_empty() {
            content.push(ResultContent::text(result.text_for_model()));
        }
        let structured =
            Some(result.output().clone()).filter(|output| output.is_object() || output.is_array());
        content.extend(
            result
                .into_content()
                .into_iter()
                .map(ContentBlock::into_content),
        );
        return Ok(ToolOutput {
            content,
            structured,
            ..ToolOutput::default()
        });
    }
    let stated = stated_message(&result);
    let message =
        stated
            .clone()
            .unwrap_or_else(|| match (result.error_message(), result.output()) {
                (Some(_), _) => UNKNOWN.to_owned(),
                (None, Value::Null) => FAILED.to_owned(),
                (None, Value::String(text)) if !text.is_empty() => first_line(text).to_owned(),
                (None, _) => NO_REASON.to_owned(),
            });
    let text = result.text_for_model();
    let repeats =
        result.output().is_null() || stated.as_ref().is_some_and(|message| *message == text);
    let mut details = Map::new();
    if let Some(error) = result.error() {
        details.insert("error".to_owned(), Value::Object(error.clone()));
    }
    if !repeats {
        details.insert("output".to_owned(), result.output().clone());
    }
    let mut failure = ToolFailure::new(message);
    if !repeats {
        failure.content.push(ResultContent::text(text));
    }
    failure.content.extend(
        result
            .into_content()
            .into_iter()
            .map(ContentBlock::into_content),
    );
    failure.details = Some(details)
        .filter(|details| !details.is_empty())
        .map(Value::Object);
    Err(failure)
}

/// The message of the error, if the module wrote one.
fn stated_message(result: &ToolResult) -> Option<String> {
    match result.error()?.get("message")? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        _ => result.error_message(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or(text)
}

/// The result of a Toolpost call as a module's result, for events and hooks of modules.
///
/// A failure that [`into_outcome`] made comes back with the module's own error. Any other has the error's class as its
/// `type`.
pub fn of_result(result: &toolpost_model::ToolResult) -> ToolResult {
    let texts: Vec<_> = result
        .content
        .iter()
        .filter_map(ResultContent::reading)
        .collect();
    let images = result.content.iter().filter_map(|piece| match piece {
        ResultContent::Image { data, media_type } => {
            ContentBlock::encoded_image(media_type.clone(), data.clone()).ok()
        }
        ResultContent::Text { .. }
        | ResultContent::Binary { .. }
        | ResultContent::Audio { .. }
        | ResultContent::Resource { .. }
        | ResultContent::Link { .. } => None,
    });
    let images = images.collect();
    let output = match (&result.structured_content, texts.is_empty()) {
        (Some(value), _) => value.clone(),
        (None, true) => Value::Null,
        (None, false) => Value::String(texts.join("\n")),
    };
    let Some(error) = &result.error else {
        return ToolResult::of_parts(
            result.outcome.is_success(),
            VerbatimJson::from(output),
            None,
            images,
        );
    };
    let own = error.details.as_ref().and_then(module_error);
    let (fields, own_output) = own.unwrap_or_else(|| {
        let mut fields = Map::new();
        fields.insert("message".to_owned(), json!(error.message));
        fields.insert("type".to_owned(), json!(error.class.as_str()));
        (fields, None)
    });
    let output = own_output.unwrap_or(output);
    ToolResult::of_parts(
        result.outcome.is_success(),
        VerbatimJson::from(output),
        Some(fields),
        images,
    )
}

/// The error and output that [`into_outcome`] put into a failure's details.
fn module_error(details: &Value) -> Option<(Map<String, Value>, Option<Value>)> {
    let details = details.as_object()?;
    if details.keys().any(|key| key != "error" && key != "output") {
        return None;
    }
    let error = details.get("error")?.as_object()?.clone();
    Some((error, details.get("output").cloned()))
}
