//! Known values in forms that break them apart: base64 and hexadecimal digits in lines, the columns of a hex dump, and
//! characters written as `\uXXXX`. Each has a literal head like every other form, so text without such a head costs
//! nothing.

use std::sync::Arc;

use super::{RedactionWindow, shape::SecretMatch};

/// The text at a line break between two letters.
const BREAKS: [&[u8]; 4] = [b"\n", b"\r\n", b"\\n", b"\\r\\n"];
const INDENTATION: usize = 16;
/// The number of letters in the head of a text that may be broken.
pub(super) const HEAD_LETTERS: usize = 3;
/// Shorter letter texts are not searched by themselves.
const LEAST_LETTERS: usize = 6;
/// The longest line of a dump, and the largest number of its bytes.
const DUMP_LINE: usize = 128;
const DUMP_BYTES: usize = 32;
/// The number of digits in the offset, by which a dump is recognised.
const OFFSET_DIGITS: std::ops::RangeInclusive<usize> = 7..=16;

pub(super) struct DumpedValue {
    pub(super) bytes: Box<[u8]>,
    pub(super) kind: Arc<str>,
}

/// The result of reading bytes that may be incomplete.
enum TornRead<T> {
    There(T),
    NotThere,
    /// Depends on later bytes.
    Unknown,
}

/// The heads of a text that lines may break: its first letters, and for a break among these the letters after them. A
/// head for every possible place of a break would find those few letters too, at the price of many more heads.
pub(super) fn broken_tails(letters: &[u8]) -> impl Iterator<Item = &[u8]> {
    [0, HEAD_LETTERS]
        .into_iter()
        .filter_map(|from| letters.get(from..))
        .filter(|tail| tail.len() >= LEAST_LETTERS)
}

/// Checks for letters with line breaks between them.
pub(super) fn broken(window: RedactionWindow<'_>, start: usize, letters: &[u8]) -> SecretMatch {
    let mut at = start;
    for (place, letter) in letters.iter().enumerate() {
        if place > 0 {
            match line_break(window, at) {
                TornRead::There(next) => at = next,
                TornRead::NotThere => {}
                TornRead::Unknown => return SecretMatch::Undecided,
            }
        }
        match window.bytes.get(at) {
            Some(there) if there == letter => at += 1,
            None if !window.is_last => return SecretMatch::Undecided,
            Some(_) | None => return SecretMatch::Nothing,
        }
    }
    SecretMatch::Secret { start, end: at }
}

/// The place where the text continues after a line break and the blanks of the next line.
fn line_break(window: RedactionWindow<'_>, at: usize) -> TornRead<usize> {
    let rest = &window.bytes[at..];
    for line_break in BREAKS {
        if rest.starts_with(line_break) {
            let from = at + line_break.len();
            let blanks = window.bytes[from..].iter().take(INDENTATION);
            let blanks = blanks
                .take_while(|byte| matches!(byte, b' ' | b'\t'))
                .count();
            let next = from + blanks;
            return if next == window.bytes.len() && !window.is_last {
                TornRead::Unknown
            } else {
                TornRead::There(next)
            };
        }
        if !window.is_last && line_break.starts_with(rest) {
            return TornRead::Unknown;
        }
    }
    TornRead::NotThere
}

/// The heads of a value whose characters may be escaped: each spelling of its first three bytes.
pub(super) fn escaped_heads(value: &str) -> Vec<Vec<u8>> {
    let mut heads = Vec::new();
    let mut open = vec![Vec::new()];
    for c in value.chars() {
        let unit = c.encode_utf16(&mut [0; 2])[0];
        let mut plain = [0; 4];
        let plain = c.encode_utf8(&mut plain).as_bytes();
        for before in std::mem::take(&mut open) {
            let after = |spelling: &[u8]| [before.as_slice(), spelling].concat();
            match before.is_empty() {
                true => {
                    heads.extend(
                        [format!("\\u{unit:04x}"), format!("\\u{unit:04X}")]
                            .map(String::into_bytes),
                    );
                }
                false => heads.push(after(b"\\u")),
            }
            for spelling in [Some(plain), short_escape(c)]
                .into_iter()
                .flatten()
                .map(after)
            {
                let list = if spelling.len() < 3 {
                    &mut open
                } else {
                    &mut heads
                };
                list.push(spelling);
            }
        }
        if open.is_empty() {
            break;
        }
    }
    heads.sort();
    heads.dedup();
    heads
}

