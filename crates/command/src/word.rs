//! Reads one word as bash does, and finds the text or the scripts that it stands for.
//!
//! The parser ends words, too, and with odd quoting it ends some of them too late: it takes the quote of `\$'a\'` for
//! one with escapes, and a quote inside `"${x:-'}"` for one that hides the text after it. A word that ends too late can
//! contain a whole command. A word therefore counts as understood only if this scanner reaches its end with nothing
//! left over, and finds nothing in it that would have ended it.

/// The expansion of a word.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum WordExpansion {
    /// Exactly this text.
    Literal(String),
    /// The text depends on the run; these are all scripts that run during the expansion.
    Expanded(Vec<String>),
    /// The text depends on the run, and a part of the word is not understood.
    Unsure,
}

pub(crate) fn read(raw: &str) -> WordExpansion {
    if raw.bytes().all(is_plain) || matches!(raw, "{}" | "[" | "!") {
        return WordExpansion::Literal(raw.to_owned());
    }
    let mut scanner = WordScanner::new(raw);
    match scanner.word() {
        Some(()) => scanner.reading(),
        None => WordExpansion::Unsure,
    }
}

/// Reads the body of a here-document without quotes around its delimiter. Quotes have no meaning there.
pub(crate) fn read_here_document(body: &str) -> WordExpansion {
    let mut scanner = WordScanner::new(body);
    match scanner.here_document() {
        Some(()) => scanner.reading(),
        None => WordExpansion::Unsure,
    }
}

/// The text after a leading double quote, expansion or backquote, if its end is sure.
pub(crate) fn pass(text: &str) -> Option<&str> {
    let mut scanner = WordScanner::new(text);
    match (scanner.next()?, scanner.peek()) {
        ('"', _) => scanner.double_quoted()?,
        ('`', _) => scanner.backquoted(true)?,
        // Quotes after it, or after a joined line, follow other rules.
        ('$', Some('\'' | '"' | '\\')) => return None,
        ('$', next) if begins_expansion(next) => scanner.expansion()?,
        _ => {}
    }
    Some(scanner.rest)
}

/// Whether an arithmetic expression has only numbers. Bash looks names up and evaluates their values again, so that
/// `x[$(rm y)]` in a variable would run.
pub(crate) fn is_plain_arithmetic(expression: &str) -> bool {
    expression
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b" \t\n+-*/%()<>=!&|^~?:,;".contains(&byte))
}

/// Characters without a meaning to the shell in any place.
pub(crate) const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'_' | b'-' | b'.' | b'/' | b':' | b'=' | b',' | b'@' | b'%' | b'+'
        )
}

/// Whether a `$` before this character begins an expansion.
fn begins_expansion(next: Option<char>) -> bool {
    next.is_some_and(|c| c.is_ascii_alphanumeric() || "_@*#?$!-({[".contains(c))
}

struct WordScanner<'a> {
    rest: &'a str,
    literal: String,
    scripts: Vec<String>,
    expanded: bool,
}

/// Each step returns `None` if it is not sure.
impl<'a> WordScanner<'a> {
    fn new(rest: &'a str) -> Self {
        Self {
            rest,
            literal: String::new(),
            scripts: Vec::new(),
            expanded: false,
        }
    }

