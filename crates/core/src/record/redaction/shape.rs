//! How a secret looks: a few letters that lead it, what stands between them and it, and what it is made of.
//!
//! Not regular expressions, because a stream needs a third answer beside yes and no: that it depends on what comes next.
//! Every shape answers by looking at a bounded number of bytes, and at none before its first.

use super::{
    RedactionWindow,
    runs::{ByteRuns, ENDING},
};

/// No secret by its shape is longer; what is, is taken out up to here.
const LONGEST: usize = 16 << 10;

/// Which bytes something is made of.
pub(super) type ByteClass = fn(u8) -> bool;

/// What a look at one place tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SecretMatch {
    Nothing,
    /// It depends on what comes behind the window.
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

/// Something between the leading letters and the secret.
pub(super) enum SecretPatternStep {
    /// One of these texts.
    Text(&'static [&'static str]),
    /// So many bytes of a class.
    Run {
        of: ByteClass,
        least: usize,
        most: usize,
    },
}

/// What is taken out: the leading letters too, or only what they announce.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RedactedPatternPart {
    All,
    Body,
}

/// What the secret itself is made of.
pub(super) struct SecretBody {
    pub(super) of: ByteClass,
    pub(super) least: usize,
    /// Looked at with the first bytes of the body, at most [`PROOF`] of them: what a placeholder does not have.
    pub(super) proof: fn(&[u8]) -> bool,
    /// What must stand behind it. The body is then at most 256 bytes.
    pub(super) before: Option<u8>,
}

/// How many bytes of a body are looked at to tell it from a placeholder.
pub(super) const PROOF: usize = 48;
/// The longest body that needs something behind it.
const MOST_BEFORE: usize = 256;

/// The shape of one provider's secret.
pub(super) struct SecretPattern {
    pub(super) kind: &'static str,
    /// The letters that lead it; at most [`HEAD`](super::known::HEAD) bytes.
    pub(super) head: &'static str,
    pub(super) steps: &'static [SecretPatternStep],
    pub(super) body: SecretBody,
    pub(super) taken: RedactedPatternPart,
}

impl SecretPattern {
    /// Looks at a place where the head stands.
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

/// How many bytes of a class stand at the beginning, up to `most`.
fn run(bytes: &[u8], of: ByteClass, most: usize) -> usize {
    bytes
        .iter()
        .take(most)
        .take_while(|&&byte| of(byte))
        .count()
}

/// The length of the one of some texts that stands at the beginning.
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

/// A mark of ours, at a place where its first letters stand: the names of kinds may hold the very words that are looked
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

/// A private key in PEM, at a place where its first letters stand: from its first line to its last, or to where
/// something stands that is in no such key. Line numbers, quotes of mail and escaped line ends may stand within.
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
    // The first line is looked for first: most of what only looks like a key has none.
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

/// Whether so many letters of base64 stand side by side.
fn has_line(bytes: &[u8], least: usize) -> bool {
    bytes
        .split(|&byte| !in_base64(byte))
        .any(|letters| letters.len() >= least)
}

fn in_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// No quote is in it: a record is JSON, and a key must not reach beyond the text it stands in.
fn in_key(byte: u8) -> bool {
    in_base64(byte)
        || byte.is_ascii_whitespace()
        || matches!(byte, b'\\' | b':' | b',' | b'-' | b'.' | b'_' | b'>' | b'|')
}
