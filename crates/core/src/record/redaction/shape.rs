//! The shape of a secret: its leading letters, the text between them and the secret, and the bytes of the secret.
//!
//! These are not regular expressions, because a stream needs a third answer beside yes and no: that it depends on the
//! following bytes. Every shape answers from a bounded number of bytes, and never looks at bytes before its first.

use super::{
    RedactionWindow,
    runs::{ByteRuns, ENDING},
};

/// The longest secret of a shape; a longer one is removed up to here.
const LONGEST: usize = 16 << 10;

pub(super) type ByteClass = fn(u8) -> bool;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SecretMatch {
    Nothing,
    /// It depends on bytes after the window.
    Undecided,
    /// There is a secret.
    Secret {
        start: usize,
        end: usize,
    },
    /// There is a mark, which stays as it is.
    Mark {
        end: usize,
    },
}

/// A part between the leading letters and the secret.
pub(super) enum SecretPatternStep {
    /// One of these texts.
    Text(&'static [&'static str]),
    /// A number of bytes of a class.
    Run {
        of: ByteClass,
        least: usize,
        most: usize,
    },
}

/// The part to remove: all with the leading letters, or only the secret that they announce.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RedactedPatternPart {
    All,
    Body,
}

/// The bytes of the secret itself.
pub(super) struct SecretBody {
    pub(super) of: ByteClass,
    pub(super) least: usize,
    /// A test on the first bytes of the body, at most [`PROOF`] of them, which a placeholder fails.
    pub(super) proof: fn(&[u8]) -> bool,
    /// The byte that must follow. The body then has at most 256 bytes.
    pub(super) before: Option<u8>,
}

/// The number of bytes for the test against placeholders.
pub(super) const PROOF: usize = 48;
/// The longest body that needs a following byte.
const MOST_BEFORE: usize = 256;

pub(super) struct SecretPattern {
    pub(super) kind: &'static str,
    /// The leading letters; at most [`HEAD`](super::known::HEAD) bytes.
    pub(super) head: &'static str,
    pub(super) steps: &'static [SecretPatternStep],
    pub(super) body: SecretBody,
    pub(super) taken: RedactedPatternPart,
}

impl SecretPattern {
    /// Checks a place with the head.
    pub(super) fn look(
        &self,
        window: RedactionWindow<'_>,
        at: usize,
        runs: &mut ByteRuns,
    ) -> SecretMatch {
        let mut place = at + self.head.len();
        for step in self.steps {
            let rest = &window.bytes[place..];
            place += match step {
                SecretPatternStep::Text(options) => match text(rest, options, window.is_last) {
                    Ok(length) => length,
                    Err(verdict) => return verdict,
                },
                SecretPatternStep::Run { of, least, most } => {
                    let length = runs.run(window.bytes, place, *of, most + 1);
                    if length > *most {
                        return SecretMatch::Nothing;
                    }
                    if length == rest.len() && !window.is_last {
                        return SecretMatch::Undecided;
                    }
                    if length < *least {
                        return SecretMatch::Nothing;
                    }
                    length
                }
            };
        }
        let start = match self.taken {
            RedactedPatternPart::All => at,
            RedactedPatternPart::Body => place,
        };
        match self.body.length(window, place, runs) {
            Ok(length) => SecretMatch::Secret {
                start,
                end: place + length,
            },
            Err(verdict) => verdict,
        }
    }
}

impl SecretBody {
    fn length(
        &self,
        window: RedactionWindow<'_>,
        at: usize,
        runs: &mut ByteRuns,
    ) -> Result<usize, SecretMatch> {
        let rest = &window.bytes[at..];
        let is_last = window.is_last;
        let most = if self.before.is_some() {
            MOST_BEFORE
        } else {
            LONGEST
        };
        let length = runs.run(window.bytes, at, self.of, most);
        if length == rest.len() && length < most && !is_last {
            return Err(SecretMatch::Undecided);
        }
        if length < self.least || !(self.proof)(&rest[..length.min(PROOF)]) {
            return Err(SecretMatch::Nothing);
        }
        match self.before {
            None => Ok(length),
            Some(byte) => match rest.get(length) {
                Some(next) if *next == byte => Ok(length),
                None if !is_last => Err(SecretMatch::Undecided),
                Some(_) | None => Err(SecretMatch::Nothing),
            },
        }
    }
}

/// The number of bytes of a class at the beginning, up to `most`.
fn run(bytes: &[u8], of: ByteClass, most: usize) -> usize {
    bytes
        .iter()
        .take(most)
        .take_while(|&&byte| of(byte))
        .count()
}

