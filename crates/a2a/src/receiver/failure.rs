//! What a person may read of a failure, from the many ways peers write one.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::{is_null, string};

/// Where a peer tells nothing.
pub(super) const FAILED: &str = "Tool execution failed";
pub(super) const DENIED: &str = "Tool call denied";
/// AI SDK 7 takes a step back and begins it again.
pub(super) const SUPERSEDED: &str = "superseded";

/// An error inside an error inside an error is followed this far.
const DEPTH: u8 = 4;

/// The first of several members that says something usable.
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
        // Half a surrogate pair is no text; its escapes can still be read.
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

/// JSON without the space between its tokens.
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
