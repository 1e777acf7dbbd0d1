//! JSON with comments and trailing commas, as editors write it, parsed into a tree with places.
//!
//! A parser of our own: YAML's does not accept `//` comments, and serde's reports lines only in errors. `jsonc-parser`
//! allows 512 levels of nesting, does not limit the number of values, and has messages in another style.

use crate::{
    FilePosition, LocatedValue,
    error::ConfigComplaint,
    yaml::tree::{ConfigTreeEntry, YamlValue},
};

/// The deepest nesting of tables and lists.
const DEEPEST: usize = 32;
/// The most values in one file.
const MOST_VALUES: usize = 50_000;

/// Reads a whole text.
pub(crate) fn read(text: &str) -> Result<LocatedValue<YamlValue>, ConfigComplaint> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = JsoncReader {
        rest: text.chars(),
        at: FilePosition { line: 1, column: 1 },
        values: 0,
    };
    let value = reader.value(0)?;
    reader.blanks()?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.wrong("unexpected text after the end")),
    }
}

struct JsoncReader<'a> {
    rest: std::str::Chars<'a>,
    at: FilePosition,
    values: usize,
}

impl JsoncReader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn take(&mut self) -> Option<char> {
        let taken = self.rest.next()?;
        if taken == '\n' {
            self.at = FilePosition {
                line: self.at.line.saturating_add(1),
                column: 1,
            };
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(taken)
    }

    fn wrong(&self, message: &str) -> ConfigComplaint {
        ConfigComplaint::new(self.at, format!("the file is not JSON: {message}"))
    }

    /// Skips blanks and comments.
    fn blanks(&mut self) -> Result<(), ConfigComplaint> {
        loop {
            let rest = self.rest.as_str();
            if rest.starts_with("//") {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.take();
                }
            } else if rest.starts_with("/*") {
                let begun = self.wrong("a comment is not closed");
                self.take();
                self.take();
                while !self.rest.as_str().starts_with("*/") {
                    self.take().ok_or_else(|| begun.clone())?;
                }
                self.take();
                self.take();
            } else if rest.starts_with([' ', '\t', '\r', '\n']) {
                self.take();
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<LocatedValue<YamlValue>, ConfigComplaint> {
        self.blanks()?;
        let at = self.at;
        self.values += 1;
        if depth > DEEPEST || self.values > MOST_VALUES {
            return Err(ConfigComplaint::new(
                at,
                "the file is nested too deeply or has too many values",
            ));
        }
        let value = match self.peek() {
            Some('{') => self.table(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => YamlValue::Text(self.text()?),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number()?,
            Some(_) => self.word()?,
            None => return Err(self.wrong("it ends where a value is expected")),
        };
        Ok(LocatedValue { value, at })
    }

    fn table(&mut self, depth: usize) -> Result<YamlValue, ConfigComplaint> {
        self.take();
        let mut entries: Vec<ConfigTreeEntry> = Vec::new();
        loop {
            self.blanks()?;
            let at = self.at;
            match self.peek() {
                Some('}') => break,
                Some('"') => {}
                Some(_) => return Err(self.wrong("expected a key in double quotes, or `}`")),
                None => return Err(self.wrong("`}` is missing at the end of a table")),
            }
            let key = self.text()?;
            if entries.iter().any(|entry| entry.key.value == key) {
                let key = crate::snippet::shown(&key);
                return Err(ConfigComplaint::new(
                    at,
                    format!("the key `{key}` is given twice in one table"),
                ));
            }
            self.blanks()?;
            if self.peek() != Some(':') {
                return Err(self.wrong("expected `:` after a key"));
            }
            self.take();
            let value = self.value(depth + 1)?;
            entries.push(ConfigTreeEntry {
                key: LocatedValue { value: key, at },
                value,
            });
            if !self.goes_on('}')? {
                break;
            }
        }
        self.take();
        Ok(YamlValue::Table(entries))
    }

    fn list(&mut self, depth: usize) -> Result<YamlValue, ConfigComplaint> {
        self.take();
        let mut items = Vec::new();
        loop {
            self.blanks()?;
            if self.peek() == Some(']') {
                break;
            }
            items.push(self.value(depth + 1)?);
            if !self.goes_on(']')? {
                break;
            }
        }
        self.take();
        Ok(YamlValue::List(items))
    }

    /// Whether a comma follows; otherwise the end must follow.
    fn goes_on(&mut self, end: char) -> Result<bool, ConfigComplaint> {
        self.blanks()?;
        match self.peek() {
            Some(',') => {
                self.take();
                Ok(true)
            }
            Some(c) if c == end => Ok(false),
            Some(_) => Err(self.wrong(&format!("expected `,` or `{end}`"))),
            None => Err(self.wrong(&format!("`{end}` is missing"))),
        }
    }

    fn text(&mut self) -> Result<String, ConfigComplaint> {
        let begun = self.wrong("a text has no closing quote");
        self.take();
        let mut text = String::new();
        loop {
            match self.peek().ok_or_else(|| begun.clone())? {
                '"' => {
                    self.take();
                    return Ok(text);
                }
                '\\' => text.push(self.escape()?),
                c if c.is_control() => {
                    return Err(
                        self.wrong("a text holds a line break or another control character")
                    );
                }
                c => {
                    self.take();
                    text.push(c);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, ConfigComplaint> {
        let wrong = self.wrong("a text has an invalid escape");
        self.take();
        let simple = match self.take().ok_or_else(|| wrong.clone())? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            c @ ('"' | '\\' | '/') => c,
            'u' => return self.unicode().ok_or(wrong),
            _ => return Err(wrong),
        };
        Ok(simple)
    }

    /// Four hex digits, or two such escapes that form one character.
    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        (self.take() == Some('\\') && self.take() == Some('u')).then_some(())?;
        let second = self.hex()?;
        (0xdc00..0xe000).contains(&second).then_some(())?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        (0..4).try_fold(0, |number, _| {
            Some(number << 4 | self.take()?.to_digit(16)?)
        })
    }

    fn number(&mut self) -> Result<YamlValue, ConfigComplaint> {
        let wrong = self.wrong("a number is invalid");
        let mut digits = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| c.is_ascii_digit() || "+-.eE".contains(*c))
        {
            self.take();
            digits.push(c);
        }
        match digits.parse::<i128>() {
            Ok(whole) => Ok(YamlValue::Whole(whole)),
            Err(_) => digits.parse().map(YamlValue::Fraction).map_err(|_| wrong),
        }
    }

    fn word(&mut self) -> Result<YamlValue, ConfigComplaint> {
        for (word, value) in [
            ("true", YamlValue::Flag(true)),
            ("false", YamlValue::Flag(false)),
            ("null", YamlValue::Null),
        ] {
            if self.rest.as_str().starts_with(word) {
                for _ in word.chars() {
                    self.take();
                }
                return Ok(value);
            }
        }
        Err(self.wrong("expected a value"))
    }
}
