//! Liberal matching: whether a deny or an ask could mean a command.
//!
//! A rule against `git push --force` also means `git -C x push origin -f`. Options are compared as a set and in every
//! known spelling, operands in order. Where the tables do not list whether an option takes a value, the word behind it
//! may count as the value or as an operand, whichever makes the pattern match.

use super::CommandPattern;
use super::glob::{WordGlob, base_name};
use super::table;
use crate::analysis::SimpleCommand;

/// How many names of a multi-call program are tried.
const MOST_NAMES: usize = 16;

pub(super) fn catches(pattern: &CommandPattern, command: &SimpleCommand) -> bool {
    started_by(pattern, command) || fits(pattern, &command.words, command.opaque)
}

/// A rule about a wrapper as such, `xargs *`, applies to every command that the wrapper starts.
fn started_by(pattern: &CommandPattern, command: &SimpleCommand) -> bool {
    let ([program], true) = (pattern.words.as_slice(), pattern.open) else {
        return false;
    };
    let name = |entry: &String| {
        entry
            .split(' ')
            .next()
            .is_some_and(|name| program.matches_base_name(name))
    };
    !program.is_any() && command.within.iter().any(name)
}

/// A multi-call program matches under each of its names, its own included.
fn fits(pattern: &CommandPattern, words: &[String], opaque: bool) -> bool {
    let is_many = |word: &&String| matches!(base_name(word), "busybox" | "toybox");
    let names = words.iter().take(MOST_NAMES).take_while(is_many).count();
    (0..=names.min(words.len().saturating_sub(1)))
        .any(|from| fits_as(pattern, &words[from..], opaque))
}

fn fits_as(pattern: &CommandPattern, words: &[String], opaque: bool) -> bool {
    let (Some(program), Some(name)) = (pattern.words.first(), words.first()) else {
        return false;
    };
    if !program.matches_base_name(name) {
        return false;
    }
    let command = CommandWords::of(base_name(name), &words[1..]);
    let wanted = PatternWords::of(&pattern.words[1..]);
    let all_there = wanted
        .options
        .iter()
        .all(|option| opaque || command.has(option));
    all_there && operands_fit(&wanted.operands, &command.operands, pattern.open, opaque)
}

/// A pattern's words after the program.
struct PatternWords<'a> {
    options: Vec<&'a WordGlob>,
    operands: Vec<&'a WordGlob>,
}

impl<'a> PatternWords<'a> {
    fn of(words: &'a [WordGlob]) -> Self {
        let end = words
            .iter()
            .position(|word| word.plain().any(|word| word == "--"))
            .unwrap_or(words.len());
        let (before, behind) = words.split_at(end);
        let is_option = |word: &&WordGlob| word.begins_like_option();
        let (options, mut operands): (Vec<_>, Vec<_>) = before.iter().partition(is_option);
        operands.extend(behind.iter().skip(1));
        Self { options, operands }
    }
}

/// A command's words after the program.
struct CommandWords<'a> {
    program: &'a str,
    options: Vec<&'a str>,
    operands: Vec<PatternOperand<'a>>,
    /// Every option, in its canonical spelling.
    canonical: Vec<String>,
}

struct PatternOperand<'a> {
    word: &'a str,
    /// The word may be the value of the option before it.
    may_be_value: bool,
}

impl<'a> CommandWords<'a> {
    fn of(program: &'a str, words: &'a [String]) -> Self {
        let mut parsed = Self {
            program,
            options: Vec::new(),
            operands: Vec::new(),
            canonical: Vec::new(),
        };
        let mut words = words.iter().map(String::as_str).peekable();
        // `+nightly` selects a toolchain and is not an operand.
        if program == "cargo" && words.peek().is_some_and(|word| word.starts_with('+')) {
            words.next();
        }
        let mut may_be_value = false;
        while let Some(word) = words.next() {
            if word == "--" {
                let behind = words.map(|word| PatternOperand {
                    word,
                    may_be_value: false,
                });
                parsed.operands.extend(behind);
                break;
            }
            if word.len() > 1 && word.starts_with('-') {
                let before_subcommand = parsed.operands.iter().all(|operand| operand.may_be_value);
                parsed.options.push(word);
                match table::takes_value(program, word, before_subcommand) {
                    Some(true) => {
                        words.next();
                        may_be_value = false;
                    }
                    Some(false) => may_be_value = false,
                    None => may_be_value = true,
                }
            } else {
                parsed.operands.push(PatternOperand { word, may_be_value });
                may_be_value = false;
            }
        }
        parsed.canonical = parsed.spellings();
        parsed
    }

    fn subcommand(&self) -> Option<&'a str> {
        self.operands
            .iter()
            .find(|operand| !operand.may_be_value)
            .map(|operand| operand.word)
    }

    fn spellings(&self) -> Vec<String> {
        let mut spellings = Vec::new();
        let subcommand = self.subcommand();
        for option in &self.options {
            let name = option.split('=').next().unwrap_or(option);
            spellings.push(table::canonical(self.program, subcommand, name).to_owned());
            if !option.starts_with("--") {
                let letters = option.chars().skip(1).map(|letter| format!("-{letter}"));
                spellings
                    .extend(letters.map(|short| {
                        table::canonical(self.program, subcommand, &short).to_owned()
                    }));
            }
        }
        // `git push origin +main` forces without an option.
        let forces = |operand: &PatternOperand<'_>| operand.word.starts_with('+');
        if self.program == "git" && subcommand == Some("push") && self.operands.iter().any(forces) {
            spellings.push("--force".to_owned());
        }
        spellings
    }

    fn has(&self, wanted: &WordGlob) -> bool {
        let is_written = |option: &&str| {
            wanted.matches(option)
                || option
                    .split_once('=')
                    .is_some_and(|(name, _)| wanted.matches(name))
        };
        self.options.iter().any(is_written) || wanted.plain().any(|option| self.has_plain(option))
    }

    fn has_plain(&self, wanted: &str) -> bool {
        let subcommand = self.subcommand();
        let has = |option: &str| {
            let option = table::canonical(self.program, subcommand, option);
            self.canonical.iter().any(|spelling| spelling == option)
        };
        if has(wanted) {
            return true;
        }
        if let Some((name, value)) = wanted.split_once('=') {
            return has(name) && self.operands.iter().any(|operand| operand.word == value);
        }
        let cluster = wanted
            .strip_prefix('-')
            .filter(|cluster| !cluster.starts_with('-') && cluster.len() <= 4);
        let letters = |cluster: &str| cluster.chars().all(|letter| has(&format!("-{letter}")));
        cluster.is_some_and(|cluster| !table::has_long_words(self.program) && letters(cluster))
    }
}

/// Whether the wanted words are the first operands, or all operands if the pattern is not open.
fn operands_fit(
    wanted: &[&WordGlob],
    operands: &[PatternOperand<'_>],
    open: bool,
    opaque: bool,
) -> bool {
    match (wanted, operands) {
        ([], []) => true,
        ([], operands) => open || operands.iter().all(|operand| operand.may_be_value),
        // Words of an opaque command that are not known yet could match.
        (_, []) => opaque,
        ([first, wanted @ ..], [operand, operands @ ..]) => {
            (first.matches(operand.word) && operands_fit(wanted, operands, open, opaque))
                || (operand.may_be_value
                    && operands_fit(&[&[*first], wanted].concat(), operands, open, opaque))
        }
    }
}