/// The length of the option that stands at the beginning.
fn text(rest: &[u8], options: &[&str], is_last: bool) -> Result<usize, SecretMatch> {
    if let Some(option) = options
        .iter()
        .find(|option| rest.starts_with(option.as_bytes()))
    {
        return Ok(option.len());
    }
    let may_come = !is_last
        && options
            .iter()
            .any(|option| option.as_bytes().starts_with(rest));
    Err(if may_come {
        SecretMatch::Undecided
    } else {
        SecretMatch::Nothing
    })
}

/// A redaction mark, at a place with its first letters: the names of kinds may contain the very words that are searched
/// for.
pub(super) fn mark(window: RedactionWindow<'_>, at: usize) -> SecretMatch {
    const OPENING: &[&str] = &["[redacted:"];
    const LONGEST_KIND: usize = 64;
    let rest = &window.bytes[at..];
    let opening = match text(rest, OPENING, window.is_last) {
        Ok(length) => length,
        Err(verdict) => return verdict,
    };
    let is_kind = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let length = run(&rest[opening..], is_kind, LONGEST_KIND + 1);
    match rest.get(opening + length) {
        _ if length > LONGEST_KIND => SecretMatch::Nothing,
        Some(b']') if length > 0 => SecretMatch::Mark {
            end: at + opening + length + 1,
        },
        None if !window.is_last => SecretMatch::Undecided,
        Some(_) | None => SecretMatch::Nothing,
    }
}

/// A private key in PEM, at a place with its first letters: from its first line to its last, or to the first byte that
/// is in no such key. It may contain line numbers, quotes of mail and escaped line ends.
pub(super) fn private_key(
    window: RedactionWindow<'_>,
    at: usize,
    runs: &mut ByteRuns,
) -> SecretMatch {
    /// Headers of an encrypted key may come before its first line.
    const FIRST_LINE_WITHIN: usize = 512;
    const LINE: usize = 24;
    const LONGEST_KEY: usize = 64 << 10;
    let undecided = if window.is_last {
        SecretMatch::Nothing
    } else {
        SecretMatch::Undecided
    };
    let rest = &window.bytes[at..];
    let title = match text(rest, &["-----BEGIN "], window.is_last) {
        Ok(length) => length,
        Err(verdict) => return verdict,
    };
    let words = run(
        &rest[title..],
        |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ',
        41,
    );
    let name = &rest[title..title + words];
    let opened = match text(&rest[title + words..], &["-----"], window.is_last) {
        Ok(length) => title + words + length,
        Err(verdict) => return verdict,
    };
    if words > 40 || !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK")) {
        return SecretMatch::Nothing;
    }
    let body = &rest[opened..];
    let begin = at + opened;
    // The first line is checked first: most texts that only look like a key have none.
    let near = runs.run(window.bytes, begin, in_key, FIRST_LINE_WITHIN);
    if !has_line(&body[..near], LINE) {
        let is_whole = near < body.len() || window.is_last;
        return if is_whole || near >= FIRST_LINE_WITHIN {
            SecretMatch::Nothing
        } else {
            undecided
        };
    }
    let length = runs.run(window.bytes, begin, in_key, LONGEST_KEY);
    let is_whole = length < body.len() || length == LONGEST_KEY || window.is_last;
    let start = at;
    if let Some(ending) = runs.ending(window.bytes, begin, begin + length) {
        let words_at = ending - begin + ENDING.len();
        let behind = &body[words_at..length];
        let words = run(
            behind,
            |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ',
            41,
        );
        match text(&behind[words..], &["-----"], window.is_last || is_whole) {
            Ok(dashes) => {
                return SecretMatch::Secret {
                    start,
                    end: begin + words_at + words + dashes,
                };
            }
            Err(SecretMatch::Undecided) => return SecretMatch::Undecided,
            Err(_) => {}
        }
    }
    if is_whole {
        SecretMatch::Secret {
            start,
            end: at + opened + length,
        }
    } else {
        SecretMatch::Undecided
    }
}

/// Whether at least `least` letters of base64 stand side by side.
fn has_line(bytes: &[u8], least: usize) -> bool {
    bytes
        .split(|&byte| !in_base64(byte))
        .any(|letters| letters.len() >= least)
}

fn in_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// A quote is excluded: a record is JSON, and a key must not reach beyond its text.
fn in_key(byte: u8) -> bool {
    in_base64(byte)
        || byte.is_ascii_whitespace()
        || matches!(byte, b'\\' | b':' | b',' | b'-' | b'.' | b'_' | b'>' | b'|')
}
