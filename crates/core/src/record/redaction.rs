//! Invariant 5: one redaction port in front of the journal, artifacts, events, answers and logs.
//!
//! A [`Redactor`] finds the secrets in a piece of text; this module removes them from whole texts, from values and from
//! streams that arrive in pieces. It finds values that the host knows, in the forms in which they usually travel
//! (`known`), and texts with the shape of a well-known provider's secret (`patterns`). Randomness alone is no sign:
//! commits and UUIDs stay.

mod arguments;
mod call;
mod host;
mod json;
mod known;
mod patterns;
mod runs;
mod shape;
mod stream;
#[cfg(test)]
mod tests;
mod torn;

use std::{borrow::Cow, sync::Arc};

use toolpost_model::Redactions;

pub(crate) use arguments::{RedactedArguments, observable, observable_after};
pub(crate) use call::CallRedactor;
pub(crate) use host::{HostRedactor, SensitiveArgument, hidden};
pub use known::KnownSecrets;
pub use stream::StreamRedactor;

pub(crate) const ARGUMENT_MARK: &str = "[redacted:argument]";
const ARGUMENT: &str = "argument";
/// Shorter secrets would match ordinary words.
const MIN_SECRET: usize = 8;

/// The known part of a text.
#[derive(Clone, Copy, Debug)]
pub struct RedactionWindow<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether the text ends here.
    pub is_last: bool,
}

/// A secret within a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFinding {
    /// The first byte of the evidence: the start of the words that announce the secret, or `start`.
    pub from: usize,
    /// Where it starts.
    pub start: usize,
    /// After its last byte.
    pub end: usize,
    /// The kind that the mark names. Lower-case letters, digits and `_`.
    pub kind: Arc<str>,
}

/// Finds secrets in text.
pub trait Redactor: Send + Sync + 'static {
    /// Adds the secrets in `window` to `found`, in any order, and returns the number of decided bytes: no secret that
    /// begins before that place depends on bytes after the window. With the last window that is all bytes.
    ///
    /// A finding depends only on the bytes from [`from`](SecretFinding::from) on. This makes the result independent of
    /// the cuts between windows: a search from the first undecided byte finds exactly the findings of a search in the
    /// whole text. An implementation that looks back before `from`, for example for a word boundary, would break that,
    /// because the earlier bytes are already written.
    fn find(&self, window: RedactionWindow<'_>, found: &mut Vec<SecretFinding>) -> usize;

    /// The text without its secrets; borrowed when there were none.
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.counted(text, &mut Redactions::default())
    }

    /// The same, and counts the removed secrets.
    fn counted<'a>(&self, text: &'a str, counts: &mut Redactions) -> Cow<'a, str> {
        // Shorter secrets are not searched, and many texts are short.
        if text.len() < MIN_SECRET {
            return Cow::Borrowed(text);
        }
        let mut found = Vec::new();
        self.find(
            RedactionWindow {
                bytes: text.as_bytes(),
                is_last: true,
            },
            &mut found,
        );
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = Vec::with_capacity(text.len());
        let mut cover = 0;
        replace(
            text.as_bytes(),
            text.len(),
            &mut found,
            &mut cover,
            counts,
            &mut clean,
        );
        // A secret begins and ends at character boundaries, so this is never lossy.
        Cow::Owned(
            String::from_utf8(clean)
                .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()),
        )
    }
}

/// Writes the first bytes of a window, up to `decided`, with marks in place of the secrets. Overlapping secrets become
/// one mark. `cover` is the end of the last mark's secret, in and out: it may be after `decided`.
fn replace(
    bytes: &[u8],
    decided: usize,
    found: &mut Vec<SecretFinding>,
    cover: &mut usize,
    counts: &mut Redactions,
    clean: &mut Vec<u8>,
) {
    found.sort_by_key(|finding| (finding.start, std::cmp::Reverse(finding.end)));
    let mut written = (*cover).min(decided);
    for finding in found.drain(..).filter(|finding| finding.start < decided) {
        if finding.start < *cover {
            *cover = (*cover).max(finding.end);
            continue;
        }
        clean.extend_from_slice(&bytes[written.max(*cover)..finding.start]);
        push_mark(&finding.kind, clean);
        counts.count(&finding.kind);
        *cover = finding.end;
        written = decided.min(*cover);
    }
    let rest = written.max(*cover).min(decided);
    clean.extend_from_slice(&bytes[rest..decided]);
}

fn push_mark(kind: &str, clean: &mut Vec<u8>) {
    clean.extend_from_slice(b"[redacted:");
    clean.extend_from_slice(kind.as_bytes());
    clean.push(b']');
}

/// Moves the cut before every finding that crosses it.
///
/// The next search starts at the cut and sees nothing before it. A cut between announcing words (`Authorization:
/// Bearer`) and their secret would hide the words from that search, and the secret would be written. So the cut moves
/// to `from` of such a finding, and again if it now crosses another one.
fn settled(found: &[SecretFinding], mut decided: usize) -> usize {
    while let Some(earlier) = found
        .iter()
        .filter(|f| f.start >= decided && f.from < decided)
        .map(|f| f.from)
        .min()
    {
        decided = earlier;
    }
    decided
}
