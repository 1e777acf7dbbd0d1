//! Parses a pattern.

use super::glob::WordGlob;
use super::{CommandPattern, CommandPatternError};
use crate::variable;

pub(super) const LONGEST: usize = 4096;
pub(super) const MOST_ALTERNATIVES: usize = 64;

/// A character, and whether it was quoted and is therefore literal.
type PatternChar = (char, bool);

/// Alternatives, and the text after them.
type BraceAlternatives<'a> = (Vec<&'a [PatternChar]>, &'a [PatternChar]);

pub(super) fn pattern(text: &str) -> Result<CommandPattern, CommandPatternError> {
    if text.len() > LONGEST {
        return Err(CommandPatternError::TooLong(text.len()));
    }
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(CommandPatternError::ControlCharacter);
    }
    let mut written = Vec::new();
    let mut assignments = Vec::new();
    let mut words = Vec::new();
    let mut open = false;
    let mut rest = text.trim_matches([' ', '\t']);
    while !rest.is_empty() {
        let (word, raw, after) = next_word(rest)?;
        rest = after.trim_start_matches([' ', '\t']);
        written.push(raw);
        if let Some((name, value)) = assignment(&word).filter(|_| words.is_empty()) {
            assignments.push((name, glob(value, raw)?));
        } else if rest.is_empty() && word == [('*', false)] {
            open = true;
        } else {
            words.push(glob(&word, raw)?);
        }
    }
    if words.is_empty() && !open {
        return Err(CommandPatternError::Empty);
    }
    // A lone star matches any command, and a command has at least one word.
    if words.is_empty() {
        words.push(WordGlob::new(vec![vec![String::new(), String::new()]]));
    }
    Ok(CommandPattern {
        text: written.join(" "),
        assignments,
        words,
        open,
    })
}

/// The first word, as characters and as written, and the rest of the text.
fn next_word(text: &str) -> Result<(Vec<PatternChar>, &str, &str), CommandPatternError> {
    let mut word = Vec::new();
    let mut chars = text.char_indices();
    let unclosed = || CommandPatternError::UnclosedQuote(text.to_owned());
    while let Some((at, c)) = chars.next() {
        match c {
            ' ' | '\t' => return Ok((word, &text[..at], &text[at..])),
            '\\' => word.push((chars.next().ok_or_else(unclosed)?.1, true)),
            quote @ ('\'' | '"') => loop {
                match chars.next().ok_or_else(unclosed)?.1 {
                    c if c == quote => {
                        // Marks that a quote was here, so that `''` is an empty word and not the absence of a word.
                        word.push(('\0', true));
                        break;
                    }
                    '\\' if quote == '"' => word.push((chars.next().ok_or_else(unclosed)?.1, true)),
                    c => word.push((c, true)),
                }
            },
            character @ (';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '$' | '\n') => {
                let word = text.split([' ', '\t']).next().unwrap_or(text).to_owned();
                return Err(CommandPatternError::Operator { word, character });
            }
            c => word.push((c, false)),
        }
    }
    Ok((word, text, ""))
}

fn assignment(word: &[PatternChar]) -> Option<(String, &[PatternChar])> {
    let at = word.iter().position(|char| *char == ('=', false))?;
    let name: String = word[..at].iter().map(|(c, _)| c).collect();
    let unquoted = word[..at].iter().all(|(_, quoted)| !quoted);
    (unquoted && variable::is_name(&name)).then(|| (name, &word[at + 1..]))
}

fn glob(word: &[PatternChar], raw: &str) -> Result<WordGlob, CommandPatternError> {
    let mut alternatives = vec![vec![String::new()]];
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            ('{', false) => match braced(after, raw)? {
                Some((choices, behind)) => {
                    if alternatives.len() * choices.len() > MOST_ALTERNATIVES {
                        return Err(CommandPatternError::TooManyAlternatives(raw.to_owned()));
                    }
                    alternatives = multiplied(&alternatives, &choices);
                    rest = behind;
                }
                None => push(&mut alternatives, &('{', true)),
            },
            char => push(&mut alternatives, char),
        }
    }
    Ok(WordGlob::new(alternatives))
}

/// The alternatives after an opening brace, and the text after the closing one; `None` for a brace without
/// alternatives, such as `{}`.
fn braced<'a>(
    text: &'a [PatternChar],
    raw: &str,
) -> Result<Option<BraceAlternatives<'a>>, CommandPatternError> {
    let close = text.iter().position(|char| *char == ('}', false));
    let open = text.iter().position(|char| *char == ('{', false));
    let comma = text.iter().position(|char| *char == (',', false));
    match (close, comma) {
        (Some(close), Some(comma)) if comma < close => {
            if open.is_some_and(|open| open < close) {
                return Err(CommandPatternError::Alternatives(raw.to_owned()));
            }
            let choices = text[..close].split(|char| *char == (',', false)).collect();
            Ok(Some((choices, &text[close + 1..])))
        }
        (None, Some(_)) => Err(CommandPatternError::Alternatives(raw.to_owned())),
        _ => Ok(None),
    }
}

fn multiplied(alternatives: &[Vec<String>], choices: &[&[PatternChar]]) -> Vec<Vec<String>> {
    let mut product = Vec::with_capacity(alternatives.len() * choices.len());
    for alternative in alternatives {
        for choice in choices {
            let mut longer = vec![alternative.clone()];
            for char in *choice {
                push(&mut longer, char);
            }
            product.append(&mut longer);
        }
    }
    product
}

fn push(alternatives: &mut [Vec<String>], char: &PatternChar) {
    for pieces in alternatives {
        match (char, pieces.last_mut()) {
            (('\0', true), _) => {}
            (('*', false), _) | (_, None) => pieces.push(String::new()),
            ((c, _), Some(last)) => last.push(*c),
        }
    }
}
