//! Ids of calls in recorded texts.
//!
//! A call gets a new id each time, and later calls refer to it: to wait for a background call, or to read an artifact.
//! A cassette therefore writes the place of the call in the recording, as `⟦call:3⟧`, and a replay inserts the id of
//! its own call at that place. A second recording of the same session then gives an equal file.

use std::{borrow::Cow, str::FromStr};

use memchr::memmem;
use toolpost_model::InvocationId;

const OPEN: &str = "⟦";
const CLOSE: &str = "⟧";
const WORD: &str = "call:";
/// `⟦call:`, the beginning of a mark. A text that contained it from the start gets one more bracket.
const BEGINNING: &str = "⟦call:";
/// The beginning of an artifact id; the call's id follows in its 32 digits.
const ARTIFACT: &str = "art_";

/// The text with the places of calls instead of their ids.
pub(super) fn marked<'t>(
    text: &'t str,
    place_of: impl Fn(InvocationId) -> Option<usize>,
) -> Cow<'t, str> {
    let text = if text.contains(BEGINNING) {
        Cow::Owned(text.replace(BEGINNING, &format!("{OPEN}{BEGINNING}")))
    } else {
        Cow::Borrowed(text)
    };
    // The version digit follows the second hyphen and is always the same.
    let text = replaced(text, "-7", (13, 36), &place_of);
    replaced(text, ARTIFACT, (0, ARTIFACT.len() + 32), &place_of)
}

/// Replaces ids in a text. An id begins `before` bytes ahead of the searched text and is `length` bytes long.
fn replaced<'t>(
    text: Cow<'t, str>,
    needle: &str,
    (before, length): (usize, usize),
    place_of: &impl Fn(InvocationId) -> Option<usize>,
) -> Cow<'t, str> {
    let mut written = String::new();
    let mut done = 0;
    for found in memmem::find_iter(text.as_bytes(), needle) {
        let Some(start) = found.checked_sub(before).filter(|&start| start >= done) else {
            continue;
        };
        let Some(word) = text.get(start..start + length) else {
            continue;
        };
        let (kept, id) = match word.strip_prefix(ARTIFACT) {
            Some(id) => (ARTIFACT, id),
            None => ("", word),
        };
        let Some(place) = InvocationId::from_str(id).ok().and_then(place_of) else {
            continue;
        };
        written.push_str(&text[done..start]);
        written.push_str(kept);
        written.push_str(&mark(place));
        done = start + length;
    }
    if done == 0 {
        return text;
    }
    written.push_str(&text[done..]);
    Cow::Owned(written)
}

fn mark(place: usize) -> String {
    format!("{BEGINNING}{place}{CLOSE}")
}

/// Whether a text contains a mark, or a text that looks like one.
pub(super) fn has_marks(text: &str) -> bool {
    text.contains(BEGINNING)
}

/// The reverse of [`marked`].
pub(super) fn unmarked(text: &str, id_of: impl Fn(usize) -> InvocationId) -> Cow<'_, str> {
    if !has_marks(text) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find(OPEN) {
        let (before, from) = rest.split_at(found);
        written.push_str(before);
        let after = from.trim_start_matches(OPEN);
        let brackets = (from.len() - after.len()) / OPEN.len();
        let number = after
            .strip_prefix(WORD)
            .and_then(|after| after.split_once(CLOSE));
        let place = number.and_then(|(number, after)| Some((number.parse().ok()?, after)));
        match place {
            Some((place, after)) if brackets == 1 => {
                let id: InvocationId = id_of(place);
                if written.ends_with(ARTIFACT) {
                    written.push_str(&id.to_hex());
                } else {
                    written.push_str(&id.to_string());
                }
                rest = after;
            }
            _ => {
                let extra = usize::from(brackets > 1 && after.starts_with(WORD));
                written.push_str(&OPEN.repeat(brackets - extra));
                rest = after;
            }
        }
    }
    written.push_str(rest);
    Cow::Owned(written)
}

/// A placeholder id for a call that was not made yet.
pub(super) fn stand_in(place: usize) -> InvocationId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(place as u64).to_be_bytes());
    (bytes[6], bytes[8]) = (0x70, 0x80);
    InvocationId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use toolpost_model::InvocationId;

    use super::{marked, stand_in, unmarked};

    fn check(text: &str, expected: &str) {
        let ids: Vec<InvocationId> = (1..4).map(stand_in).collect();
        let place_of = |id| {
            ids.iter()
                .position(|known| *known == id)
                .map(|place| place + 1)
        };
        let text = text
            .replace("ID1", &ids[0].to_string())
            .replace("HEX2", &ids[1].to_hex());
        let written = marked(&text, place_of);
        assert_eq!(written, expected);
        assert_eq!(unmarked(&written, |place| ids[place - 1]), text, "and back");
    }

    #[test]
    fn ids_become_places_and_places_ids() {
        check("nothing", "nothing");
        check("-7 art_ ⟦ ⟧ ⟦x⟧ -7", "-7 art_ ⟦ ⟧ ⟦x⟧ -7");
        check(r#"{"id":"ID1"}"#, r#"{"id":"⟦call:1⟧"}"#);
        check("ID1ID1 art_HEX2_1", "⟦call:1⟧⟦call:1⟧ art_⟦call:2⟧_1");
        check("ö-7é ID1", "ö-7é ⟦call:1⟧");
        check("⟦call:1⟧ and ID1", "⟦⟦call:1⟧ and ⟦call:1⟧");
        check("⟦⟦call:1⟧⟦call:", "⟦⟦⟦call:1⟧⟦⟦call:");
        check(
            "00000000-0000-7000-8000-0000000000ff",
            "00000000-0000-7000-8000-0000000000ff",
        );
    }
}
