//! Here-documents, looked at before the parser does.
//!
//! The parser's tokenizer never comes back from some here-documents whose delimiter, or whose line, holds an
//! expansion, and ends others where bash does not. It is given only those that stand in plain surroundings:
//! plain words and quotes before them, a plain delimiter, and the delimiter on a line of its own.

use crate::opaque::OpaqueReason;

/// Checks every here-document of a script.
pub(super) fn check(text: &str) -> Result<(), OpaqueReason> {
    if !text.contains("<<") {
        return Ok(());
    }
    let mut scanner = Scanner { rest: text, plain: true, pending: Vec::new() };
    let mut starts_word = true;
    while let Some(c) = scanner.rest.chars().next() {
        if scanner.rest.starts_with("<<<") {
            scanner.rest = &scanner.rest[3..];
            starts_word = true;
            continue;
        }
        if scanner.rest.starts_with("<<") {
            scanner.delimiter()?;
            starts_word = false;
            continue;
        }
        scanner.rest = &scanner.rest[c.len_utf8()..];
        match c {
            '\n' => scanner.bodies()?,
            '#' if starts_word => scanner.skip_to('\n'),
            '\'' => scanner.quoted('\'')?,
            '"' => scanner.quoted('"')?,
            '\\' | '$' | '`' => scanner.odd()?,
            '(' if scanner.rest.starts_with('(') => scanner.odd()?,
            _ => {}
        }
        starts_word = matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>');
    }
    if scanner.pending.is_empty() { Ok(()) } else { Err(OpaqueReason::NotParsed) }
}

struct Scanner<'a> {
    rest: &'a str,
    /// Nothing so far could make the tokenizer see another place in the text than this scanner.
    plain: bool,
    /// Documents whose bodies begin on the next line.
    pending: Vec<Delimiter<'a>>,
}

struct Delimiter<'a> {
    name: &'a str,
    strips_tabs: bool,
}

impl<'a> Scanner<'a> {
    fn skip_to(&mut self, end: char) {
        self.rest = self.rest.find(end).map_or("", |at| &self.rest[at..]);
    }

    /// Anything may follow, except a here-document.
    fn odd(&mut self) -> Result<(), OpaqueReason> {
        self.plain = false;
        if self.pending.is_empty() { Ok(()) } else { Err(OpaqueReason::Ambiguous) }
    }

    fn quoted(&mut self, quote: char) -> Result<(), OpaqueReason> {
        let Some((inner, rest)) = self.rest.split_once(quote) else {
            return Err(OpaqueReason::NotParsed);
        };
        self.rest = rest;
        if (quote == '"' && inner.contains(['$', '`', '\\']))
            || inner.contains('\n') && !self.pending.is_empty()
        {
            return self.odd();
        }
        Ok(())
    }

    fn delimiter(&mut self) -> Result<(), OpaqueReason> {
        if !self.plain {
            return Err(OpaqueReason::Ambiguous);
        }
        let rest = &self.rest[2..];
        let strips_tabs = rest.starts_with('-');
        let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches([' ', '\t']);
        let opening = rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '\\'));
        let rest = if opening.is_some() { &rest[1..] } else { rest };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let rest = match opening {
            Some(quote @ ('\'' | '"')) => rest.strip_prefix(quote).ok_or(OpaqueReason::Ambiguous)?,
            _ => rest,
        };
        if name.is_empty() || !rest.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '>', '<']) {
            return Err(OpaqueReason::Ambiguous);
        }
        self.rest = rest;
        self.pending.push(Delimiter { name, strips_tabs });
        Ok(())
    }

    /// Passes over the bodies of the documents that the line before has announced.
    fn bodies(&mut self) -> Result<(), OpaqueReason> {
        for delimiter in std::mem::take(&mut self.pending) {
            loop {
                if self.rest.is_empty() {
                    return Err(OpaqueReason::NotParsed);
                }
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let line = if delimiter.strips_tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter.name {
                    break;
                }
            }
        }
        Ok(())
    }
}
