//! Compares calls by a fingerprint of name and arguments. The fingerprint ignores the order of members, space, and
//! whether a peer writes `2` or `2.0`. It is needed when an id comes again after its call has ended, and to remember
//! calls that were taken out.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The fingerprint of a call. Equal fingerprints mark a repetition.
pub(super) fn fingerprint(name: Option<&str>, arguments: &str) -> u64 {
    mixed(name.map_or(0, |name| hashed(NAME, name)), value(arguments))
}

/// The hash of a token. `kind` keeps tokens of different kinds apart.
fn hashed(kind: u64, what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    what.hash(&mut hasher);
    hasher.finish()
}

/// Combines two fingerprints; the order matters.
fn mixed(one: u64, other: u64) -> u64 {
    let mixed = (one.rotate_left(23) ^ other).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

const NAME: u64 = 1;
const TEXT: u64 = 2;
const WORD: u64 = 3;
const FLOAT: u64 = 4;
const LIST: u64 = 5;
const OBJECT: u64 = 6;

enum FingerprintFrame {
    List { so_far: u64 },
    Object { sum: u64, key: Option<u64> },
}

/// The fingerprint of a well-formed JSON text. The stack is explicit, because a peer chooses the nesting.
fn value(text: &str) -> u64 {
    let mut stack = Vec::new();
    let mut rest = text;
    let mut whole = 0;
    while let Some(first) = rest.bytes().next() {
        let hash = match first {
            b'{' => {
                stack.push(FingerprintFrame::Object { sum: 0, key: None });
                rest = &rest[1..];
                continue;
            }
            b'[' => {
                stack.push(FingerprintFrame::List { so_far: 0 });
                rest = &rest[1..];
                continue;
            }
            b'}' | b']' => {
                rest = &rest[1..];
                match stack.pop() {
                    Some(FingerprintFrame::List { so_far }) => mixed(LIST, so_far),
                    Some(FingerprintFrame::Object { sum, .. }) => mixed(OBJECT, sum),
                    None => 0,
                }
            }
            b'"' => {
                let (token, after) = rest.split_at(end_of_string(rest));
                rest = after;
                string(token)
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                rest = &rest[1..];
                continue;
            }
            _ => {
                let end = rest
                    .find([',', '}', ']', ' ', '\t', '\n', '\r'])
                    .unwrap_or(rest.len());
                let (token, after) = rest.split_at(end);
                rest = after;
                word(token)
            }
        };
        match stack.last_mut() {
            None => whole = hash,
            Some(FingerprintFrame::List { so_far }) => *so_far = mixed(*so_far, hash),
            Some(FingerprintFrame::Object { sum, key }) => match key.take() {
                None => *key = Some(hash),
                Some(key) => *sum = sum.wrapping_add(mixed(key, hash)),
            },
        }
    }
    whole
}

/// The end of the string at the beginning of the text.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn string(token: &str) -> u64 {
    if token.contains('\\')
        && let Ok(decoded) = serde_json::from_str::<String>(token)
    {
        return hashed(TEXT, decoded.as_str());
    }
    hashed(TEXT, token.trim_matches('"'))
}

fn word(token: &str) -> u64 {
    /// Up to this number every whole float stands for one integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(integer) = token.parse::<i128>() {
        return hashed(WORD, integer);
    }
    match token.parse::<f64>() {
        Ok(float) if float.fract() == 0.0 && float.abs() <= EXACT => hashed(WORD, float as i128),
        Ok(float) if float.is_finite() => hashed(FLOAT, float.to_bits()),
        Ok(_) | Err(_) => hashed(FLOAT, token),
    }
}
