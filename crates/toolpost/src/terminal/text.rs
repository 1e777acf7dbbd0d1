//! Text of others, made harmless for whoever reads it.

/// Text from tools and files, made harmless for a terminal: escape sequences and direction marks are spelled
/// out, line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    spelled(text, |c| (c.is_control() && c != '\n' && c != '\t') || turns_direction(c))
}

/// One line of text that somebody decides by: whatever does not show itself is spelled out, line breaks and blanks
/// of other widths too, so that nothing can be hidden in it and nothing can look like a line of the host's own.
pub(crate) fn spelled_out(text: &str) -> String {
    spelled(text, |c| {
        c.is_control() || (c.is_whitespace() && c != ' ') || turns_direction(c) || is_invisible(c)
    })
}

/// A time of a record or an answer, to the second.
pub(crate) fn moment(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, _)) => format!("{}Z", spelled_out(seconds)),
        None => spelled_out(text),
    }
}

fn spelled(text: &str, hides: impl Fn(char) -> bool) -> String {
    if !text.contains(&hides) {
        return text.to_owned();
    }
    text.chars().map(|c| if hides(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Embeddings, overrides and isolates: they show text in another order than it runs.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters without a picture of their own: marks, joiners, fillers, selectors and tags.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::{printable, spelled_out};

    #[test]
    fn a_terminal_gets_no_commands() {
        for (text, expected) in [
            ("plain ü 你好 \n\t", "plain ü 你好 \n\t"),
            ("a\u{1b}[2Kb", "a\\u{1b}[2Kb"),
            ("a\rb", "a\\rb"),
            ("x\u{202e}y", "x\\u{202e}y"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn nothing_hides_in_what_is_decided() {
        for (text, expected) in [
            ("rm -rf build", "rm -rf build"),
            ("a\nb\tc", "a\\nb\\tc"),
            ("git\u{200b}push", "git\\u{200b}push"),
            ("a\u{a0}b\u{2028}c\u{3000}", "a\\u{a0}b\\u{2028}c\\u{3000}"),
            ("\u{feff}x\u{e0041}\u{2066}y", "\\u{feff}x\\u{e0041}\\u{2066}y"),
            ("pay\u{ad}load\u{200f}", "pay\\u{ad}load\\u{200f}"),
            ("naïve 你好 ✓", "naïve 你好 ✓"),
        ] {
            assert_eq!(spelled_out(text), expected);
        }
    }
}
