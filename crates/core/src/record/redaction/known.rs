//! Secrets that the host knows by value, in the forms in which a value travels, and the search for these and for the
//! shapes in `patterns`.
//!
//! Every form and every shape has a head, its first few bytes. One pass over the text takes three bytes at a time and
//! checks in a bit table whether a head may begin there; only then follows a closer look. The table fits into the L1
//! cache however many secrets there are, and takes microseconds to build, so a call with secrets of its own has its own
//! table. An automaton over all heads was tried: it takes milliseconds to build, and is several times slower with more
//! than a few dozen heads.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    ARGUMENT, MIN_SECRET, RedactionWindow, Redactor, SecretFinding,
    patterns::PATTERNS,
    runs::ByteRuns,
    shape::{self, SecretMatch, SecretPattern},
    torn::{self, DumpedValue},
};

/// The bytes of a head: as many as the shortest value has.
pub(super) const HEAD: usize = MIN_SECRET;
/// The length from which a line of a value counts as a secret by itself: tools that show files put numbers before the
/// lines.
const LINE: usize = 20;
/// The number of bytes that the bit table covers.
const LEAD: usize = 3;

/// Finds the host's own secrets by value, and those of well-known providers by their shape.
pub struct KnownSecrets {
    /// The bit table of the heads' beginnings.
    leads: SecretLeadSet,
    /// The heads, by their first byte.
    by_first: Vec<Vec<SecretLead>>,
    /// The values themselves, for the secrets of a call.
    texts: Vec<String>,
    /// The values themselves, for the search in dumps.
    dumped: Vec<DumpedValue>,
}

/// A bit for each three bytes that begin a head, by their hash.
struct SecretLeadSet(Box<[u64; 1 << 10]>);

impl SecretLeadSet {
    fn of<'a>(heads: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut bits = Box::new([0; 1 << 10]);
        let mut mark = |bytes: [u8; LEAD]| {
            let place = Self::place(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
            bits[place / 64] |= 1 << (place % 64);
        };
        for head in heads {
            match *head {
                [] => {}
                // Any two bytes may follow.
                [first] => (0..=u8::MAX).for_each(|second| {
                    (0..=u8::MAX).for_each(|third| mark([first, second, third]));
                }),
                [first, second] => (0..=u8::MAX).for_each(|third| mark([first, second, third])),
                [first, second, third, ..] => mark([first, second, third]),
            }
        }
        Self(bits)
    }

    /// The bit of the three bytes in the lower part of a number.
    fn place(bytes: u32) -> usize {
        (bytes.wrapping_mul(0x9e37_79b1) >> 16) as usize
    }

    fn may_begin(&self, lead: u32) -> bool {
        let place = Self::place(lead & 0x00ff_ffff);
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    /// The next place from `at` on where a head may begin.
    fn next(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        // Six places with one memory access and one branch, because almost no place begins a head.
        while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_le_bytes(*eight);
            let may_begin = |place: u32| self.may_begin((word >> (8 * place)) as u32);
            if (0..6).fold(false, |any, place| any | may_begin(place)) {
                break;
            }
            at += 6;
        }
        let rest = bytes.get(at..)?;
        let begins = |window: &[u8]| {
            self.may_begin(u32::from_le_bytes([window[0], window[1], window[2], 0]))
        };
        rest.windows(LEAD).position(begins).map(|found| at + found)
    }
}

struct SecretLead {
    head: Box<[u8]>,
    to: SecretLeadTarget,
}

/// The search after a head.
enum SecretLeadTarget {
    Value {
        rest: Box<[u8]>,
        kind: Arc<str>,
    },
    /// Letters that may be broken into lines.
    Broken {
        letters: Arc<[u8]>,
        kind: Arc<str>,
    },
    /// A value whose characters may be written as `\uXXXX`.
    Escaped {
        value: Arc<str>,
        kind: Arc<str>,
    },
    /// Any value in the columns of a dump.
    Dump,
    Pattern {
        pattern: &'static SecretPattern,
        kind: Arc<str>,
    },
    PrivateKey(Arc<str>),
    Mark,
}

impl Default for KnownSecrets {
    fn default() -> Self {
        Self::new([])
    }
}

