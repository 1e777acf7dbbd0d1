//! The redaction of JSON that the host wrote, by the origin of its texts.
//!
//! A caller chooses the value of a sensitive argument, and may choose `principal` or `succeeded`. If every text were
//! redacted by that value, a call could make its own record unreadable. So call secrets are removed only from texts of
//! callers and tools, never from the host's own names, terms and ids.

use std::{borrow::Cow, ops::Range};

use serde::de::IgnoredAny;
use toolpost_model::Redactions;

use super::{CallRedactor, RedactionWindow, Redactor as _, SecretFinding, replace};

/// Members with content of callers and tools only, names included.
const THEIRS: &[&str] = &[
    "arguments",
    "arguments_before",
    "model_arguments",
    "structured_content",
    "details",
    "meta",
];

/// Members with terms of the host. All of them are lower-case words.
const WORDS: &[&str] = &[
    "access",
    "behavior",
    "class",
    "confined",
    "decision",
    "did",
    "disposition",
    "event",
    "for",
    "kind",
    "late",
    "level",
    "matched_by",
    "mode",
    "on_failure",
    "ordering",
    "origin",
    "outcome",
    "permission",
    "recoverability",
    "requested",
    "role",
    "scope",
    "source_type",
    "stage",
    "standing",
    "strategy",
    "stream",
    "tier",
    "transitions",
    "type",
    "unit",
    "visibility",
];

/// Members with names, ids, hashes and times of the host. Callers cannot choose them.
const NAMES: &[&str] = &[
    "acknowledged_at",
    "approves",
    "artifact",
    "ask_id",
    "asked_at",
    "authority",
    "by",
    // It was redacted with the call, so that all records of the call agree.
    "correlation_id",
    "digest",
    "expires_at",
    "face",
    "hash",
    "held_by",
    "invocation_id",
    "kept_until",
    "parent",
    "principal",
    "requested_at",
    "source",
    "surface",
    "tool_id",
];

/// The secrets that may be removed from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenTo {
    All,
    /// The host's secrets, not those of a call.
    Host,
    Nobody,
}

/// A text within JSON, without its quotes.
struct JsonStringSpan {
    at: Range<usize>,
    open: OpenTo,
}

struct JsonRedactionFrame<'a> {
    is_object: bool,
    is_theirs: bool,
    /// The member that contains it.
    name: &'a str,
    /// For an object, the current member.
    key: &'a str,
    wants_key: bool,
    /// For an array, the openness of its texts.
    open: OpenTo,
}

fn open(frame: Option<&JsonRedactionFrame<'_>>) -> OpenTo {
    let Some(frame) = frame else {
        return OpenTo::All;
    };
    if !frame.is_object {
        return frame.open;
    }
    let key = frame.key;
    if frame.is_theirs || THEIRS.contains(&key) {
        OpenTo::All
    } else if WORDS.contains(&key) || (key == "changed_fields" && frame.name == "output_mutations")
    {
        OpenTo::Nobody
    } else if NAMES.contains(&key) || (key == "id" && frame.name != "batch") {
        OpenTo::Host
    } else {
        OpenTo::All
    }
}