    fn reading(self) -> WordExpansion {
        if self.expanded {
            WordExpansion::Expanded(self.scripts)
        } else {
            WordExpansion::Literal(self.literal)
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The text up to a character; both are consumed.
    fn until(&mut self, end: char) -> Option<&'a str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    fn word(&mut self) -> Option<()> {
        let mut before = None;
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    let escaped = self.next()?;
                    self.literal.push(escaped);
                }
                '\'' => {
                    let quoted = self.until('\'')?;
                    self.literal.push_str(quoted);
                }
                '"' => self.double_quoted()?,
                '$' if self.peek() == Some('\'') => self.ansi_quoted()?,
                '$' if self.peek() == Some('"') => return None,
                '$' if begins_expansion(self.peek()) => self.expansion()?,
                '`' => self.backquoted(true)?,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => return None,
                '*' | '?' | '[' => self.expanded = true,
                // `{fd}>file` names a descriptor, and braces with a comma or dots become several words.
                '{' if before.is_none() || self.rest.contains(',') || self.rest.contains("..") => {
                    self.expanded = true;
                }
                '~' if matches!(before, None | Some(':' | '=')) => self.expanded = true,
                c => self.literal.push(c),
            }
            before = Some(c);
        }
        Some(())
    }

    fn double_quoted(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                '"' => return Some(()),
                '\\' => match self.next()? {
                    c @ ('$' | '`' | '"' | '\\') => self.literal.push(c),
                    '\n' => {}
                    c => self.literal.extend(['\\', c]),
                },
                '$' if begins_expansion(self.peek()) => self.expansion()?,
                '`' => self.backquoted(false)?,
                c => self.literal.push(c),
            }
        }
    }

    fn here_document(&mut self) -> Option<()> {
        while let Some(c) = self.next() {
            match c {
                // The joined line may or may not be the last one.
                '\\' if self.peek() == Some('\n') => return None,
                '\\' => {
                    self.next();
                }
                '$' if begins_expansion(self.peek()) => self.expansion()?,
                '`' => self.backquoted(true)?,
                _ => {}
            }
        }
        Some(())
    }

    /// `$'…'`; the caller has consumed the `$`.
    fn ansi_quoted(&mut self) -> Option<()> {
        self.next();
        loop {
            match self.next()? {
                '\'' => return Some(()),
                '\\' => self.ansi_escape()?,
                c => self.literal.push(c),
            }
        }
    }

    fn ansi_escape(&mut self) -> Option<()> {
        let c = match self.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            c @ ('\\' | '\'' | '"' | '?') => c,
            first @ '0'..='7' => self.number(first.to_digit(8)?, 8, 2, 0x7f)?,
            'x' => self.number(0, 16, 2, 0x7f)?,
            'u' => self.number(0, 16, 4, u32::MAX)?,
            'U' => self.number(0, 16, 8, u32::MAX)?,
            // Control characters by letter, and forms that differ between shells.
            _ => return None,
        };
        self.literal.push(c);
        Some(())
    }

    /// A character by its number. NUL would end the word, and the meaning of bytes above ASCII depends on the locale.
    fn number(&mut self, mut value: u32, radix: u32, most: usize, highest: u32) -> Option<char> {
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            value = value.checked_mul(radix)?.checked_add(digit)?;
            self.next();
        }
        (value != 0 && value <= highest)
            .then(|| char::from_u32(value))
            .flatten()
    }

    /// The rest of an expansion after its `$`.
    fn expansion(&mut self) -> Option<()> {
        self.expanded = true;
        match self.next()? {
            '(' if self.peek() == Some('(') => self.arithmetic(),
            '(' => {
                let script = self.substitution()?;
                self.scripts.push(script.to_owned());
                Some(())
            }
            '{' => {
                let inner = self.until('}')?;
                let name = inner.strip_prefix('#').unwrap_or(inner);
                let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
                (crate::variable::is_name(name)
                    || is_number
                    || matches!(name, "?" | "@" | "*" | "$"))
                .then_some(())
            }
            '[' => None,
            c if c.is_ascii_alphabetic() || c == '_' => {
                self.rest = self
                    .rest
                    .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                Some(())
            }
            // A single character: a digit or a special parameter.
            _ => Some(()),
        }
    }

    /// The rest of `$((…))` after its first parenthesis. Unless both close together at the end, these are two
    /// subshells.
    fn arithmetic(&mut self) -> Option<()> {
        self.next();
        let start = self.rest;
        let mut depth = 1_u32;
        while depth > 0 {
            match self.next()? {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
        }
        let expression = &start[..start.len() - self.rest.len() - 1];
        (self.next() == Some(')') && is_plain_arithmetic(expression)).then_some(())
    }

    /// The script of `$(…)`. The closing parenthesis counts only if all quoting before it has an unmistakable end.
    fn substitution(&mut self) -> Option<&'a str> {
        let start = self.rest;
        let mut depth = 1_u32;
        loop {
            match self.next()? {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                '\'' => {
                    self.until('\'')?;
                }
                '"' => {
                    let quoted = self.until('"')?;
                    if quoted.contains(['$', '`', '\\']) {
                        return None;
                    }
                }
                '$' if matches!(self.peek(), Some('\'' | '"' | '{' | '[')) => return None,
                '<' if self.peek() == Some('<') => return None,
                '\\' | '`' | '#' => return None,
                _ => {}
            }
        }
        let script = &start[..start.len() - self.rest.len() - 1];
        (!script.contains("case")).then_some(script)
    }

    /// The text after an opening backquote. Shells differ on quotes inside double quotes.
    fn backquoted(&mut self, quotes: bool) -> Option<()> {
        self.expanded = true;
        let script = self.until('`')?;
        if script.contains('\\') || (!quotes && script.contains('"')) {
            return None;
        }
        self.scripts.push(script.to_owned());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_words() {
        for (raw, word) in [
            ("ls", "ls"),
            (r"r\m", "rm"),
            (r"\rm", "rm"),
            (r#""rm""#, "rm"),
            ("r'm'", "rm"),
            (r"$'\x72m'", "rm"),
            (r"$'\162\u006d'", "rm"),
            (r"$'a\'b'", "a'b"),
            (r#""a\"b\$c\d""#, r#"a"b$c\d"#),
            (r#""5$""#, "5$"),
            ("a$", "a$"),
            ("HEAD@{1}", "HEAD@{1}"),
            ("-I{}", "-I{}"),
            ("a~b", "a~b"),
            ("''", ""),
            ("'a;b'", "a;b"),
            ("\u{a0}x", "\u{a0}x"),
            ("a#b", "a#b"),
        ] {
            assert_eq!(read(raw), WordExpansion::Literal(word.to_owned()), "{raw}");
        }
    }

    #[test]
    fn expanded_words() {
        for (raw, scripts) in [
            ("$x", vec![]),
            ("${x}y", vec![]),
            ("\"${#x}\"", vec![]),
            ("*.rs", vec![]),
            ("a?", vec![]),
            ("[ab]", vec![]),
            ("{a,b}", vec![]),
            ("a{1..2}", vec![]),
            ("{fd}", vec![]),
            ("~/x", vec![]),
            ("a=~", vec![]),
            ("$((1 + 2))", vec![]),
            ("\"$(rm x)\"", vec!["rm x"]),
            ("$(a)$(b 'c)' \"d)\" (e))", vec!["a", "b 'c)' \"d)\" (e)"]),
            ("`rm x`", vec!["rm x"]),
        ] {
            let scripts = scripts.into_iter().map(str::to_owned).collect();
            assert_eq!(read(raw), WordExpansion::Expanded(scripts), "{raw}");
        }
    }

    #[test]
    fn unsure_words() {
        for raw in [
            r"\$'a\'; rm x; echo 'b",
            r#""${x:-'}" ; rm x ; echo "'}""#,
            "${x:-$(rm x)}",
            "$((x))",
            "$((/1) )",
            "$(echo \"$(rm)\")",
            "$(a # )",
            r"`a\`b`",
            "a(b)",
            "$[1]",
            r"$'\x00'",
            r"$'\xff'",
            r"$'\cx'",
            "$\"a\"",
            "'a",
        ] {
            assert_eq!(read(raw), WordExpansion::Unsure, "{raw}");
        }
    }

    #[test]
    fn here_documents() {
        for (body, reading) in [
            ("it's \"fine\"\n", WordExpansion::Literal(String::new())),
            ("$x ${y}\n", WordExpansion::Expanded(vec![])),
            (
                "$(rm x) `rm y`\n",
                WordExpansion::Expanded(vec!["rm x".to_owned(), "rm y".to_owned()]),
            ),
            ("\\$(rm x)\n", WordExpansion::Literal(String::new())),
            ("a\\\nEOF\n", WordExpansion::Unsure),
            ("${x:-y}", WordExpansion::Unsure),
        ] {
            assert_eq!(read_here_document(body), reading, "{body}");
        }
    }
}
