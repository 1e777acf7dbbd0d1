//! Just enough Rust to look for words in code: comments and literals blanked, lines and columns kept.
//! No parser: the sources are rustfmt's, so an item ends at the brace indented like its start, and
//! `cargo xtask` stays quick to build.

use std::collections::HashSet;

pub(crate) struct RustCode {
    lines: Vec<String>,
}

impl RustCode {
    pub(crate) fn new(text: &str) -> RustCode {
        RustCode {
            lines: blank(text)
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect(),
        }
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines
            .iter()
            .enumerate()
            .map(|(index, line)| (index + 1, line.as_str()))
    }

    /// As `lines`, without the code under `#[cfg(test)]`.
    pub(crate) fn shipped_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut test_until = 0;
        self.lines().filter(move |(number, line)| {
            if *number > test_until && line.trim_start().starts_with("#[cfg(test)]") {
                test_until = self.item_end(*number).unwrap_or(*number);
            }
            *number > test_until
        })
    }

    /// The last line of the item that starts at `start`, which may be its attribute.
    pub(crate) fn item_end(&self, start: usize) -> Option<usize> {
        let depth = indentation(self.lines.get(start - 1)?);
        self.lines()
            .skip(start - 1)
            .find(|(_, line)| {
                let ends = line.ends_with([';', '}']) || line.trim_start().starts_with('}');
                ends && indentation(line) == depth
            })
            .map(|(number, _)| number)
    }
}

/// The string literals of the code outside of `#[cfg(test)]`, each with its line and as it is written, quotes included.
pub(crate) fn shipped_literals(text: &str) -> Vec<(usize, &str)> {
    let code = RustCode::new(text);
    let shipped: HashSet<usize> = code.shipped_lines().map(|(number, _)| number).collect();
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    let mut within_word = false;
    while let Some(next) = rest.chars().next() {
        let opaque = opaque_len(rest, within_word);
        let taken = &rest[..opaque.unwrap_or(next.len_utf8())];
        let is_literal = opaque.is_some() && taken.contains('"') && !taken.starts_with(['/', '\'']);
        if is_literal && shipped.contains(&line) {
            found.push((line, taken));
        }
        line += taken.matches('\n').count();
        within_word = taken.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        rest = &rest[taken.len()..];
    }
    found
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The position of `word` in `line` as a whole word: `std::fs` is not in `cap_std::fs`.
pub(crate) fn find_word(line: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let within_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        match opaque_len(rest, within_word) {
            Some(len) => {
                code.extend(
                    rest[..len]
                        .chars()
                        .map(|c| if c == '\n' { '\n' } else { ' ' }),
                );
                rest = &rest[len..];
            }
            None => {
                code.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    code
}

/// How many bytes the comment or literal at the start of `rest` takes, if there is one.
fn opaque_len(rest: &str, within_word: bool) -> Option<usize> {
    let len = match rest.as_bytes() {
        [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment_len(rest),
        [b'"', ..] => string_len(rest),
        [b'\'', ..] => char_len(rest)?,
        [b'r' | b'b' | b'c', ..] if !within_word => raw_string_len(rest)?,
        _ => return None,
    };
    Some(len)
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `None` for a lifetime, which starts like a character.
fn char_len(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    if chars.next()?.1 == '\\' {
        chars.next();
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    chars
        .next()
        .filter(|(_, c)| *c == '\'')
        .map(|(at, _)| at + 1)
}

/// `None` for everything else that starts with the letter, `r#type` among it.
fn raw_string_len(rest: &str) -> Option<usize> {
    let after_r = rest
        .strip_prefix(['b', 'c'])
        .unwrap_or(rest)
        .strip_prefix('r')?;
    let after_hashes = after_r.trim_start_matches('#');
    let hashes = &after_r[..after_r.len() - after_hashes.len()];
    let body = after_hashes.strip_prefix('"')?;
    let close = format!("\"{hashes}");
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(rest.len() - body.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" }", y)"#, "f(        , y)"),
            ("r#\"a \" b\"# c", "           c"),
            ("br\"\\\" c", "      c"),
            ("let r#type = 'x';", "let r#type =    ;"),
            (r"['\'', b'\u{7d}']", "[    , b        ]"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("\"a\n}\nb\" c", "  \n \n   c"),
            ("xr\"s\"", "xr   "),
            ("'é' é", "    é"),
        ] {
            assert_eq!(blank(text), expected, "{text}");
        }
    }

    #[test]
    fn literals_are_found_with_their_lines() {
        let text = "f(\"a \\\" b\"); // \"c\"\nr#\"d\n\"e\"#; '\"'\n#[cfg(test)]\nmod t {\n    \"f\";\n}\n\"g\";\n";
        let found = shipped_literals(text);
        assert_eq!(
            found,
            [(1, "\"a \\\" b\""), (2, "r#\"d\n\"e\"#"), (8, "\"g\"")]
        );
    }

    #[test]
    fn words_have_edges() {
        for (line, found) in [
            ("use std::fs;", true),
            ("::std::fs::read", true),
            ("cap_std::fs::Dir", false),
            ("std::fs_extra cap_std::fs std::fs", true),
            ("std::fstab", false),
        ] {
            assert_eq!(find_word(line, "std::fs").is_some(), found, "{line}");
        }
    }

    #[test]
    fn test_items_are_not_shipped() {
        let text = "use a;\n#[cfg(test)]\nuse b::{\n    c,\n};\nfn d() {}\n#[cfg(test)]\nmod tests {\n    fn e() {}\n}\nfn g() {}\n";
        let code = RustCode::new(text);
        let shipped: Vec<&str> = code.shipped_lines().map(|(_, line)| line).collect();
        assert_eq!(shipped, ["use a;", "fn d() {}", "fn g() {}"]);
    }
}
