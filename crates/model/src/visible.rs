//! Text of models and tools as people may read it: a character that shows nothing, or that changes how others are
//! shown, is written out as `\u{…}`. Every face uses these functions for the texts of questions, summaries, reasons and
//! differences, so that a person decides about the text that is really there. Tools use them for outside names and
//! texts that a model reads: content of files, servers and commands.

use std::borrow::Cow;

/// Whether a character shows nothing or changes how others are shown: controls (line breaks and tabs too), marks that
/// turn the direction, joiners, fillers, selectors and tags.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
            | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}'
            | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A text of several lines, for reading: line breaks and tabs stay, and so do the joiners and selectors that an emoji
/// or a word of some scripts is made of.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, CarriageReturns::Shown)
}

/// The same for text that a tool shows to a model: a carriage return in front of a line break counts as part of it.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    written_out(text, CarriageReturns::EndLines)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CarriageReturns {
    Shown,
    EndLines,
}

fn written_out(text: &str, returns: CarriageReturns) -> Cow<'_, str> {
    let hides = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    let mut before = None;
    while let Some(c) = rest.next() {
        if c == '\r' && returns == CarriageReturns::EndLines && rest.peek() == Some(&'\n') {
            continue;
        }
        let joins = match c {
            '\u{200c}' | '\u{200d}'
                if before.is_some_and(is_joining_letter)
                    && rest.peek().is_some_and(|c| is_joining_letter(*c)) =>
            {
                true
            }
            '\u{fe0f}' => before.is_some_and(is_pictograph),
            // A selector or a skin tone may stand between the picture and its joiner.
            '\u{200d}' => {
                before.is_some_and(|c| is_pictograph(c) || c == '\u{fe0f}')
                    && rest.peek().is_some_and(|c| is_pictograph(*c))
            }
            _ => false,
        };
        match hides(c) && !joins {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        // A selector that was written out is no part of a picture any more.
        before = Some(c).filter(|c| joins || *c != '\u{fe0f}');
    }
    Cow::Owned(shown)
}

/// One line of a text that a person decides by: line breaks, tabs and blanks of other widths are written out too, so
/// that nothing in it can pass for a line of the host's own.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    spelled(text, |c| is_hidden(c) || (c.is_whitespace() && c != ' '))
}

fn spelled(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match hides(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Pictures that emoji are joined from, and skin tones. An approximation: a letter taken for a picture only keeps a
/// joiner too many.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Letters of the scripts from Arabic to Sinhala, which spell words with joiners and non-joiners.
fn is_joining_letter(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{dff}') && !is_hidden(c)
}

#[cfg(test)]
mod tests {
    use super::{is_hidden, visible, visible_line, visible_text};

    #[test]
    fn a_text_keeps_its_lines_and_hides_nothing() {
        for (text, expected) in [
            ("plain ü 你好 \n\t", "plain ü 你好 \n\t"),
            ("a\u{1b}[2Kb\rc\u{7f}", "a\\u{1b}[2Kb\\rc\\u{7f}"),
            (
                "x\u{202e}y\u{2066}z\u{200f}",
                "x\\u{202e}y\\u{2066}z\\u{200f}",
            ),
            ("\u{9b}31m\u{2028}", "\\u{9b}31m\\u{2028}"),
            (
                "git\u{200b}push\u{feff}\u{61c}\u{180e}",
                "git\\u{200b}push\\u{feff}\\u{61c}\\u{180e}",
            ),
            ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn a_line_end_of_two_characters_is_one_for_a_model() {
        assert_eq!(visible_text("a\r\nb\r\r\nc\rd"), "a\nb\\r\nc\\rd");
        assert_eq!(
            visible_text("\u{1b}]0;t\u{7}x\0"),
            "\\u{1b}]0;t\\u{7}x\\u{0}"
        );
        assert_eq!(visible("a\r\n"), "a\\r\n");
    }

    #[test]
    fn words_of_scripts_that_join_stay_whole() {
        let words = "می\u{200c}خواهم क्\u{200d}ष";
        assert_eq!(visible(words), words);
        assert_eq!(visible("م\u{200c}x"), "م\\u{200c}x");
        assert_eq!(
            visible_line("می\u{200c}خ"),
            "می\\u{200c}خ",
            "a person decides by it"
        );
    }

    #[test]
    fn an_emoji_stays_whole_where_a_text_is_read_and_a_joiner_elsewhere_shows() {
        let family = "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 👍🏽";
        assert_eq!(visible(family), family);
        assert_eq!(visible("a\u{200d}b"), "a\\u{200d}b");
        assert_eq!(visible("👩\u{200d}x"), "👩\\u{200d}x");
        assert_eq!(visible("a\u{fe0f}"), "a\\u{fe0f}");
        assert_eq!(visible("a\u{fe0f}\u{200d}🔥"), "a\\u{fe0f}\\u{200d}🔥");
        assert_eq!(
            visible_line("👩\u{200d}💻"),
            "👩\\u{200d}💻",
            "a person decides by it"
        );
    }

    #[test]
    fn nothing_hides_in_a_line() {
        for (text, expected) in [
            ("rm -rf build", "rm -rf build"),
            ("a\nb\tc", "a\\nb\\tc"),
            ("a\u{a0}b\u{2028}c\u{3000}", "a\\u{a0}b\\u{2028}c\\u{3000}"),
            (
                "\u{feff}x\u{e0041}\u{2066}y",
                "\\u{feff}x\\u{e0041}\\u{2066}y",
            ),
            ("pay\u{ad}load\u{200f}", "pay\\u{ad}load\\u{200f}"),
            ("naïve 你好 ✓", "naïve 你好 ✓"),
        ] {
            assert_eq!(visible_line(text), expected);
        }
    }

    #[test]
    fn escaping_twice_is_escaping_once_and_leaves_nothing_hidden() {
        for c in (0..=0x10_ffff)
            .filter_map(char::from_u32)
            .filter(|c| is_hidden(*c))
        {
            let text = format!("a{c}b");
            let once = visible_line(&text).into_owned();
            assert!(!once.contains(is_hidden), "{once:?}");
            assert_eq!(visible_line(&once), once);
        }
    }
}
