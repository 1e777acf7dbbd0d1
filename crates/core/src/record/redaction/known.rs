//! Secrets that the host knows by value, in the forms in which a value travels, and the search for these and for the
//! shapes in `patterns`: one automaton over the first few bytes of each, and a closer look where one of them stands.

use std::{collections::HashMap, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input};
use serde_json::Value;

use super::{
    ARGUMENT, Finding, MIN_SECRET, Redactor, Window,
    patterns::PATTERNS,
    shape::{self, Pattern, Verdict},
};

/// How many bytes of a secret lead to it. As many as the shortest value has.
pub(super) const HEAD: usize = MIN_SECRET;
/// Lines of a value of several lines that are secrets by themselves: what shows files puts numbers before them.
const LINE: usize = 20;
/// More heads than this make the fastest automaton larger than it is worth.
const MANY_HEADS: usize = 600;
/// The kind of a text about which nothing can be said.
const EVERYTHING: &str = "all";

/// Knows the host's own secrets by value, and those of well-known providers by their shape.
pub struct KnownSecrets {
    /// `None` where it could not be built: then nothing may pass.
    heads: Option<AhoCorasick>,
    /// What may stand where a head begins with a byte.
    by_first: Vec<Vec<Lead>>,
}

/// A head, and what it leads to.
struct Lead {
    head: Box<[u8]>,
    to: Wanted,
}

/// What is looked for behind a head.
enum Wanted {
    Value { rest: Box<[u8]>, kind: Arc<str> },
    Pattern { pattern: &'static Pattern, kind: Arc<str> },
    PrivateKey(Arc<str>),
    Mark,
}

impl Default for KnownSecrets {
    fn default() -> Self {
        Self::new([])
    }
}

impl KnownSecrets {
    /// From pairs of kind and value, together with the well-known shapes. Values under eight bytes are left out: they
    /// would blot out ordinary words. In a kind, whatever is not a lower-case letter, a digit or `_` becomes `_`.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut leads = values(secrets);
        leads.extend(PATTERNS.iter().map(|pattern| Lead {
            head: pattern.head.as_bytes().into(),
            to: Wanted::Pattern { pattern, kind: pattern.kind.into() },
        }));
        leads.push(Lead { head: (*b"-----BEG").into(), to: Wanted::PrivateKey("private_key".into()) });
        Self::of(leads)
    }

    /// The secrets of one call, by value only.
    pub(crate) fn arguments(secrets: &[String]) -> Self {
        Self::of(values(secrets.iter().map(|value| (ARGUMENT, value.as_str()))))
    }

    fn of(mut leads: Vec<Lead>) -> Self {
        leads.push(Lead { head: (*b"[redacte").into(), to: Wanted::Mark });
        let mut heads: Vec<&[u8]> = leads.iter().map(|lead| &*lead.head).collect();
        heads.sort_unstable();
        heads.dedup();
        let kind = (heads.len() <= MANY_HEADS).then_some(AhoCorasickKind::DFA);
        let heads = AhoCorasick::builder()
            .kind(kind)
            .match_kind(aho_corasick::MatchKind::LeftmostFirst)
            .build(&heads)
            .ok();
        let mut by_first: Vec<Vec<Lead>> = Vec::new();
        by_first.resize_with(256, Vec::new);
        for lead in leads {
            if let Some(&first) = lead.head.first() {
                by_first[usize::from(first)].push(lead);
            }
        }
        Self { heads, by_first }
    }

    fn leads(&self, rest: &[u8]) -> &[Lead] {
        rest.first().map_or(&[], |&first| &self.by_first[usize::from(first)])
    }

    /// Looks at one place for everything whose head stands there. Adds what is there and returns where to look next, or
    /// nothing where that cannot be said yet.
    fn look(&self, window: Window<'_>, at: usize, found: &mut Vec<Finding>) -> Option<usize> {
        let rest = &window.bytes[at..];
        let mut next = at + 1;
        for lead in self.leads(rest).iter().filter(|lead| rest.starts_with(&lead.head)) {
            let (verdict, kind) = match &lead.to {
                Wanted::Value { rest, kind } => (value(window, at, lead.head.len(), rest), Some(kind)),
                Wanted::Pattern { pattern, kind } => (pattern.look(window, at), Some(kind)),
                Wanted::PrivateKey(kind) => (shape::private_key(window, at), Some(kind)),
                Wanted::Mark => (shape::mark(window, at), None),
            };
            match (verdict, kind) {
                (Verdict::Undecided, _) => return None,
                (Verdict::Secret { start, end }, Some(kind)) => {
                    found.push(Finding { from: at, start, end, kind: Arc::clone(kind) });
                }
                (Verdict::Mark { end }, _) => next = next.max(end),
                (Verdict::Nothing, _) | (Verdict::Secret { .. }, None) => {}
            }
        }
        Some(next)
    }
}

