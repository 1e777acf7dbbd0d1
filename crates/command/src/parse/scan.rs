//! Scans a text before the tokenizer gets it.
//!
//! The tokenizer recurses for each open expansion, so this counts expansions. The tokenizer never returns from some
//! here-documents with an expansion in their delimiter or line, and ends others in another place than bash. It
//! therefore gets only here-documents in plain surroundings: plain words and quotes before them, a plain delimiter, and
//! the delimiter on a line of its own.

use crate::opaque::OpaqueReason;
use crate::word;

/// The most expansions that the tokenizer can find, or an error if the text is not safe for it.
pub(super) fn expansions(text: &str) -> Result<usize, OpaqueReason> {
    let mut scanner = ScriptScanner {
        rest: text,
        pending: Vec::new(),
        expansions: 0,
    };
    let mut starts_word = true;
    while let Some(c) = scanner.rest.chars().next() {
        let here = scanner.rest;
        if here.starts_with("<<") {
            scanner.angles()?;
            starts_word = true;
            continue;
        }
        scanner.rest = &here[c.len_utf8()..];
        match c {
            '\n' => scanner.bodies()?,
            '#' if starts_word => {
                scanner.rest = scanner.rest.find('\n').map_or("", |at| &scanner.rest[at..]);
            }
            '\'' | '"' | '\\' | '$' | '`' => match scanner.passed(here, c) {
                Some(rest) => scanner.pass(here, rest)?,
                None => return scanner.odd(here),
            },
            '(' if scanner.rest.starts_with('(') => return scanner.odd(here),
            _ => {}
        }
        starts_word = matches!(
            c,
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
        );
    }
    if scanner.pending.is_empty() {
        Ok(scanner.expansions)
    } else {
        Err(OpaqueReason::NotParsed)
    }
}

struct ScriptScanner<'a> {
    rest: &'a str,
    /// Here-documents that begin on the next line.
    pending: Vec<HeredocDelimiter<'a>>,
    expansions: usize,
}

struct HeredocDelimiter<'a> {
    name: &'a str,
    strips_tabs: bool,
}

impl<'a> ScriptScanner<'a> {
    /// The text behind a quoted or expanded part, if bash and the tokenizer are sure to agree on its end.
    fn passed(&self, here: &'a str, first: char) -> Option<&'a str> {
        match first {
            '\'' => here[1..].split_once('\'').map(|(_, rest)| rest),
            '\\' => {
                let escaped = here[1..]
                    .chars()
                    .next()
                    .filter(|c| !matches!(c, '$' | '\n'))?;
                Some(&here[1 + escaped.len_utf8()..])
            }
            _ => word::pass(here),
        }
    }

    fn pass(&mut self, here: &'a str, rest: &'a str) -> Result<(), OpaqueReason> {
        let part = &here[..here.len() - rest.len()];
        self.expansions += if part.starts_with('\'') {
            0
        } else {
            count(part)
        };
        self.rest = rest;
        // Between a delimiter and its body, the tokenizer misreads expansions, and a newline in quotes could begin the
        // body.
        let plain =
            !part.contains(['$', '`', '\n']) || part.starts_with('\'') && !part.contains('\n');
        if self.pending.is_empty() || plain {
            Ok(())
        } else {
            Err(OpaqueReason::Ambiguous)
        }
    }

    /// From here on the tokenizer may be at another position of the text than this scanner. The rest may contain
    /// anything except here-documents, and except joined lines in quotes, which one reader joins and the other does
    /// not.
    fn odd(&self, from: &str) -> Result<usize, OpaqueReason> {
        let has_document = from.split("<<<").any(|part| part.contains("<<"));
        let has_joined = from.contains("\\\n") && (from.contains("$'") || from.contains("$\\\n"));
        if !self.pending.is_empty() || has_document || has_joined {
            return Err(OpaqueReason::Ambiguous);
        }
        Ok(self.expansions + count(from))
    }

    /// A here-string or a here-document.
    fn angles(&mut self) -> Result<(), OpaqueReason> {
        if let Some(rest) = self.rest.strip_prefix("<<<") {
            self.rest = rest;
            return Ok(());
        }
        self.delimiter()
    }

    fn delimiter(&mut self) -> Result<(), OpaqueReason> {
        let rest = &self.rest[2..];
        let strips_tabs = rest.starts_with('-');
        let rest = rest
            .strip_prefix('-')
            .unwrap_or(rest)
            .trim_start_matches([' ', '\t']);
        let opening = rest
            .chars()
            .next()
            .filter(|c| matches!(c, '\'' | '"' | '\\'));
        let rest = if opening.is_some() { &rest[1..] } else { rest };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let rest = match opening {
            Some(quote @ ('\'' | '"')) => {
                rest.strip_prefix(quote).ok_or(OpaqueReason::Ambiguous)?
            }
            _ => rest,
        };
        if name.is_empty() || !rest.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '>', '<']) {
            return Err(OpaqueReason::Ambiguous);
        }
        self.rest = rest;
        self.pending.push(HeredocDelimiter { name, strips_tabs });
        Ok(())
    }

    /// Skips the bodies of the here-documents that the line announced.
    fn bodies(&mut self) -> Result<(), OpaqueReason> {
        for delimiter in std::mem::take(&mut self.pending) {
            loop {
                if self.rest.is_empty() {
                    return Err(OpaqueReason::NotParsed);
                }
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let line = if delimiter.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == delimiter.name {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn count(text: &str) -> usize {
    let begins = |at: &usize| text[at + 1..].starts_with(['(', '{', '[']);
    text.match_indices('$')
        .map(|(at, _)| at)
        .filter(begins)
        .count()
}
