//! Text for people: one line, nothing that moves a terminal's cursor, nothing endless.

/// The longest text that is kept of a piece.
const LONGEST: usize = 200;

/// One line with control characters shown as escapes, cut with an ellipsis.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.len() <= LONGEST && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len().min(LONGEST));
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
            line.push('…');
            break;
        }
        if c.is_control() || is_invisible(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Characters that reorder or hide what stands beside them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Words as one would type them, shortened.
pub(crate) fn command_line(words: &[String]) -> String {
    let mut line = String::with_capacity(words.iter().map(|word| word.len() + 1).sum());
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&shell_quoted(word));
    }
    shortened(&line)
}

fn shell_quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,@%+^{}[]".contains(&byte) || byte >= 0x80;
    if !word.is_empty() && word.bytes().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}
