//! Invariant 5: one redaction port in front of the journal, kept results, events, answers and logs.
//!
//! A [`Redactor`] says where secrets are in a piece of text; this room takes them out, of whole texts, of values and of
//! streams that arrive in pieces. What is found: values that the host knows, in the forms in which they usually travel
//! (`known`), and texts that by their shape are the secret of a well-known provider (`patterns`). Nothing is guessed
//! from how random a text looks: commits and UUIDs stay.

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

/// What stands where a sensitive argument was.
pub(crate) const ARGUMENT_MARK: &str = "[redacted:argument]";
/// The kind of a sensitive argument.
const ARGUMENT: &str = "argument";
/// Shorter secrets would blot out ordinary words.
const MIN_SECRET: usize = 8;

/// A part of a text, as far as it is known yet.
#[derive(Clone, Copy, Debug)]
pub struct RedactionWindow<'a> {
    /// The text, or what is there of it.
    pub bytes: &'a [u8],
    /// Nothing comes behind it.
    pub is_last: bool,
}

/// A secret within a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFinding {
    /// The first byte that had to be seen to know it for a secret: where the words begin that announce it, or `start`.
    pub from: usize,
    /// Where it starts.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// What the mark in its place names. Lower-case letters, digits and `_`.
    pub kind: Arc<str>,
}

/// Finds secrets in text.
pub trait Redactor: Send + Sync + 'static {
    /// Adds the secrets in `window` to `found`, in any order, and returns how many bytes of it are decided: no secret
    /// that begins before that place depends on what comes behind the window. With the last window that is all.
    ///
    /// What is found depends only on the bytes from [`from`](SecretFinding::from) on. So it does not matter how a text was cut
    /// into windows: looking again from the first undecided byte finds what looking at all of it would have found.
    fn find(&self, window: RedactionWindow<'_>, found: &mut Vec<SecretFinding>) -> usize;

    /// The text without its secrets; borrowed when there were none.
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.counted(text, &mut Redactions::default())
    }

    /// The same, and counts what was taken out.
    fn counted<'a>(&self, text: &'a str, counts: &mut Redactions) -> Cow<'a, str> {
        // Nothing shorter is looked for, and many texts are short.
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
        // A secret begins and ends where a character does, so this is never lossy.
        Cow::Owned(
            String::from_utf8(clean)
                .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()),
        )
    }
}

/// Writes the first bytes of a window, up to `decided`, with marks in place of what was found. Secrets that overlap
/// become one mark. `cover` is how far the last mark reaches, in and out: it may reach beyond what is decided.
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

/// Where to stop, so that what was found behind that place is found again from there on: not between the words that
/// announce a secret and the secret.
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
