//! Decides whether a text in a small language, such as awk or sed, starts programs.

use super::EmbeddedLanguage;

/// The files that the text writes, or `None` if it starts a program or is not understood.
pub(super) fn read(language: EmbeddedLanguage, text: &str) -> Option<Vec<String>> {
    match language {
        EmbeddedLanguage::Awk => (!may_start_programs(text)).then(Vec::new),
        EmbeddedLanguage::Sed => SedScript {
            rest: text,
            written: Vec::new(),
        }
        .read(),
        EmbeddedLanguage::Editor => {
            let moves =
                text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with(['/', '?']);
            moves.then(Vec::new)
        }
    }
}

/// Whether an awk program calls `system`, has a pipe, or loads or calls something by name. A `|` in a string or an
/// expression counts as a pipe, because only a parser could tell them apart.
fn may_start_programs(program: &str) -> bool {
    program.contains("system") || program.contains('@') || program.replace("||", "").contains('|')
}

/// Reads a sed script command by command. The methods return `None` at the first command that starts a program or is
/// not understood.
struct SedScript<'a> {
    rest: &'a str,
    written: Vec<String>,
}

impl<'a> SedScript<'a> {
    fn read(mut self) -> Option<Vec<String>> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', ';', '}']);
            if self.rest.is_empty() {
                return Some(self.written);
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skipped);
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            match self.rest.chars().next()? {
                '/' => {
                    self.next();
                    self.part('/')?;
                    self.skip(|c| matches!(c, 'I' | 'M'));
                }
                '\\' => {
                    self.next();
                    let end = self
                        .next()
                        .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
                    self.part(end)?;
                    self.skip(|c| matches!(c, 'I' | 'M'));
                }
                c if c.is_ascii_digit()
                    || matches!(c, '$' | ',' | '+' | '~' | '!' | ' ' | '\t') =>
                {
                    self.next();
                }
                _ => return Some(()),
            }
        }
    }

    /// Skips the text up to a delimiter. Seds differ on a delimiter between brackets, so one there is not understood.
    fn part(&mut self, end: char) -> Option<()> {
        let mut in_brackets = false;
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                c if c == end => return (!in_brackets).then_some(()),
                '[' if !in_brackets => {
                    in_brackets = true;
                    self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
                    self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
                }
                ']' => in_brackets = false,
                '\n' => return None,
                _ => {}
            }
        }
    }

    /// Skips the text up to a delimiter; brackets have no meaning in it.
    fn replacement(&mut self, end: char) -> Option<()> {
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                c if c == end => return Some(()),
                _ => {}
            }
        }
    }

    fn line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line.trim()
    }

    fn command(&mut self) -> Option<()> {
        match self.next()? {
            '{' => return Some(()),
            's' => {
                let end = self
                    .next()
                    .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
                self.part(end)?;
                self.replacement(end)?;
                self.skip(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'));
                if let Some(rest) = self.rest.strip_prefix('w') {
                    self.rest = rest;
                    self.file();
                    return Some(());
                }
            }
            'y' => {
                let end = self
                    .next()
                    .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
                self.replacement(end)?;
                self.replacement(end)?;
            }
            'w' | 'W' => {
                self.file();
                return Some(());
            }
            // The text continues after a line that ends in a backslash.
            'a' | 'i' | 'c' => {
                while self.line().ends_with('\\') {}
                return Some(());
            }
            'r' | 'R' | '#' | 'v' => {
                self.line();
                return Some(());
            }
            ':' | 'b' | 't' | 'T' => self.skip(|c| !matches!(c, ';' | '\n' | '}')),
            'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | '=' | 'z' | 'F' => {}
            'l' | 'q' | 'Q' => self.skip(|c| c.is_ascii_digit() || c == ' '),
            // `e` runs a command, and other letters are unknown.
            _ => return None,
        }
        self.skip(|c| matches!(c, ' ' | '\t'));
        (self.rest.is_empty() || self.rest.starts_with([';', '\n', '}', '#'])).then_some(())
    }

    fn file(&mut self) {
        let path = self.line();
        if !matches!(path, "" | "/dev/stdout" | "/dev/stderr") {
            self.written.push(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts() {
        for (script, written) in [
            ("1,5p", &[][..]),
            ("s/a/b/g", &[]),
            ("s|a/[0-9]|b|; s/x/y/2p", &[]),
            ("/^#/d;$!N;P;D", &[]),
            ("\\,x,{s/a/b/;p}", &[]),
            ("y/abc/def/", &[]),
            ("5q", &[]),
            (":a;N;$!ba;s/\\n/ /g", &[]),
            ("/x/a\\\n  e rm y\\\n more\np", &[]),
            ("1i e rm x", &[]),
            ("r f", &[]),
            ("w f", &["f"]),
            ("s/a/b/gw f x", &["f x"]),
            ("w /dev/stdout", &[]),
            ("s/e/e/", &[]),
        ] {
            assert_eq!(
                read(EmbeddedLanguage::Sed, script).as_deref(),
                Some(
                    &written
                        .iter()
                        .map(|path| (*path).to_owned())
                        .collect::<Vec<_>>()[..]
                ),
                "{script}"
            );
        }
        for script in [
            "e",
            "1e rm x",
            "s/a/rm x/e",
            "s/a/b/ge",
            "s/a/b/;e rm x",
            "/x/{p;e rm y\n}",
            "$!{1e\n}",
            "1~2e",
            "s/[/]/e",
            "s/a/b",
            "k",
            "\\",
            "p e",
        ] {
            assert_eq!(read(EmbeddedLanguage::Sed, script), None, "{script}");
        }
    }

    #[test]
    fn awk_programs() {
        for (program, starts) in [
            ("{print $1}", false),
            ("$1 == 2 || $3", false),
            ("{print > \"f\"}", false),
            ("BEGIN { system(\"rm x\") }", true),
            ("{ print | \"rm x\" }", true),
            ("{ \"rm x\" | getline }", true),
            ("{ print |& \"rm x\" }", true),
            ("BEGIN { f = \"sys\" \"tem\"; @f(\"rm x\") }", true),
        ] {
            assert_eq!(
                read(EmbeddedLanguage::Awk, program).is_none(),
                starts,
                "{program}"
            );
        }
    }
}
