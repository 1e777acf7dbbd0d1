//! Output as a model should read it: valid text as a terminal would finally show it, without terminal sequences.
//! Invisible characters are written out as in every other text for models ([`visible_text`]).
//!
//! Colours and cursor movements have no meaning for a model and cost tokens. Of a line that a progress bar overwrote
//! many times, the last state is kept. The log keeps the raw bytes; only shown text is cleaned.

use std::borrow::Cow;

use toolpost_model::visible_text;

/// Text that is fit to be shown.
pub struct PrintableText {
    /// The cleaned text.
    pub text: String,
    /// Whether bytes that are not UTF-8 were replaced.
    pub lossy: bool,
}

/// Cleans a piece of output for a model. Pieces should begin and end between lines, so that no sequence is cut.
pub fn clean(bytes: &[u8]) -> PrintableText {
    let mut cleaned = rendered(bytes);
    if let Cow::Owned(text) = visible_text(&cleaned.text) {
        cleaned.text = text;
    }
    cleaned
}

/// The text that a terminal would show, for programs.
pub fn rendered(bytes: &[u8]) -> PrintableText {
    let text = String::from_utf8_lossy(bytes);
    let lossy = matches!(text, Cow::Owned(_));
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return PrintableText {
            text: text.into_owned(),
            lossy,
        };
    }
    let mut screen = TerminalTextBuffer {
        out: String::with_capacity(text.len()),
        line: 0,
        written_over: false,
    };
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                if let Some(kept) = skip_sequence(&mut chars) {
                    screen.put(kept);
                }
            }
            '\r' => screen.written_over = true,
            '\u{8}' => screen.back(),
            '\n' | '\t' => screen.put(c),
            c if c.is_control() => {}
            c => screen.put(c),
        }
    }
    PrintableText {
        text: screen.out,
        lossy,
    }
}

struct TerminalTextBuffer {
    out: String,
    /// The start of the current line.
    line: usize,
    /// The cursor returned to the start of the line, and the next text replaces it.
    written_over: bool,
}

impl TerminalTextBuffer {
    fn put(&mut self, c: char) {
        if c == '\n' {
            self.written_over = false;
        } else if std::mem::take(&mut self.written_over) {
            self.out.truncate(self.line);
        }
        self.out.push(c);
        if c == '\n' {
            self.line = self.out.len();
        }
    }

    fn back(&mut self) {
        if self.out.len() > self.line {
            self.out.pop();
        }
    }
}

/// Skips an escape sequence after its first character. Returns a line end that cut it short.
fn skip_sequence(chars: &mut std::str::Chars<'_>) -> Option<char> {
    match chars.next()? {
        // Control sequences: parameters, then one final character.
        '[' => chars
            .by_ref()
            .find(|&c| !(' '..='?').contains(&c))
            .filter(|&c| c == '\n'),
        // Strings for the terminal, such as a title, up to a bell or to an escape with a backslash.
        ']' | 'P' | 'X' | '^' | '_' => {
            let end = chars
                .by_ref()
                .find(|&c| matches!(c, '\u{7}' | '\n' | '\u{9c}' | '\u{1b}'))?;
            if end == '\u{1b}' && chars.as_str().starts_with('\\') {
                chars.next();
            }
            (end == '\n').then_some(end)
        }
        // Character sets and the like: intermediates, then one final character.
        ' '..='/' => chars
            .by_ref()
            .find(|&c| !(' '..='/').contains(&c))
            .filter(|&c| c == '\n'),
        '\n' => Some('\n'),
        _ => None,
    }
}

/// The length without an incomplete character at the end.
pub fn whole_characters(bytes: &[u8]) -> usize {
    let back = bytes
        .iter()
        .rev()
        .take(3)
        .take_while(|byte| (0x80..0xc0).contains(*byte))
        .count();
    match bytes.len().checked_sub(back + 1).map(|at| bytes[at]) {
        Some(first) if first >= 0xc0 => {
            let needs = if first >= 0xf0 {
                4
            } else if first >= 0xe0 {
                3
            } else {
                2
            };
            if back + 1 < needs {
                bytes.len() - back - 1
            } else {
                bytes.len()
            }
        }
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{clean, whole_characters};

    #[test]
    fn what_a_terminal_would_show_stays() {
        let check =
            |raw: &str, expected: &str| assert_eq!(clean(raw.as_bytes()).text, expected, "{raw:?}");
        check("plain\ttext\n", "plain\ttext\n");
        check("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2K\u{1b}[Kx\n", "red x\n");
        check(
            "\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\\n",
            "alink\n",
        );
        check("\u{1b}]0;never ended\nnext\n", "\nnext\n");
        check("\u{1b}(Bx\u{1b}=y\u{1b}Pq#0\u{1b}\\z", "xyz");
        check("one\r\ntwo\r\n", "one\ntwo\n");
        check(" 10%\r 50%\r100%\ndone\r\n", "100%\ndone\n");
        check("kept\r", "kept");
        check("N\u{8}NA\u{8}A\n\u{8}x", "NA\nx");
        check("a\u{0}b\u{7}c\u{9b}d", "abcd");
        check("größe 文\n", "größe 文\n");
        check(
            "a\u{200b}b\u{202e}c\u{e0041}",
            "a\\u{200b}b\\u{202e}c\\u{e0041}",
        );
        check("\u{1b}", "");
        check("\u{1b}[31", "");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_said() {
        let cleaned = clean(b"a\xff\xfeb\n");
        assert_eq!(
            (cleaned.text.as_str(), cleaned.lossy),
            ("a\u{fffd}\u{fffd}b\n", true)
        );
        assert!(!clean("é".as_bytes()).lossy);
    }

    proptest! {
        #[test]
        fn nothing_but_text_comes_out(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = clean(&bytes).text;
            assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
        }

        #[test]
        fn plain_lines_are_left_alone(text in "[a-zé \t\n]{0,80}") {
            assert_eq!(clean(text.as_bytes()).text, text);
        }
    }

    #[test]
    fn characters_are_never_cut_in_two() {
        let text = "aé文😀".as_bytes();
        for end in 0..=text.len() {
            let whole = whole_characters(&text[..end]);
            assert!(
                std::str::from_utf8(&text[..whole]).is_ok() && end - whole < 4,
                "{end}"
            );
        }
        assert_eq!(whole_characters(b"\x80\x80\x80\x80"), 4);
    }
}
