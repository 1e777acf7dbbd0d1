//! Tables of programs that start other commands by an option, an operand or a setting.
//!
//! A rule against `rm` also means `git rebase --exec 'rm x'`. The tables in this folder list where such a command is in
//! the words of a program, so that denies match it. If the words do not contain the command, as with a script file, the
//! program's own command has a hidden start. Every entry has a reason, which the approval question shows.
//!
//! In contrast to `sudo`, an allow that covers the whole line covers the command in it: a rule for `npx prettier *`
//! needs no second rule for `prettier`.

mod development;
mod environment;
mod files;
mod git;
mod interpreters;
mod languages;
mod reading;
mod remote;
mod wrappers;

use std::collections::HashMap;

use serde::Serialize;

pub(crate) use environment::{VariableMeaning, variable_meaning};

struct LaunchingProgram {
    /// Base names, separated by blanks.
    names: &'static str,
    /// The words after the program that select this entry, without options. An entry without such words is for the
    /// program as such, up to its subcommand if the program has entries for subcommands.
    subcommands: &'static [&'static str],
    /// Spellings separated by blanks, and the meaning of the option. For a program that accepts options after its
    /// operands, only the options that start something are needed.
    options: &'static [(&'static str, CommandOptionMeaning)],
    operands: OperandMeaning,
    /// The reason for people, after the command: `sh x.sh` *runs the commands of a file*.
    reason: &'static str,
}

const NO_PROGRAM: LaunchingProgram = LaunchingProgram {
    names: "",
    subcommands: &[],
    options: &[],
    operands: OperandMeaning::Ignored,
    reason: "",
};

#[derive(Default)]
pub(crate) struct ProgramEntries(Vec<&'static LaunchingProgram>);

/// The meaning of an option and of the word after it.
#[derive(Clone, Copy)]
enum CommandOptionMeaning {
    /// It has no value, and starts nothing.
    Flag,
    /// It has a value, in the same word or the next, and starts nothing.
    Value,
    /// It may have a value in the same word, and starts nothing.
    Attached,
    /// It ends the options: all words after it belong to a program that was named.
    Ends,
    /// Its value is a script, or a program with arguments.
    Script,
    /// The same, where the value is in the same word.
    AttachedScript,
    /// The words after it, up to a `;`, are a command that is run with further words. The first of them may be in the
    /// same word.
    Command,
    /// Its value is a command with commas between its words.
    CommaCommand,
    /// Its value is a file that it writes.
    Writes,
    /// Its value contains code, or names a file or a setting with commands in it.
    Hides,
    /// The same, where the value is in the same word.
    HidesAttached,
    /// It has no value, and makes the program start commands that are not in its words.
    HidesAlone,
    /// The same as `Hides` for a value that contains one of these texts.
    HidesIf(&'static [&'static str]),
    /// Its value is a setting, `name=value`.
    Setting(&'static SettingTable),
    /// Its value is code in this language.
    Code(EmbeddedLanguage),
}

/// The meaning of a program's operands.
#[derive(Clone, Copy)]
enum OperandMeaning {
    /// They are ignored: they start nothing.
    Ignored,
    /// The first one is a subcommand with an entry of its own.
    Subcommand,
    /// The operands from this index on are a command.
    Command(usize),
    /// The words after `--` are a command.
    CommandBehindDashes,
    /// The operands from this index on are joined to a script.
    Script(usize),
    /// Each is a script.
    Scripts,
    /// The first is a file with commands. Without it, the commands are read from the input.
    ScriptFile,
    /// Without an operand, or with `-`, the program's code is read from the input.
    CodeFromInput,
    /// The first is code in this language, unless an option has given the code.
    Code(EmbeddedLanguage),
    /// Each may be a setting, `name=value`.
    Settings(&'static SettingTable),
    /// The first two are the name and the value of a setting.
    SettingPair(&'static SettingTable),
    /// The first holds letters of options without a dash; these letters start programs.
    OldOptions(&'static str),
    /// One that contains one of these texts, in any case of letters, starts a program.
    HidesIf(&'static [&'static str]),
    /// The program always starts commands that are not in its words.
    Hides,
}

/// Languages with a reader that finds out whether a text starts programs.
#[derive(Clone, Copy)]
enum EmbeddedLanguage {
    Awk,
    Sed,
    /// The command of an editor after a `+`.
    Editor,
}

/// Settings by name. A `*` in a name matches any characters, and case is ignored.
struct SettingTable {
    known: &'static [(&'static str, SettingMeaning)],
    other: SettingMeaning,
}

/// The meaning of a setting's value.
#[derive(Clone, Copy)]
enum SettingMeaning {
    /// It starts nothing.
    Free,
    /// It starts nothing unless the program expands it.
    FreeUnlessExpanded,
    /// It is a script, or a program with arguments.
    Script,
    /// It is a subcommand of git, or a script behind a `!`.
    GitAlias,
    /// It starts commands, or may start them.
    Hides,
}

/// Why a command starts others that are not in its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HiddenStart {
    /// The last word of those that select the hidden command. A rule that spells all words up to it means exactly that
    /// command.
    pub through: usize,
    /// Whether a variable selects it. A rule then has to spell the variable's value, too.
    pub by_variable: bool,
    /// The reason for people, after the command.
    pub why: &'static str,
}