impl Redactor for KnownSecrets {
    fn find(&self, window: Window<'_>, found: &mut Vec<Finding>) -> usize {
        let bytes = window.bytes;
        let Some(heads) = &self.heads else {
            found.push(Finding { from: 0, start: 0, end: bytes.len(), kind: EVERYTHING.into() });
            return bytes.len();
        };
        let mut at = 0;
        while let Some(head) = heads.find(Input::new(bytes).range(at..)) {
            match self.look(window, head.start(), found) {
                Some(next) => at = next,
                None => return head.start(),
            }
        }
        if window.is_last {
            return bytes.len();
        }
        // A head may have begun at the very end.
        let tail = at.max(bytes.len().saturating_sub(HEAD - 1));
        let begins = |place: &usize| {
            let rest = &bytes[*place..];
            self.leads(rest).iter().any(|lead| lead.head.len() > rest.len() && lead.head.starts_with(rest))
        };
        (tail..bytes.len()).find(begins).unwrap_or(bytes.len())
    }
}

/// Looks for the rest of a value behind its head.
fn value(window: Window<'_>, at: usize, head: usize, rest: &[u8]) -> Verdict {
    let there = &window.bytes[at + head..];
    if there.starts_with(rest) {
        Verdict::Secret { start: at, end: at + head + rest.len() }
    } else if !window.is_last && rest.starts_with(there) {
        Verdict::Undecided
    } else {
        Verdict::Nothing
    }
}

/// The forms of every value, each split into its head and the rest.
fn values<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Lead> {
    let mut kinds: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
    let mut leads = Vec::new();
    for (kind, whole) in secrets {
        let kind = kind_of(kind);
        let lines = whole.lines().map(str::trim).filter(|line| line.len() >= LINE && *line != whole);
        for value in std::iter::once(whole).chain(lines).filter(|value| is_secret(value)) {
            for form in forms(value) {
                // The first to name a value names it.
                if kinds.contains_key(&form) || form.len() < HEAD {
                    continue;
                }
                let (head, rest) = form.split_at(HEAD);
                leads.push(Lead {
                    head: head.into(),
                    to: Wanted::Value { rest: rest.into(), kind: Arc::clone(&kind) },
                });
                kinds.insert(form, Arc::clone(&kind));
            }
        }
    }
    leads
}

/// The frame of a key says nothing, and a mark is no secret.
fn is_secret(value: &str) -> bool {
    let is_frame = value.starts_with("-----") && !value.contains('\n');
    value.len() >= MIN_SECRET && !is_frame && !value.contains("[redacted:")
}

fn kind_of(kind: &str) -> Arc<str> {
    const LONGEST: usize = 64;
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '_') => letter,
        _ => '_',
    };
    let kind: String = kind.chars().take(LONGEST).map(plain).collect();
    if kind.is_empty() { "secret".into() } else { kind.into() }
}

/// A value as it is, and as it looks within JSON, base64, a URL and hexadecimal digits.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = vec![bytes.to_vec()];
    // A text that is itself JSON stands in a record with its quotes escaped twice.
    let escaped = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = escaped(value);
    forms.push(escaped(&once).into_bytes());
    forms.push(once.into_bytes());
    for before in 0..3 {
        forms.extend(base64(bytes, before));
    }
    for (upper, keeps, space) in [
        (true, "-._~", "%20"),
        (true, "-._~!'()*", "%20"),
        (true, "-._~*", "+"),
        (true, "-._~!'()*/:@,;=&$?", "%20"),
        (false, "-._~", "%20"),
    ] {
        forms.push(percent_encoded(bytes, upper, keeps, space));
    }
    forms.push(bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
    forms.push(bytes.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()).collect());
    forms
}

/// The letters of base64 that a value has wherever so many bytes stand before it in its group of three, in both
/// alphabets. Letters that it shares with its neighbours are left out: they differ from text to text.
fn base64(value: &[u8], before: usize) -> [Vec<u8>; 2] {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = (before + value.len()) * 8;
    let bit = |place: usize| (value[place / 8 - before] >> (7 - place % 8)) & 1;
    let letters = (before * 8).div_ceil(6)..bits / 6;
    let standard: Vec<u8> = letters
        .map(|letter| {
            let index = (letter * 6..letter * 6 + 6).fold(0, |index, place| (index << 1) | bit(place));
            STANDARD[usize::from(index)]
        })
        .collect();
    let for_urls = standard
        .iter()
        .map(|letter| match letter {
            b'+' => b'-',
            b'/' => b'_',
            other => *other,
        })
        .collect();
    [standard, for_urls]
}

fn percent_encoded(value: &[u8], upper: bool, keeps: &str, space: &str) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b' ' => encoded.extend_from_slice(space.as_bytes()),
            byte if byte.is_ascii_alphanumeric() || keeps.as_bytes().contains(&byte) => encoded.push(byte),
            byte if upper => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            byte => encoded.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    encoded
}
