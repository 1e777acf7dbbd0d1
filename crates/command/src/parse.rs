//! Calls the parser, with bounds before it.
//!
//! The parser backtracks: every unmatched `(` doubles its time, and nested `case`s are worse. Its recursion is
//! unlimited. The bounds therefore limit the constructs that make it slow or deep, and count them on its own tokens: a
//! long quoted text with many brackets in it costs nothing and stays allowed. The same bounds keep the parser below one
//! MiB of stack, even unoptimised, so that it needs no thread of its own.

mod scan;

use brush_parser::ast::Program;
use brush_parser::{ParserImpl, ParserOptions, Token, parse_tokens, uncached_tokenize_str};

use crate::opaque::OpaqueReason;

/// The longest text that is parsed.
const LONGEST: usize = 64 * 1024;
/// The tokenizer recurses for each open `$(`, `${` and `$[`.
const MOST_EXPANSIONS: usize = 48;
/// Words and operators; each costs the parser about a microsecond.
const MOST_TOKENS: usize = 4096;
const MOST_PARENTHESES: usize = 12;
/// `case` and `coproc`; the parser tries each in two ways, whatever it contains.
const MOST_CASES: usize = 4;
/// Parentheses, braces and words that open a compound command, counted together.
const MOST_OPENERS: usize = 32;

/// Brackets and quotes in a subscript.
const MOST_SUBSCRIPTS: usize = 4;

/// The dialect of `bash -c`: all of bash, with extended patterns off.
pub(crate) const OPTIONS: ParserOptions = ParserOptions {
    enable_extended_globbing: false,
    posix_mode: false,
    sh_mode: false,
    tilde_expansion_at_word_start: true,
    tilde_expansion_after_colon: false,
    parser_impl: ParserImpl::Peg,
};

/// Parses a script. The error says why it exceeds a bound or does not parse.
pub(crate) fn parse(text: &str) -> Result<Program, OpaqueReason> {
    check_text(text)?;
    if scan::expansions(text)? > MOST_EXPANSIONS {
        return Err(OpaqueReason::TooDeep);
    }
    let tokens = uncached_tokenize_str(text, &OPTIONS.tokenizer_options())
        .map_err(|_| OpaqueReason::NotParsed)?;
    if tokens.len() > MOST_TOKENS {
        return Err(OpaqueReason::TooLong);
    }
    check_tokens(&tokens)?;
    parse_tokens(&tokens, &OPTIONS).map_err(|_| OpaqueReason::NotParsed)
}

/// The parser tries every word as `name[subscript]=value`, and names in subscripts as the same again.
fn is_deep_subscript(word: &str) -> bool {
    let name = word
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count();
    let Some(subscript) = word[name..].strip_prefix('[').filter(|_| name > 0) else {
        return false;
    };
    let openers = subscript
        .bytes()
        .filter(|byte| matches!(byte, b'[' | b'(' | b'{' | b'`' | b'"'))
        .count();
    openers > MOST_SUBSCRIPTS
}

/// Whether the word is within the bounds of the word parser, which backtracks, too.
pub(crate) fn may_take_apart(word: &str) -> bool {
    let openers = word
        .bytes()
        .filter(|byte| matches!(byte, b'(' | b'{' | b'`' | b'['))
        .count();
    openers <= MOST_PARENTHESES && !has_huge_number(word, b"~+-", |_| true)
}

fn check_text(text: &str) -> Result<(), OpaqueReason> {
    if text.len() > LONGEST {
        return Err(OpaqueReason::TooLong);
    }
    if text.contains(['\0', '\r']) {
        return Err(OpaqueReason::ControlCharacter);
    }
    // The parser panics on descriptors that do not fit its number type.
    if has_huge_number(text, b"", |next| matches!(next, Some(b'<' | b'>'))) {
        return Err(OpaqueReason::NotParsed);
    }
    Ok(())
}

/// Ten or more digits in a row, after one of `before` (or anything) and followed by a fitting character.
fn has_huge_number(text: &str, before: &[u8], behind: impl Fn(Option<u8>) -> bool) -> bool {
    let bytes = text.as_bytes();
    let mut digits = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if byte.is_ascii_digit() {
            digits += 1;
            continue;
        }
        if digits >= 10 && behind(Some(*byte)) && follows(bytes, at - digits, before) {
            return true;
        }
        digits = 0;
    }
    digits >= 10 && behind(None) && follows(bytes, bytes.len() - digits, before)
}

fn follows(bytes: &[u8], at: usize, before: &[u8]) -> bool {
    before.is_empty()
        || at
            .checked_sub(1)
            .is_some_and(|at| before.contains(&bytes[at]))
}

fn check_tokens(tokens: &[Token]) -> Result<(), OpaqueReason> {
    let mut parentheses = 0;
    let mut cases = 0;
    let mut openers = 0;
    let mut double = false;
    let mut documents = false;
    let mut opened_at = None;
    for token in tokens {
        let mut opens_at = None;
        match token {
            Token::Operator(operator, place) => match operator.as_str() {
                "(" => {
                    parentheses += 1;
                    openers += 1;
                    double |= opened_at == Some(place.start.index);
                    opens_at = Some(place.end.index);
                }
                "<<" | "<<-" => documents = true,
                _ => {}
            },
            Token::Word(word, _) if is_deep_subscript(word) => return Err(OpaqueReason::TooDeep),
            Token::Word(word, _) => match word.as_str() {
                "case" | "coproc" => {
                    cases += 1;
                    openers += 1;
                }
                "{" | "if" | "for" | "while" | "until" | "function" | "!" => openers += 1,
                _ => {}
            },
        }
        opened_at = opens_at;
    }
    if parentheses > MOST_PARENTHESES || cases > MOST_CASES || openers > MOST_OPENERS {
        return Err(OpaqueReason::TooDeep);
    }
    // After double parentheses the parser reads `<<` as a shift where bash may read a here-document.
    if double && documents {
        return Err(OpaqueReason::Ambiguous);
    }
    Ok(())
}