/// JSON's short escape of a character, if there is one.
fn short_escape(c: char) -> Option<&'static [u8]> {
    match c {
        '"' => Some(b"\\\""),
        '\\' => Some(b"\\\\"),
        '/' => Some(b"\\/"),
        '\n' => Some(b"\\n"),
        '\r' => Some(b"\\r"),
        '\t' => Some(b"\\t"),
        _ => None,
    }
}

/// Checks for a value with characters as they are, as JSON escapes them, or as `\uXXXX`.
pub(super) fn escaped(window: RedactionWindow<'_>, start: usize, value: &str) -> SecretMatch {
    let mut at = start;
    for c in value.chars() {
        match character(window, at, c) {
            TornRead::There(next) => at = next,
            TornRead::NotThere => return SecretMatch::Nothing,
            TornRead::Unknown => return SecretMatch::Undecided,
        }
    }
    SecretMatch::Secret { start, end: at }
}

/// The place after a character, in any of its spellings.
fn character(window: RedactionWindow<'_>, at: usize, c: char) -> TornRead<usize> {
    let rest = &window.bytes[at..];
    let mut unknown = false;
    let mut is_there = |spelling: &[u8]| {
        let same = |(there, wanted): (&u8, &u8)| there.eq_ignore_ascii_case(wanted);
        let common = rest.len().min(spelling.len());
        let fits = match spelling.starts_with(b"\\u") {
            true => rest.iter().zip(spelling).all(same),
            false => rest[..common] == spelling[..common],
        };
        unknown |= fits && rest.len() < spelling.len() && !window.is_last;
        fits && rest.len() >= spelling.len()
    };
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    let spelled: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
    if is_there(spelled.as_bytes()) {
        return TornRead::There(at + spelled.len());
    }
    if let Some(short) = short_escape(c).filter(|short| is_there(short)) {
        return TornRead::There(at + short.len());
    }
    // A backslash of the value itself looks like the beginning of an escape, so it comes last.
    let mut plain = [0; 4];
    let plain = c.encode_utf8(&mut plain).as_bytes();
    let is_plain = is_there(plain);
    match (unknown, is_plain) {
        (true, _) => TornRead::Unknown,
        (false, true) => TornRead::There(at + plain.len()),
        (false, false) => TornRead::NotThere,
    }
}

/// The head of a dump: the first digits of its offset. Dumps of more than 16 MiB have other heads in their later part.
pub(super) const DUMP_HEAD: &[u8] = b"00";

/// The same with each possible next digit.
pub(super) fn dump_heads() -> impl Iterator<Item = [u8; 3]> {
    b"0123456789abcdef".iter().map(|&third| [b'0', b'0', third])
}

struct DumpLine {
    /// The bytes in the order of their digits, and the places of the digits.
    bytes: Vec<(u8, usize)>,
    /// Each word of two bytes may be written as a number, its second byte first.
    may_be_swapped: bool,
    /// After the line with its break.
    end: usize,
    /// After its text.
    text_end: usize,
}

/// Checks a line of a dump for values that begin in it and may continue in the next lines. It reads `xxd`, `hexdump`,
/// `hexdump -C`, `od -x` and `od -t x1`: an offset, then bytes or words of two, then perhaps a column of text. The mark
/// reaches to the end of the last line, so that the column of text is removed too.
pub(super) fn dump(
    window: RedactionWindow<'_>,
    at: usize,
    values: &[DumpedValue],
) -> Option<Vec<(usize, usize, Arc<str>)>> {
    let mut found = Vec::new();
    let first = match dump_line(window, at) {
        TornRead::There(line) => line,
        TornRead::NotThere => return Some(found),
        TornRead::Unknown => return None,
    };
    let begin_in = first.bytes.len();
    let may_be_swapped = first.may_be_swapped;
    let (mut lines, mut end, mut bytes) =
        (vec![(begin_in, first.text_end)], first.end, first.bytes);
    loop {
        found.clear();
        let mut goes_on = false;
        for order in &ByteOrder::ALL[..if may_be_swapped { 2 } else { 1 }] {
            for value in values {
                for start in 0..begin_in {
                    let there = (start..start + value.bytes.len())
                        .map_while(|place| order.read(&bytes, place));
                    let same = there
                        .zip(&value.bytes)
                        .take_while(|(there, wanted)| there.0 == **wanted)
                        .count();
                    if same == value.bytes.len() {
                        let line_end = lines
                            .iter()
                            .find(|line| start + same <= line.0)
                            .map_or(end, |line| line.1);
                        found.push((
                            order.first_digit(&bytes, start),
                            line_end,
                            Arc::clone(&value.kind),
                        ));
                    }
                    goes_on |=
                        same < value.bytes.len() && order.read(&bytes, start + same).is_none();
                }
            }
        }
        if !goes_on {
            return Some(found);
        }
        match dump_line(window, end) {
            TornRead::There(line) => {
                bytes.extend(line.bytes);
                lines.push((bytes.len(), line.text_end));
                end = line.end;
            }
            TornRead::NotThere => return Some(found),
            TornRead::Unknown => return None,
        }
    }
}

