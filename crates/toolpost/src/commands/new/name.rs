//! A new module's name in the spellings of packages, crates, classes and tools.

use std::fmt;

/// The most characters of a name, which becomes part of longer ones.
const LONGEST: usize = 40;

/// The given name, split into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModuleName {
    words: Vec<String>,
}

/// Why a name cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadName(String);

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a valid tool name\nhint: use letters, digits, `-` and `_`, begin with a letter, at most {LONGEST} \
             characters: `word-count`",
            self.0.escape_debug()
        )
    }
}

impl ModuleName {
    /// Parses `word-count` or `word_count`, with or without the prefix `tool-` of every module id.
    pub(crate) fn parse(text: &str) -> Result<Self, BadName> {
        let bad = || BadName(text.to_owned());
        let lower = text.to_ascii_lowercase();
        let bare = lower
            .strip_prefix("tool-")
            .or_else(|| lower.strip_prefix("tool_"))
            .unwrap_or(&lower);
        let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if bare.len() > LONGEST
            || !bare.starts_with(|c: char| c.is_ascii_alphabetic())
            || !bare.chars().all(known)
        {
            return Err(bad());
        }
        let words: Vec<String> = bare.split(['-', '_']).map(str::to_owned).collect();
        if words.iter().any(String::is_empty) {
            Err(bad())
        } else {
            Ok(Self { words })
        }
    }

    /// `tool-word-count`: the module in plans, and the crate.
    pub(crate) fn module_id(&self) -> String {
        format!("tool-{}", self.words.join("-"))
    }

    /// `word_count`: the tool's name for models.
    pub(crate) fn tool(&self) -> String {
        self.words.join("_")
    }

    /// `amplifier_module_tool_word_count`: the Python package.
    pub(crate) fn package(&self) -> String {
        format!("amplifier_module_tool_{}", self.tool())
    }

    /// `WordCountTool`: the class or struct.
    pub(crate) fn class(&self) -> String {
        let capital = |word: &String| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        };
        self.words
            .iter()
            .map(capital)
            .chain(["Tool".to_owned()])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_in_every_spelling() {
        for text in ["word-count", "word_count", "tool-word-count", "Word-Count"] {
            let name = ModuleName::parse(text).unwrap();
            assert_eq!(name.module_id(), "tool-word-count");
            assert_eq!(name.tool(), "word_count");
            assert_eq!(name.package(), "amplifier_module_tool_word_count");
            assert_eq!(name.class(), "WordCountTool");
        }
    }

    #[test]
    fn what_cannot_be_a_package_a_crate_and_a_tool_is_refused() {
        for text in [
            "",
            "-x",
            "x-",
            "a--b",
            "2fast",
            "ab/c",
            "a.b",
            "tool-",
            "naïve",
            &"x".repeat(41),
        ] {
            assert!(ModuleName::parse(text).is_err(), "{text}");
        }
    }
}