/// The commands and files in the words of a launching program.
#[derive(Default)]
pub(crate) struct ProgramLaunch {
    pub(crate) starts: Vec<LaunchedStart>,
    pub(crate) writes: Vec<LaunchedWrite>,
    pub(crate) hidden: Option<HiddenStart>,
}

/// A command in the words of another.
pub(crate) struct LaunchedStart {
    /// For explanations: `git rebase --exec`.
    pub(crate) label: String,
    /// The index of its last word.
    pub(crate) through: usize,
    pub(crate) what: LaunchedCommand,
}

pub(crate) enum LaunchedCommand {
    /// Words, and whether further words follow.
    Words(Vec<String>, bool),
    /// A script for a shell.
    Script(String),
}

/// A file that an option writes, and the index of the word that names it.
pub(crate) struct LaunchedWrite {
    pub(crate) path: String,
    pub(crate) through: usize,
}

impl ProgramLaunch {
    /// A command with a hidden start.
    pub(crate) fn hidden(through: usize, why: &'static str) -> Self {
        let hidden = HiddenStart {
            through,
            by_variable: false,
            why,
        };
        Self {
            hidden: Some(hidden),
            ..Self::default()
        }
    }

    /// A command that begins at one of the words.
    pub(crate) fn command(words: &[String], at: usize) -> Self {
        let start = LaunchedStart {
            label: words[..at].join(" "),
            through: words.len() - 1,
            what: LaunchedCommand::Words(words[at..].to_vec(), false),
        };
        Self {
            starts: vec![start],
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.writes.is_empty() && self.hidden.is_none()
    }
}

impl ProgramEntries {
    /// The commands that these words start; `None` if they start nothing.
    pub(crate) fn launch(&self, words: &[String]) -> Option<ProgramLaunch> {
        let launch = reading::read(&self.0, words);
        (!launch.is_empty()).then_some(launch)
    }
}

/// The entries of all programs, by name.
pub(crate) fn entries_by_name() -> HashMap<&'static str, ProgramEntries> {
    let tables = [
        development::PROGRAMS,
        files::PROGRAMS,
        git::PROGRAMS,
        interpreters::PROGRAMS,
        remote::PROGRAMS,
        wrappers::PROGRAMS,
    ];
    let mut programs: HashMap<_, ProgramEntries> = HashMap::new();
    for entry in tables.into_iter().flatten() {
        for name in entry.names.split(' ') {
            programs.entry(name).or_default().0.push(entry);
        }
    }
    programs
}

/// Whether a name matches a pattern with at most a few `*`. Case is ignored.
fn name_fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = strip_prefix_ignoring_case(name, first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let found =
            (0..=rest.len()).find_map(|at| strip_prefix_ignoring_case(rest.get(at..)?, piece));
        match found {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    let start = rest.len().checked_sub(last.len());
    start
        .and_then(|start| rest.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(last))
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_name_and_a_reason() {
        let programs = entries_by_name();
        assert!(programs.len() > 150, "{}", programs.len());
        for (name, ProgramEntries(entries)) in programs {
            assert!(!name.is_empty());
            for entry in &entries {
                assert!(entry.reason.len() > 8, "{name}");
                let options = entry.options.iter().flat_map(|(names, _)| names.split(' '));
                assert!(
                    options.clone().all(|option| option.starts_with(['-', '+'])),
                    "{name}"
                );
                let mut sorted: Vec<&str> = options.collect();
                let count = sorted.len();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), count, "an option of {name} is listed twice");
            }
            let general = entries.iter().filter(|entry| entry.subcommands.is_empty());
            assert!(general.count() <= 1, "{name} is listed twice");
        }
    }

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, fits) in [
            ("core.pager", "core.pager", true),
            ("core.pager", "Core.Pager", true),
            ("core.pager", "core.pagers", false),
            ("alias.*", "alias.x", true),
            ("alias.*", "aliases", false),
            ("diff.*.textconv", "diff.a.b.textconv", true),
            ("diff.*.textconv", "diff.textconv", false),
            ("*", "", true),
            ("LC_*", "é", false),
        ] {
            assert_eq!(name_fits(pattern, name), fits, "{pattern} {name}");
        }
    }
}