/// The order of the two bytes of a word.
#[derive(Clone, Copy)]
enum ByteOrder {
    AsWritten,
    Swapped,
}

impl ByteOrder {
    const ALL: [Self; 2] = [Self::AsWritten, Self::Swapped];

    /// A byte as it was in memory, and the place of its digits.
    fn read(self, bytes: &[(u8, usize)], place: usize) -> Option<(u8, usize)> {
        match self {
            Self::AsWritten => bytes.get(place).copied(),
            Self::Swapped => bytes.get(place ^ 1).copied(),
        }
    }

    /// The place of a value's first digits: those of its first byte, or of the word around it.
    fn first_digit(self, bytes: &[(u8, usize)], start: usize) -> usize {
        let word = match self {
            Self::AsWritten => start,
            Self::Swapped => start & !1,
        };
        bytes.get(word).map_or(0, |byte| byte.1)
    }
}

/// One line of a dump that begins at `at`.
fn dump_line(window: RedactionWindow<'_>, at: usize) -> TornRead<DumpLine> {
    let rest = &window.bytes[at..];
    let rest = &rest[..rest.len().min(DUMP_LINE)];
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    // Ids and numbers have such heads too, so most checks end here.
    let offset = rest
        .iter()
        .take(OFFSET_DIGITS.end() + 1)
        .take_while(|byte| is_digit(byte))
        .count();
    if !OFFSET_DIGITS.contains(&offset) {
        let may_grow = offset == rest.len() && offset < *OFFSET_DIGITS.start();
        return if may_grow && !window.is_last {
            TornRead::Unknown
        } else {
            TornRead::NotThere
        };
    }
    let break_at = rest.iter().position(|&byte| byte == b'\n');
    let is_whole = break_at.is_some() || window.is_last;
    let separates = rest
        .get(offset)
        .is_none_or(|byte| matches!(byte, b':' | b' ' | b'\t'));
    if !separates || (break_at.is_none() && rest.len() == DUMP_LINE) {
        return TornRead::NotThere;
    }
    if !is_whole {
        return TornRead::Unknown;
    }
    let line = &rest[..break_at.unwrap_or(rest.len())];
    let has_colon = line.get(offset) == Some(&b':');
    let (mut bytes, mut place, mut words_of_two) =
        (Vec::new(), offset + usize::from(has_colon), true);
    loop {
        let blanks = line[place.min(line.len())..]
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        let begin = place + blanks;
        let digits = line
            .get(begin..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| is_digit(byte))
            .count();
        // Two or more blanks lead to the middle of a line, or to its text, whose letters may be digits too.
        let stops = line
            .get(begin + digits)
            .is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let is_column = if has_colon { blanks == 1 } else { blanks > 0 };
        if !is_column
            || !matches!(digits, 2 | 4 | 8)
            || !stops
            || bytes.len() + digits / 2 > DUMP_BYTES
        {
            break;
        }
        words_of_two &= digits == 4 || bytes.is_empty();
        for pair in 0..digits / 2 {
            let digit = |place: usize| char::from(line[place]).to_digit(16).unwrap_or(0) as u8;
            let from = begin + 2 * pair;
            bytes.push((digit(from) << 4 | digit(from + 1), at + from));
        }
        place = begin + digits;
    }
    if bytes.is_empty() {
        return TornRead::NotThere;
    }
    let text_end = at + line.len();
    let end = text_end + usize::from(break_at.is_some());
    TornRead::There(DumpLine {
        bytes,
        may_be_swapped: words_of_two && !has_colon,
        end,
        text_end,
    })
}
