//! Extracts a message for people from the many forms of peers' failures.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::{is_null, string};

/// The message if the peer gives none.
pub(super) const FAILED: &str = "Tool execution failed";
pub(super) const DENIED: &str = "Tool call denied";
/// The message for calls of a step that AI SDK 7 restarts.
pub(super) const SUPERSEDED: &str = "superseded";

const DEPTH: u8 = 4;

/// The first of the members that holds a usable message.
pub(super) fn message<'a>(members: impl IntoIterator<Item = Option<&'a RawValue>>) -> String {
    members
        .into_iter()
        .flatten()
        .find_map(|raw| usable(raw, DEPTH))
        .unwrap_or_else(|| FAILED.to_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FailureObject<'a> {
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error_text: Option<&'a RawValue>,
}

fn usable(raw: &RawValue, depth: u8) -> Option<String> {
    let text = raw.get();
    if text.starts_with('"') {
        // A string with half a surrogate pair is not Unicode; its escaped form is still readable.
        let said = string(raw).map_or_else(|| text.trim_matches('"').to_owned(), String::from);
        return Some(said).filter(|said| !said.is_empty());
    }
    if is_null(raw) {
        return None;
    }
    if text.starts_with('{')
        && depth > 0
        && let Ok(described) = serde_json::from_str::<FailureObject<'_>>(text)
    {
        if let Some(said) = described
            .message
            .and_then(string)
            .filter(|said| !said.is_empty())
        {
            return Some(said.into_owned());
        }
        let inner = [described.error, described.error_text];
        if let Some(said) = inner
            .into_iter()
            .flatten()
            .find_map(|raw| usable(raw, depth - 1))
        {
            return Some(said);
        }
    }
    let compact = compact(text);
    Some(compact).filter(|compact| compact != "{}")
}

/// Removes the space between the tokens of a JSON text.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut escaped = false;
    for c in text.chars() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if !c.is_ascii_whitespace() {
            out.push(c);
            quoted = c == '"';
        }
    }
    out
}
