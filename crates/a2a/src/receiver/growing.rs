//! Arguments that arrive as pieces of text.

use serde_json::value::RawValue;

use super::object::string;
use crate::JsonText;

/// The text so far, and the value once it is whole. Each byte is looked at once when it arrives and once more when the
/// value closes, however many pieces there are.
#[derive(Debug, Default)]
pub(super) struct ArgumentTextBuffer {
    text: String,
    state: ArgumentTextState,
    value: Option<JsonText>,
    /// The first half of a surrogate pair that was cut between two pieces.
    half: Option<u16>,
    /// Nothing is taken any more, so that what is kept does not depend on where pieces were cut.
    full: bool,
}

/// How far the text is from being an object or a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ArgumentTextState {
    /// Only space so far.
    #[default]
    Before,
    Inside {
        depth: usize,
        quoted: bool,
        escaped: bool,
    },
    /// The value stands; only space may follow.
    After,
    /// It will never be one.
    Never,
}

impl ArgumentTextBuffer {
    /// Text that is never looked into.
    pub(super) fn plain() -> Self {
        Self {
            state: ArgumentTextState::Never,
            ..Self::default()
        }
    }

    /// From now on the text is not looked into.
    pub(super) fn make_plain(&mut self) {
        self.state = ArgumentTextState::Never;
        self.value = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.text.len() + self.value.as_ref().map_or(0, |value| value.as_str().len())
    }

    /// What there is to show: the value if the text is one, else the text.
    pub(super) fn shown(&self) -> JsonText {
        self.value
            .clone()
            .unwrap_or_else(|| JsonText::string(&self.text))
    }

    /// The value, if the text is one.
    pub(super) fn whole(&self) -> Option<&JsonText> {
        self.value.as_ref()
    }

    /// Takes a piece, a JSON string, up to so many bytes in all. Says whether anything was taken.
    pub(super) fn push(&mut self, piece: &RawValue, most: usize) -> bool {
        match string(piece) {
            Some(text) if self.half.is_none() => self.push_text(&text, most),
            Some(_) | None => {
                let text = self.joined(piece.get());
                self.push_text(&text, most)
            }
        }
    }

    fn push_text(&mut self, text: &str, most: usize) -> bool {
        if self.full || text.is_empty() {
            return false;
        }
        let room = most.saturating_sub(self.text.len());
        let kept = &text[..text.floor_char_boundary(room)];
        self.text.push_str(kept);
        self.look_at(kept);
        if kept.len() < text.len() {
            self.full = true;
            self.make_plain();
        }
        true
    }

    fn look_at(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.state = match self.state {
                ArgumentTextState::Never => return,
                ArgumentTextState::Before if is_space(byte) => ArgumentTextState::Before,
                ArgumentTextState::Before if matches!(byte, b'{' | b'[') => {
                    ArgumentTextState::Inside {
                        depth: 1,
                        quoted: false,
                        escaped: false,
                    }
                }
                ArgumentTextState::After if is_space(byte) => ArgumentTextState::After,
                ArgumentTextState::Before | ArgumentTextState::After => {
                    self.value = None;
                    ArgumentTextState::Never
                }
                ArgumentTextState::Inside {
                    depth,
                    quoted: true,
                    escaped,
                } => {
                    let quoted = escaped || byte != b'"';
                    ArgumentTextState::Inside {
                        depth,
                        quoted,
                        escaped: !escaped && byte == b'\\',
                    }
                }
                ArgumentTextState::Inside {
                    depth: 1,
                    quoted: false,
                    ..
                } if matches!(byte, b'}' | b']') => ArgumentTextState::After,
                ArgumentTextState::Inside {
                    depth,
                    quoted: false,
                    escaped,
                } => {
                    let depth = match byte {
                        b'{' | b'[' => depth + 1,
                        b'}' | b']' => depth - 1,
                        _ => depth,
                    };
                    ArgumentTextState::Inside {
                        depth,
                        quoted: byte == b'"',
                        escaped,
                    }
                }
            };
        }
        if self.state == ArgumentTextState::After && self.value.is_none() {
            self.value = JsonText::parsed(&self.text);
            if self.value.is_none() {
                self.state = ArgumentTextState::Never;
            }
        }
    }

    /// A piece that begins or ends within a surrogate pair, joined with what the last one left.
    fn joined(&mut self, json: &str) -> String {
        let mut units = Vec::from_iter(self.half.take());
        units_of(json, &mut units);
        if let Some(&last) = units.last()
            && (0xD800..0xDC00).contains(&last)
        {
            self.half = units.pop();
        }
        String::from_utf16_lossy(&units)
    }
}

/// The UTF-16 units of a JSON string that is known to be well formed.
fn units_of(json: &str, units: &mut Vec<u16>) {
    let inner = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default();
    let mut chars = inner.chars();
    let mut buffer = [0; 2];
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut buffer));
            continue;
        }
        let unit = match chars.next() {
            Some('u') => {
                let digits = chars.as_str().get(..4).unwrap_or_default();
                let unit = u16::from_str_radix(digits, 16).unwrap_or(0xFFFD);
                chars = chars.as_str().get(4..).unwrap_or_default().chars();
                unit
            }
            Some('b') => 8,
            Some('t') => 9,
            Some('n') => 10,
            Some('f') => 12,
            Some('r') => 13,
            // A quote, a slash or a backslash stands for itself.
            Some(other) => other as u32 as u16,
            None => return,
        };
        units.push(unit);
    }
}

/// What JSON calls space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
