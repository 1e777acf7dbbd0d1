//! Arguments that arrive as pieces of text.

use serde_json::value::RawValue;

use super::object::string;
use crate::JsonText;

/// The text so far, and its value once it is complete. Each byte is read once on arrival and once more when the value
/// closes, regardless of the number of pieces.
#[derive(Debug, Default)]
pub(super) struct ArgumentTextBuffer {
    text: String,
    state: ArgumentTextState,
    value: Option<JsonText>,
    /// The first half of a surrogate pair that was split between two pieces.
    half: Option<u16>,
    /// Set when a piece did not fit; every later piece is dropped too. Otherwise a short late piece could still fit,
    /// and the kept text would depend on how the peer cut the pieces.
    full: bool,
}

/// The progress of the text towards an object or a list.
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
    /// The value is complete; only space may follow.
    After,
    /// The text is not a JSON object or list.
    Never,
}

impl ArgumentTextBuffer {
    /// A buffer for text that is not parsed.
    pub(super) fn plain() -> Self {
        Self {
            state: ArgumentTextState::Never,
            ..Self::default()
        }
    }

    /// Stops parsing and keeps the text as text.
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

    /// The value if the text is one, otherwise the text.
    pub(super) fn shown(&self) -> JsonText {
        self.value
            .clone()
            .unwrap_or_else(|| JsonText::string(&self.text))
    }

    /// The value, if the text is one.
    pub(super) fn whole(&self) -> Option<&JsonText> {
        self.value.as_ref()
    }

    /// Takes in a piece (a JSON string), up to `most` bytes in all. Returns whether anything was taken in.
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

    /// Decodes a piece that begins or ends within a surrogate pair, joined with the half that the last piece left.
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

/// The UTF-16 units of a well-formed JSON string.
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

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
