//! SPDX license expressions, as far as crates use them: `OR`, `AND`, `WITH`, parentheses and the old `/`.

use anyhow::{bail, ensure};

/// Whether code under `expression` may be used with only the `allowed` licenses.
pub(crate) fn is_allowed(expression: &str, allowed: &[String]) -> anyhow::Result<bool> {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    ensure!(!words.is_empty(), "no license is given");
    let mut reader = LicenseReader {
        words: &words,
        allowed,
    };
    let answer = reader.any_of()?;
    ensure!(
        reader.words.is_empty(),
        "did not expect `{}`",
        reader.words.join(" ")
    );
    Ok(answer)
}

/// One function per precedence: `OR` binds least.
struct LicenseReader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl<'a> LicenseReader<'a> {
    fn any_of(&mut self) -> anyhow::Result<bool> {
        let mut answer = self.all_of()?;
        while self.take("OR") {
            answer |= self.all_of()?;
        }
        Ok(answer)
    }

    fn all_of(&mut self) -> anyhow::Result<bool> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> anyhow::Result<bool> {
        if self.take("(") {
            let answer = self.any_of()?;
            ensure!(self.take(")"), "a parenthesis is left open");
            return Ok(answer);
        }
        let mut license = self.name()?.to_owned();
        if self.take("WITH") {
            license = format!("{license} WITH {}", self.name()?);
        }
        Ok(self.allowed.contains(&license))
    }

    fn name(&mut self) -> anyhow::Result<&'a str> {
        match self.words {
            [word, rest @ ..] if !matches!(*word, "OR" | "AND" | "WITH" | "(" | ")") => {
                self.words = rest;
                Ok(word)
            }
            _ => bail!("a license's name is missing"),
        }
    }

    fn take(&mut self, expected: &str) -> bool {
        match self.words {
            [word, rest @ ..] if *word == expected => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_judged() {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ]
        .map(str::to_owned);
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0-only", Some(false)),
            ("MIT/GPL-3.0-only", Some(true)),
            ("GPL-3.0-only OR Apache-2.0", Some(true)),
            ("MIT AND GPL-3.0-only", Some(false)),
            ("(MIT OR GPL-3.0-only) AND Unicode-3.0", Some(true)),
            ("MIT OR GPL-3.0-only AND MPL-2.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("", None),
            ("(MIT", None),
            ("MIT OR", None),
            ("MIT Apache-2.0", None),
        ] {
            assert_eq!(
                is_allowed(expression, &allowed).ok(),
                expected,
                "`{expression}`"
            );
        }
    }
}