impl KnownSecrets {
    /// Takes pairs of kind and value, and adds the well-known shapes. Values under eight bytes are left out: they would
    /// match ordinary words. In a kind, all characters except lower-case letters, digits and `_` become `_`.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut leads, dumped) = values(secrets);
        leads.extend(PATTERNS.iter().map(|pattern| SecretLead {
            head: pattern.head.as_bytes().into(),
            to: SecretLeadTarget::Pattern {
                pattern,
                kind: pattern.kind.into(),
            },
        }));
        leads.push(SecretLead {
            head: (*b"-----BEG").into(),
            to: SecretLeadTarget::PrivateKey("private_key".into()),
        });
        Self::of(leads, dumped)
    }

    /// The secrets of one call, by value only.
    pub(crate) fn arguments(secrets: &[String]) -> Self {
        let (leads, dumped) = values(secrets.iter().map(|value| (ARGUMENT, value.as_str())));
        let found = Self::of(leads, dumped);
        Self {
            texts: secrets.to_vec(),
            ..found
        }
    }

    /// The secrets of one call, for its nested calls.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    fn of(mut leads: Vec<SecretLead>, dumped: Vec<DumpedValue>) -> Self {
        leads.push(SecretLead {
            head: (*b"[redacte").into(),
            to: SecretLeadTarget::Mark,
        });
        let dump_heads: Vec<_> = torn::dump_heads().filter(|_| !dumped.is_empty()).collect();
        let heads = leads.iter().map(|lead| &*lead.head);
        let bits = SecretLeadSet::of(heads.chain(dump_heads.iter().map(<[u8; 3]>::as_slice)));
        if !dumped.is_empty() {
            leads.push(SecretLead {
                head: torn::DUMP_HEAD.into(),
                to: SecretLeadTarget::Dump,
            });
        }
        let mut by_first: Vec<Vec<SecretLead>> = Vec::new();
        by_first.resize_with(256, Vec::new);
        for lead in leads {
            if let Some(&first) = lead.head.first() {
                by_first[usize::from(first)].push(lead);
            }
        }
        Self {
            leads: bits,
            by_first,
            texts: Vec::new(),
            dumped,
        }
    }

    fn beginning(&self, rest: &[u8]) -> &[SecretLead] {
        rest.first()
            .map_or(&[], |&first| &self.by_first[usize::from(first)])
    }

    /// Checks one place for everything with a head there. Adds the findings and returns the next place to check, or
    /// `None` if that depends on later bytes.
    fn look(
        &self,
        window: RedactionWindow<'_>,
        at: usize,
        runs: &mut ByteRuns,
        found: &mut Vec<SecretFinding>,
    ) -> Option<usize> {
        let rest = &window.bytes[at..];
        let mut next = at + 1;
        for lead in self.beginning(rest) {
            if !rest.starts_with(&lead.head) {
                // The rest of the head may follow.
                if !window.is_last && lead.head.starts_with(rest) {
                    return None;
                }
                continue;
            }
            let (verdict, kind) = match &lead.to {
                SecretLeadTarget::Value { rest, kind } => {
                    (value(window, at, lead.head.len(), rest), Some(kind))
                }
                SecretLeadTarget::Broken { letters, kind } => {
                    (torn::broken(window, at, letters), Some(kind))
                }
                SecretLeadTarget::Escaped { value, kind } => {
                    (torn::escaped(window, at, value), Some(kind))
                }
                SecretLeadTarget::Dump => {
                    let values = torn::dump(window, at, &self.dumped)?;
                    let finding = |(start, end, kind)| SecretFinding {
                        from: at,
                        start,
                        end,
                        kind,
                    };
                    found.extend(values.into_iter().map(finding));
                    continue;
                }
                SecretLeadTarget::Pattern { pattern, kind } => {
                    (pattern.look(window, at, runs), Some(kind))
                }
                SecretLeadTarget::PrivateKey(kind) => {
                    (shape::private_key(window, at, runs), Some(kind))
                }
                SecretLeadTarget::Mark => (shape::mark(window, at), None),
            };
            match (verdict, kind) {
                (SecretMatch::Undecided, _) => return None,
                (SecretMatch::Secret { start, end }, Some(kind)) => {
                    found.push(SecretFinding {
                        from: at,
                        start,
                        end,
                        kind: Arc::clone(kind),
                    });
                }
                (SecretMatch::Mark { end }, _) => next = next.max(end),
                (SecretMatch::Nothing, _) | (SecretMatch::Secret { .. }, None) => {}
            }
        }
        Some(next)
    }
}

impl KnownSecrets {
    /// The search of [`find`](Redactor::find), with the runs of the window that are known so far.
    pub(super) fn search(
        &self,
        window: RedactionWindow<'_>,
        runs: &mut ByteRuns,
        found: &mut Vec<SecretFinding>,
    ) -> usize {
        let bytes = window.bytes;
        let mut at = 0;
        while let Some(place) = self.leads.next(bytes, at) {
            match self.look(window, place, runs, found) {
                Some(next) => at = next,
                None => return place,
            }
        }
        if window.is_last {
            return bytes.len();
        }
        // A head may begin in the last bytes.
        let tail = at.max(bytes.len().saturating_sub(HEAD - 1));
        // A head that is shorter than the table's three bytes may be there as a whole.
        let begins = |place: &usize| {
            let rest = &bytes[*place..];
            let may_begin = |lead: &SecretLead| {
                lead.head.starts_with(rest) || (rest.len() < LEAD && rest.starts_with(&lead.head))
            };
            self.beginning(rest).iter().any(may_begin)
        };
        (tail..bytes.len()).find(begins).unwrap_or(bytes.len())
    }
}

