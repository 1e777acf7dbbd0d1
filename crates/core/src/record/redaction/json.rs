//! JSON that the host wrote: which of its texts may be changed.
//!
//! A caller chooses the value of a sensitive argument, and may choose `principal` or `succeeded`. So what is taken out is
//! taken out of texts that came from callers and tools, and never of the host's own names, words and ids: a call cannot
//! make its own record unreadable.

use std::{borrow::Cow, ops::Range};

use serde::de::IgnoredAny;
use toolpost_model::Redactions;

use super::{CallRedactor, RedactionWindow, Redactor as _, SecretFinding, replace};

/// Members in which everything comes from callers and tools, names included.
const THEIRS: &[&str] = &[
    "arguments",
    "arguments_before",
    "model_arguments",
    "structured_content",
    "details",
    "meta",
];

/// Members that hold words of the host. All of them are lower-case words.
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

/// Members that hold names, ids, hashes and times of the host. A caller has no say in them.
const NAMES: &[&str] = &[
    "acknowledged_at",
    "approves",
    "artifact",
    "ask_id",
    "asked_at",
    "authority",
    "by",
    // It was made clean when the call was, so that every record of the call says the same.
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

/// By whose secrets a text may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenTo {
    All,
    /// By what the host knows for a secret, not by what a call does.
    Host,
    Nobody,
}

/// A text within JSON, without its quotes.
struct JsonStringSpan {
    at: Range<usize>,
    open: OpenTo,
}

/// An object or array that is being read.
struct JsonRedactionFrame<'a> {
    is_object: bool,
    is_theirs: bool,
    /// The member that holds it.
    name: &'a str,
    /// For an object, the member that is being read.
    key: &'a str,
    wants_key: bool,
    /// For an array, how its texts are.
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

/// The texts of JSON that is known to be JSON, in their order.
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
                        // Whatever else stands there is none of our words.
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

/// The place of the quote behind a text.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// The text that a place lies in, or the next.
fn text_at(literals: &[JsonStringSpan], at: usize) -> Option<&JsonStringSpan> {
    literals.get(literals.partition_point(|literal| literal.at.end <= at))
}

/// Whether what was found may be taken out: it lies within one text, and that may be changed.
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

/// Joins what overlaps, and lets it begin and end where characters do: an escape is one character. One pass over the
/// text, however much was found in it.
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
    /// JSON of the host without secrets. It stays JSON, with the same names and words of the host in it, and what is not
    /// changed stays the same bytes.
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
        // A text begins and ends where a character does, so this is never lossy.
        Cow::Owned(
            String::from_utf8(clean)
                .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()),
        )
    }
}
