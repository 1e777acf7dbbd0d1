//! The result of an analysis: commands, redirections, and pieces that cannot be known.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;

use crate::directory::CommandDirectory;
use crate::opaque::{OpaquePart, OpaqueReason};
use crate::programs::HiddenStart;
use crate::reads;
use crate::walk::ScriptWalker;

/// The commands and files of a text that is given to `bash -c`, as far as they can be known without running it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Analysis {
    /// The commands that run or could run, in order of appearance.
    pub commands: Vec<SimpleCommand>,
    /// Files that the shell itself would open, in order of appearance.
    pub redirects: Vec<ShellRedirect>,
    /// Pieces with an unknown effect. If there is one, no list of commands is complete.
    pub opaque: Vec<OpaquePart>,
    /// Variables that are set for all commands from outside of the text, except variables that change nothing that a
    /// program does. Each command also lists them among its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<VariableAssignment>,
}

impl Analysis {
    /// Whether some piece of the text has an unknown effect.
    pub fn is_opaque(&self) -> bool {
        !self.opaque.is_empty()
    }

    /// Whether everything is known to change nothing and to use no network.
    pub fn only_reads(&self) -> bool {
        !self.is_opaque()
            && self.environment.is_empty()
            && self
                .redirects
                .iter()
                .all(|redirect| redirect.access == RedirectAccess::Read)
            && self.commands.iter().all(reads::only_reads)
    }
}

/// One program or builtin with its arguments.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SimpleCommand {
    /// The program and its arguments. For an opaque command, only the words before the first word that is not literal,
    /// so that a deny can still match them.
    pub words: Vec<String>,
    /// The variables that are set for it, except variables that change nothing that a program does.
    pub assignments: Vec<VariableAssignment>,
    /// Whether a word is not literal, or an earlier command may have changed the meaning of the words.
    pub opaque: bool,
    /// The reason why it starts commands that are not listed, if it does. In contrast to an opaque command, the command
    /// itself is known: a rule can allow it, and a rule that spells the words which select the hidden command allows
    /// the hidden command, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hides: Option<HiddenStart>,
    /// The command whose words contain this one: `git rebase --exec 'make x'` for `make x`. An allow that covers the
    /// outer command covers this one, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spelled_in: Option<SpelledIn>,
    /// The commands that start this one, outermost first: `sudo`, `timeout 5`, `sh -c`.
    pub within: Vec<String>,
    /// The directory it runs in, as far as the `cd`s before it are literal.
    pub directory: CommandDirectory,
    /// The command as one line for people and records.
    pub text: String,
}

/// The command of the analysis whose words contain another command or a file name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SpelledIn {
    /// The command's index in [`Analysis::commands`].
    pub command: usize,
    /// The last of its words that belongs to the inner command or file.
    pub through: usize,
    /// Whether an allow must spell the words up to there and not cover them with a star: a rule for `sort *` means the
    /// output of sort, and not the file that `-o` writes.
    pub must_be_spelled: bool,
}

/// A variable set for a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct VariableAssignment {
    /// The variable's name.
    pub name: String,
    /// The value, if it is literal.
    pub value: Option<String>,
}

/// A file that the shell opens for a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShellRedirect {
    /// The file as written, if it is literal.
    pub target: Option<String>,
    /// How the file is opened.
    pub access: RedirectAccess,
    /// The directory that a relative target starts from.
    pub directory: CommandDirectory,
    /// The command whose words contain the file name; `None` for a redirection of the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spelled_in: Option<SpelledIn>,
}

/// How a redirected file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectAccess {
    /// It is only read.
    Read,
    /// It is created, written, appended to or opened for both.
    Write,
}

/// Finds the commands that would run if `text` were given to `bash -c`.
///
/// This never fails: a text that cannot be parsed is opaque. The time is bounded by the text's length and nesting.
pub fn analyze(text: &str) -> Analysis {
    analyze_with(text, [])
}

/// Like [`analyze`], with these variables in the environment. Each variable counts as an assignment in front of every
/// command, nested commands included.
pub fn analyze_with<'a>(
    text: &str,
    environment: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Analysis {
    let mut walker = ScriptWalker::new();
    walker.set_environment(environment);
    // The parser is foreign code and its input is foreign, too. It panics on a few numbers that are too large, and a
    // panic must cost one answer and not the host. The bounds of `parse` keep it from endless time and stack; a panic
    // is the one failure that a bound cannot exclude. The walker is dropped after a panic, so its state does not
    // matter, and an opaque answer makes the host ask.
    let walk = AssertUnwindSafe(|| {
        walker.script(text);
        walker.finish()
    });
    catch_unwind(walk).unwrap_or_else(|_| Analysis {
        opaque: vec![OpaquePart::new(text, OpaqueReason::ParserFailed)],
        ..Analysis::default()
    })
}
