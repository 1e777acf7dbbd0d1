//! Text of a configuration file, made safe to show: no control characters, no endless lines, no secrets.
//!
//! The file may come from an untrusted workspace, and its lines are printed on a terminal.

use crate::located::FilePosition;

/// The most of a value that a message quotes.
const VALUE_CHARS: usize = 60;
/// The most of a line that a snippet shows.
const LINE_CHARS: usize = 100;

/// A value of the file, for use between backticks in a message.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(VALUE_CHARS).flat_map(printable).collect();
    if text.chars().nth(VALUE_CHARS).is_some() {
        out.push('…');
    }
    out
}

/// The character itself, or its escape if a terminal would act on it.
pub(crate) fn printable(c: char) -> Vec<char> {
    if acts_on_terminals(c) {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}

/// Control characters, and characters that reverse the direction of text.
fn acts_on_terminals(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The line at `at`, and the number of its characters before the caret.
pub(crate) fn source_line(text: &str, at: FilePosition) -> Option<(String, usize)> {
    let index = usize::try_from(at.line).ok()?.checked_sub(1)?;
    let line = text.lines().nth(index)?;
    let line = if holds_secrets(text, index) {
        without_values(line)
    } else {
        line.to_owned()
    };
    let chars: Vec<char> = line
        .chars()
        .map(|c| if acts_on_terminals(c) { ' ' } else { c })
        .collect();
    // The error may be right after the line's last character.
    let caret = usize::try_from(at.column)
        .ok()?
        .saturating_sub(1)
        .min(chars.len());
    let start = if chars.len() > LINE_CHARS {
        caret.saturating_sub(LINE_CHARS / 2)
    } else {
        0
    };
    let window: String = chars[start..].iter().take(LINE_CHARS).collect();
    Some((window.trim_end().to_owned(), caret - start))
}

/// Whether the line may contain a token: pasted in the place of its hash, or under a key of another program.
fn holds_secrets(text: &str, index: usize) -> bool {
    let suspicious = |line: &str| {
        ["token:", "tokens:", "sha256:", "secret:", "mcp:"]
            .iter()
            .any(|key| line.contains(key))
    };
    let own = text.lines().nth(index).is_some_and(suspicious);
    own || section_of(text, index).is_some_and(suspicious) || follows_plain_token(text, index)
}

/// Whether an A2E file's token, or the credentials of `network`, begin on the line or above it. A secret may lie
/// deeper in a section, in quotes, or on several lines; so all lines after its key in the section count, and the next
/// line in any case.
fn follows_plain_token(text: &str, index: usize) -> bool {
    let mut in_section = false;
    let mut before = false;
    for line in text.lines().take(index + 1) {
        let mentioned = line.contains("auth_token") || line.contains("credentials");
        in_section = mentioned || before || (in_section && !starts_section(line));
        before = mentioned;
    }
    in_section
}

/// The top-level line of the section around the line at `index`.
pub(crate) fn section_of(text: &str, index: usize) -> Option<&str> {
    text.lines()
        .take(index + 1)
        .filter(|line| starts_section(line))
        .last()
}

/// Whether the line has a top-level key in block style.
pub(crate) fn starts_section(line: &str) -> bool {
    line.starts_with(|c: char| {
        !c.is_whitespace() && !matches!(c, '#' | '-' | '}' | ']' | '%' | '.')
    })
}

/// Keys with names that are no secret. A word that only looks like a key may be part of a token.
const OPEN_KEYS: [&str; 21] = [
    "tokens",
    "name",
    "role",
    "sha256",
    "token",
    "secret",
    "auth_token",
    "network",
    "private",
    "max_body",
    "credentials",
    "file",
    "env",
    "header",
    "scheme",
    "urls",
    "mcp",
    "servers",
    "command",
    "args",
    "headers",
];

/// The line with everything but keys and punctuation covered, so that the caret keeps its place.
fn without_values(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let word = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if word > 0 {
            let (head, tail) = rest.split_at(word);
            let is_key = tail.starts_with(':') && OPEN_KEYS.contains(&head);
            out.extend(head.chars().map(|c| if is_key { c } else { '*' }));
            rest = tail;
        } else {
            out.push(if next.is_ascii() { next } else { '*' });
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{FilePosition, shown, source_line};

    fn check(text: &str, line: u32, column: u32, expected: (&str, usize)) {
        let found = source_line(text, FilePosition { line, column }).unwrap();
        assert_eq!((found.0.as_str(), found.1), expected);
    }

    #[test]
    fn lines_are_cut_cleaned_and_covered() {
        check("a: b\nmode: x\n", 2, 7, ("mode: x", 6));
        check("a: \u{1b}[31m\n", 1, 4, ("a:  [31m", 3));
        check(
            "tokens:\n  - { name: ci, sha: abc }\n",
            2,
            17,
            ("  - { name: **, ***: *** }", 16),
        );
        check("tokens:\n  - hunter2\nmode: x\n", 2, 5, ("  - *******", 4));
        check("tokens: []\nmode: x\n", 2, 7, ("mode: x", 6));
        check(
            "server:\n  auth_token:\n    abc\nhost_id: x\n",
            3,
            5,
            ("    ***", 4),
        );
        check(
            "network:\n  credentials:\n    x: { value: abc }\n",
            3,
            10,
            ("    *: { *****: *** }", 9),
        );
        check(
            "network:\n  credentials: {}\n\nmode: x\n",
            4,
            7,
            ("mode: x", 6),
        );
        check("auth_token: a\n\nhost_id: x\n", 3, 10, ("host_id: x", 9));
        check(
            "{\"auth_token\":\n\"abc\", \"x\": y}\n",
            2,
            8,
            ("\"***\", \"*\": *}", 7),
        );
        let long = "x".repeat(4000);
        let (line, caret) = source_line(
            &long,
            FilePosition {
                line: 1,
                column: 2000,
            },
        )
        .unwrap();
        assert_eq!((line.len(), caret), (100, 50));
    }

    #[test]
    fn values_are_escaped_and_cut() {
        assert_eq!(shown("a\u{1b}b"), "a\\u{1b}b");
        assert_eq!(shown(&"x".repeat(80)).chars().count(), 61);
    }
}