/// The texts of valid JSON, in their order.
fn literals(json: &str) -> Vec<JsonStringSpan> {
    let bytes = json.as_bytes();
    let mut found = Vec::new();
    let mut frames = Vec::<JsonRedactionFrame<'_>>::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            opening @ (b'{' | b'[') => {
                let above = frames.last();
                let name = above.map_or("", |frame| {
                    if frame.is_object {
                        frame.key
                    } else {
                        frame.name
                    }
                });
                let is_theirs = above.is_some_and(|frame| {
                    frame.is_theirs || frame.is_object && THEIRS.contains(&name)
                });
                let is_object = opening == b'{';
                let open = open(above);
                frames.push(JsonRedactionFrame {
                    is_object,
                    is_theirs,
                    name,
                    key: "",
                    wants_key: is_object,
                    open,
                });
            }
            b'}' | b']' => {
                frames.pop();
            }
            b',' => {
                if let Some(frame) = frames.last_mut() {
                    frame.wants_key = frame.is_object;
                }
            }
            b'"' => {
                let text = at + 1..end_of_text(bytes, at + 1);
                at = text.end;
                let open = match frames.last_mut().filter(|frame| frame.wants_key) {
                    Some(frame) => {
                        (frame.key, frame.wants_key) = (&json[text.clone()], false);
                        if frame.is_theirs {
                            OpenTo::All
                        } else {
                            OpenTo::Nobody
                        }
                    }
                    None => match open(frames.last()) {
                        // Another text in this place is not the host's own, so it is redacted like foreign text.
                        OpenTo::Nobody if !is_word(&bytes[text.clone()]) => OpenTo::All,
                        open => open,
                    },
                };
                found.push(JsonStringSpan { at: text, open });
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn is_word(text: &[u8]) -> bool {
    const LONGEST: usize = 40;
    text.len() <= LONGEST
        && text
            .iter()
            .all(|&byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// The place of the quote after a text.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// The text at a place, or the next one.
fn text_at(literals: &[JsonStringSpan], at: usize) -> Option<&JsonStringSpan> {
    literals.get(literals.partition_point(|literal| literal.at.end <= at))
}

/// Whether a finding may be removed: it lies within one text, and that text is open to it.
fn may_go(finding: &SecretFinding, is_own: bool, literals: &[JsonStringSpan]) -> bool {
    let Some(literal) = text_at(literals, finding.start) else {
        return false;
    };
    let is_open = match literal.open {
        OpenTo::All => true,
        OpenTo::Host => !is_own,
        OpenTo::Nobody => false,
    };
    is_open && finding.start >= literal.at.start && finding.end <= literal.at.end
}

/// Joins overlapping findings, and extends them to character boundaries: an escape is one character. One pass over the
/// text, however many findings there are.
fn on_characters(
    mut found: Vec<SecretFinding>,
    bytes: &[u8],
    literals: &[JsonStringSpan],
) -> Vec<SecretFinding> {
    found.sort_by_key(|finding| (finding.start, std::cmp::Reverse(finding.end)));
    let mut joined: Vec<SecretFinding> = Vec::new();
    for finding in found {
        match joined.last_mut().filter(|last| finding.start < last.end) {
            Some(last) => last.end = last.end.max(finding.end),
            None => joined.push(finding),
        }
    }
    let behind = |at: usize| match (bytes[at], bytes.get(at + 1)) {
        (b'\\', Some(b'u')) => at + 6,
        (b'\\', _) => at + 2,
        _ => at + 1,
    };
    let mut at = 0;
    for finding in &mut joined {
        let Some(literal) = text_at(literals, finding.start) else {
            continue;
        };
        at = at.max(literal.at.start);
        while at < finding.start && behind(at) <= finding.start {
            at = behind(at);
        }
        finding.start = finding.start.min(at);
        while at < finding.end {
            at = behind(at);
        }
        finding.end = at.min(literal.at.end);
    }
    joined
}

impl CallRedactor {
    /// Redacts JSON of the host. The result is still JSON with the host's own names and terms, and unchanged parts keep
    /// their bytes.
    pub(crate) fn json<'a>(&self, json: &'a str, counts: &mut Redactions) -> Cow<'a, str> {
        let window = RedactionWindow {
            bytes: json.as_bytes(),
            is_last: true,
        };
        let mut found = Vec::new();
        self.host.find(window, &mut found);
        let of_host = found.len();
        if let Some(own) = &self.own {
            own.find(window, &mut found);
        }
        if found.is_empty() {
            return Cow::Borrowed(json);
        }
        if serde_json::from_str::<IgnoredAny>(json).is_err() {
            return self.counted(json, counts);
        }
        let literals = literals(json);
        let mut place = 0;
        found.retain(|finding| {
            place += 1;
            may_go(finding, place > of_host, &literals)
        });
        if found.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut found = on_characters(found, json.as_bytes(), &literals);
        let mut clean = Vec::with_capacity(json.len());
        let mut cover = 0;
        replace(
            json.as_bytes(),
            json.len(),
            &mut found,
            &mut cover,
            counts,
            &mut clean,
        );
        // A text begins and ends at character boundaries, so this is never lossy.
        Cow::Owned(
            String::from_utf8(clean)
                .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()),
        )
    }
}
