//! Text for people: one line of bounded length, without control characters.

use std::borrow::Cow;

use crate::analysis::VariableAssignment;

/// The most bytes that are shown of a piece.
const LONGEST: usize = 200;
/// The most bytes of a variable's name or value, and the most variables that are shown. The variables come before the
/// command, and must not push it out of sight.
const LONGEST_VARIABLE: usize = 40;
const MOST_VARIABLES: usize = 4;

/// One line with control characters as escapes, cut with an ellipsis.
///
/// The cut is between words. A text is shortened long before redaction, and redaction does not recognise half a
/// password: a word that does not fit is left out whole.
pub fn shortened(text: &str) -> String {
    shortened_to(LONGEST, text)
}

fn shortened_to(longest: usize, text: &str) -> String {
    let text = text.trim();
    if text.len() <= longest && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let shown = match text.char_indices().nth(longest) {
        None => text,
        Some((end, _)) => &text[..text[..end].rfind(char::is_whitespace).unwrap_or(0)],
    };
    let mut line = String::with_capacity(shown.len() + 4);
    for c in shown.trim_end().chars() {
        if c.is_control() || is_invisible(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    if shown.len() < text.len() {
        line.push_str(if line.is_empty() { "…" } else { " …" });
    }
    line
}

/// Characters that reorder or hide the characters beside them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Variables in shell syntax, with a blank after each.
pub(crate) fn assignments(assignments: &[VariableAssignment]) -> String {
    let mut line = String::new();
    for VariableAssignment { name, value } in assignments.iter().take(MOST_VARIABLES) {
        let value = value
            .as_ref()
            .map(|value| shortened_to(LONGEST_VARIABLE, value));
        line.push_str(&shortened_to(LONGEST_VARIABLE, name));
        line.push('=');
        match value.as_deref() {
            Some("") => {}
            Some(value) => line.push_str(&shell_quoted(value)),
            None => line.push('…'),
        }
        line.push(' ');
    }
    match assignments.len().saturating_sub(MOST_VARIABLES) {
        0 => {}
        more => line.push_str(&format!("(and {more} more variables) ")),
    }
    line
}

/// Words in shell syntax, shortened.
pub(crate) fn command_line(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    shortened(&joined(&words, shell_quoted))
}

/// The shell text that runs a program with these arguments, for programs that are started without a shell.
pub fn command_text(words: &[&str]) -> String {
    // Braces and carets are quoted, too: a shell would expand them, and the program gets them as they are.
    joined(words, |word| {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    })
}

fn joined<'a>(words: &[&'a str], quote: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    let mut line = String::with_capacity(words.iter().map(|word| word.len() + 3).sum());
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            line.push(' ');
        }
        line.push_str(&quote(word));
    }
    line
}

fn shell_quoted(word: &str) -> Cow<'_, str> {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"_-./:=,@%+^{}[]".contains(&byte) || byte >= 0x80
    };
    if !word.is_empty() && word.bytes().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}