impl Redactor for KnownSecrets {
    fn find(&self, window: RedactionWindow<'_>, found: &mut Vec<SecretFinding>) -> usize {
        self.search(window, &mut ByteRuns::default(), found)
    }
}

/// Checks for the rest of a value after its head.
fn value(window: RedactionWindow<'_>, at: usize, head: usize, rest: &[u8]) -> SecretMatch {
    let there = &window.bytes[at + head..];
    if there.starts_with(rest) {
        SecretMatch::Secret {
            start: at,
            end: at + head + rest.len(),
        }
    } else if !window.is_last && rest.starts_with(there) {
        SecretMatch::Undecided
    } else {
        SecretMatch::Nothing
    }
}

/// The forms of every value, each split into its head and the rest, and the values themselves.
fn values<'a>(
    secrets: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Vec<SecretLead>, Vec<DumpedValue>) {
    let mut kinds: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
    let mut leads = Vec::new();
    let mut dumped = Vec::new();
    for (kind, whole) in secrets {
        let kind = kind_of(kind);
        let lines = whole
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= LINE && *line != whole);
        for value in std::iter::once(whole)
            .chain(lines)
            .filter(|value| is_secret(value))
        {
            if !kinds.contains_key(value.as_bytes()) {
                leads.extend(torn_leads(value, &kind));
                dumped.push(DumpedValue {
                    bytes: value.as_bytes().into(),
                    kind: Arc::clone(&kind),
                });
            }
            for form in forms(value) {
                // The first kind of a value is kept.
                if kinds.contains_key(&form) || form.len() < HEAD {
                    continue;
                }
                let (head, rest) = form.split_at(HEAD);
                leads.push(SecretLead {
                    head: head.into(),
                    to: SecretLeadTarget::Value {
                        rest: rest.into(),
                        kind: Arc::clone(&kind),
                    },
                });
                kinds.insert(form, Arc::clone(&kind));
            }
        }
    }
    (leads, dumped)
}

/// The heads of forms that break a value into parts.
fn torn_leads(value: &str, kind: &Arc<str>) -> Vec<SecretLead> {
    let bytes = value.as_bytes();
    let [lower, upper] = hexadecimal(bytes);
    let in_base64 = (0..3)
        .map(|before| base64(bytes, before))
        .map(|[standard, _]| standard);
    let mut leads = Vec::new();
    for letters in in_base64.chain([lower, upper]) {
        leads.extend(torn::broken_tails(&letters).map(|tail| SecretLead {
            head: tail[..torn::HEAD_LETTERS].into(),
            to: SecretLeadTarget::Broken {
                letters: tail.into(),
                kind: Arc::clone(kind),
            },
        }));
    }
    let value: Arc<str> = value.into();
    leads.extend(
        torn::escaped_heads(&value)
            .into_iter()
            .map(|head| SecretLead {
                head: head.into(),
                to: SecretLeadTarget::Escaped {
                    value: Arc::clone(&value),
                    kind: Arc::clone(kind),
                },
            }),
    );
    leads
}

/// The frame of a key is no secret, and neither is a mark.
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
    if kind.is_empty() {
        "secret".into()
    } else {
        kind.into()
    }
}

/// A value as it is, and its forms in JSON, base64, a URL and hexadecimal digits.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = vec![bytes.to_vec()];
    // A text that is itself JSON has its quotes escaped twice in a record.
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
    forms.extend(hexadecimal(bytes));
    forms
}

fn hexadecimal(bytes: &[u8]) -> [Vec<u8>; 2] {
    [const_hex::encode(bytes), const_hex::encode_upper(bytes)].map(String::into_bytes)
}

/// The letters of base64 that a value always has with `before` bytes in front of it in its group of three, in both
/// alphabets. Letters that it shares with its neighbours are left out: they differ from text to text.
fn base64(value: &[u8], before: usize) -> [Vec<u8>; 2] {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = (before + value.len()) * 8;
    let bit = |place: usize| (value[place / 8 - before] >> (7 - place % 8)) & 1;
    let letters = (before * 8).div_ceil(6)..bits / 6;
    let standard: Vec<u8> = letters
        .map(|letter| {
            let index =
                (letter * 6..letter * 6 + 6).fold(0, |index, place| (index << 1) | bit(place));
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
            byte if byte.is_ascii_alphanumeric() || keeps.as_bytes().contains(&byte) => {
                encoded.push(byte);
            }
            byte if upper => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            byte => encoded.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    encoded
}
