//! Patterns of rules that match commands.

mod catch;
mod glob;
mod parse;
mod table;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::analysis::SimpleCommand;
use crate::variable;
use glob::WordGlob;

/// A pattern of commands, such as `cargo {build,test} *`.
///
/// Words are separated by blanks and quoted as in a shell. `{a,b}` matches one or the other. A `*` in a word matches
/// any characters of that word, a lone `*` matches any one word, and a lone `*` at the end matches all remaining words,
/// also none. Without a `*` at the end the command must have exactly these words. `NAME=value` words at the beginning
/// match variables that are set for the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandPattern {
    text: String,
    assignments: Vec<(String, WordGlob)>,
    words: Vec<WordGlob>,
    /// Whether further words may follow.
    open: bool,
}

/// Why a text is not a pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandPatternError {
    /// It has no word.
    #[error("a pattern needs at least the name of a program")]
    Empty,
    /// It exceeds the limit.
    #[error("the pattern has {0} bytes, the limit is {most}", most = parse::LONGEST)]
    TooLong(usize),
    /// A quote is opened and not closed.
    #[error("a quote in `{0}` is not closed")]
    UnclosedQuote(String),
    /// Alternatives are nested, or a brace is not closed.
    #[error("the alternatives in `{0}` are not closed or are nested")]
    Alternatives(String),
    /// The alternatives multiply to more than the limit.
    #[error("the alternatives in `{0}` multiply to more than {most}", most = parse::MOST_ALTERNATIVES)]
    TooManyAlternatives(String),
    /// It has a shell operator or expansion, which a single command cannot contain.
    #[error(
        "`{character}` in `{word}` is not allowed in a pattern, which is for one command; quote it to match it"
    )]
    Operator {
        /// The word that contains it.
        word: String,
        /// The operator's character.
        character: char,
    },
    /// A control character.
    #[error("the pattern holds a control character")]
    ControlCharacter,
}

impl CommandPattern {
    /// Whether an allow with this pattern allows the command. The match is strict: every word as written, every
    /// variable in the pattern, nothing opaque.
    pub fn covers(&self, command: &SimpleCommand) -> bool {
        !command.opaque && self.covers_assignments(command) && self.covers_words(&command.words)
    }

    /// Whether a deny or an ask with this pattern applies to the command. The match is liberal: base names, options in
    /// any place and spelling, and variables ignored. An opaque command matches if its known words could still become a
    /// match.
    ///
    /// The two directions fail differently. An allow that matches too much runs a command without a question, and a
    /// deny that matches too little does the same, so [`covers`](Self::covers) is exact and this method is generous.
    /// One matcher for both would have to be wrong for one of them.
    pub fn catches(&self, command: &SimpleCommand) -> bool {
        self.covers_words(&command.words) || catch::catches(self, command)
    }

    /// Whether an allow with this pattern means exactly the commands that this one starts, hidden ones included: it
    /// covers the command, and it spells the words that select the hidden ones. A lone star spells nothing.
    pub fn spells(&self, command: &SimpleCommand) -> bool {
        command.hides.is_none_or(|hidden| {
            let names_value = || !self.assignments.iter().any(|(_, value)| value.is_any());
            self.spells_through(command, hidden.through) && (!hidden.by_variable || names_value())
        })
    }

    /// Whether an allow with this pattern covers the command and spells its words up to this index.
    pub fn spells_through(&self, command: &SimpleCommand, through: usize) -> bool {
        let spelled = self.words.get(..=through);
        spelled.is_some_and(|words| !words.iter().any(WordGlob::is_any)) && self.covers(command)
    }

    fn covers_words(&self, words: &[String]) -> bool {
        let fits = if self.open {
            words.len() >= self.words.len()
        } else {
            words.len() == self.words.len()
        };
        let mut pairs = self.words.iter().zip(words);
        fits && pairs
            .next()
            .is_none_or(|(program, word)| program.matches_program(word))
            && pairs.all(|(pattern, word)| pattern.matches(word))
    }

    fn covers_assignments(&self, command: &SimpleCommand) -> bool {
        let mentioned = |name: &str, value: &str| {
            self.assignments
                .iter()
                .any(|(pattern, values)| pattern == name && values.matches(value))
        };
        let all_mentioned = command.assignments.iter().all(|assignment| {
            assignment
                .value
                .as_ref()
                .is_some_and(|value| mentioned(&assignment.name, value))
        });
        let is_set = |name: &String| {
            variable::is_free(name)
                || command
                    .assignments
                    .iter()
                    .any(|assignment| assignment.name == *name)
        };
        all_mentioned && self.assignments.iter().all(|(name, _)| is_set(name))
    }
}

impl FromStr for CommandPattern {
    type Err = CommandPatternError;

    fn from_str(text: &str) -> Result<Self, CommandPatternError> {
        parse::pattern(text)
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for CommandPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for CommandPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
