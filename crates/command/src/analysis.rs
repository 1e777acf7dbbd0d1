//! What is found in a command's text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;

use crate::directory::CommandDirectory;
use crate::opaque::{OpaquePart, OpaqueReason};
use crate::programs::HiddenStart;
use crate::reads;
use crate::walk::ScriptWalker;

/// Everything that running a text in `bash -c` would do, as far as the text tells.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Analysis {
    /// The commands that would or could run, in order of appearance.
    pub commands: Vec<SimpleCommand>,
    /// Files that would be opened by the shell itself, in order of appearance.
    pub redirects: Vec<ShellRedirect>,
    /// Pieces whose effect cannot be known; while there is one, no list of commands is complete.
    pub opaque: Vec<OpaquePart>,
    /// Variables that are set for all commands from outside of the text, except those that change no program's
    /// doings. Each command lists them among its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<VariableAssignment>,
}

impl Analysis {
    /// Whether some piece of the text cannot be known.
    pub fn is_opaque(&self) -> bool {
        !self.opaque.is_empty()
    }

    /// Whether everything is known, and known to change nothing and to reach for no network.
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
    /// The words as the program would get them, itself first. Of an opaque command these are only the words
    /// before the first that is not literal, so that a deny still sees what it can.
    pub words: Vec<String>,
    /// Variables set for it, except those that change no program's doings.
    pub assignments: Vec<VariableAssignment>,
    /// Whether some word is not literal, or an earlier command may have changed what the words mean.
    pub opaque: bool,
    /// Why it starts commands that are not listed, where it does. Unlike an opaque command it is known itself: a
    /// rule can allow it, and a rule that spells what selects the hidden command allows that too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hides: Option<HiddenStart>,
    /// The command whose words spell this one: `git rebase --exec 'make x'` for `make x`. An allow that covers that
    /// one covers this one, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spelled_in: Option<SpelledIn>,
    /// The commands that start this one, outermost first: `sudo`, `timeout 5`, `sh -c`.
    pub within: Vec<String>,
    /// Where it runs, as far as the `cd`s before it tell.
    pub directory: CommandDirectory,
    /// One line for people and records.
    pub text: String,
}

/// Another command of the analysis whose words name a command or a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SpelledIn {
    /// Its place among the commands.
    pub command: usize,
    /// The last of its words that name this.
    pub through: usize,
    /// Whether an allow has to spell the words up to there, as opposed to cover them with a star: a rule for
    /// `sort *` is about what sort shows, and not about the file that `-o` writes.
    pub must_be_spelled: bool,
}

/// A variable set for a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct VariableAssignment {
    /// The variable.
    pub name: String,
    /// What it is set to, unless that is not literal.
    pub value: Option<String>,
}

/// A file that the shell opens for a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShellRedirect {
    /// The file as written, unless that is not literal.
    pub target: Option<String>,
    /// What the file is opened for.
    pub access: RedirectAccess,
    /// Where a relative target is looked up.
    pub directory: CommandDirectory,
    /// The command whose words name the file, where it is no redirection of the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spelled_in: Option<SpelledIn>,
}

/// What a redirected file is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectAccess {
    /// It is only read.
    Read,
    /// It is created, written, appended to or opened for both.
    Write,
}

/// Finds what would run if `text` were given to `bash -c`.
///
/// Never fails: what cannot be read is opaque. The time is bounded by the text's length and nesting.
pub fn analyze(text: &str) -> Analysis {
    analyze_with(text, [])
}

/// Finds what would run if `text` were given to `bash -c` with these variables in its environment. Each variable
/// counts as an assignment in front of every command, nested commands included.
pub fn analyze_with<'a>(
    text: &str,
    environment: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Analysis {
    let mut walker = ScriptWalker::new();
    walker.set_environment(environment);
    // The parser is a stranger's code on a stranger's input. It panics on a few numbers that are too large,
    // and a panic here must cost one answer, not the host.
    let walk = AssertUnwindSafe(|| {
        walker.script(text);
        walker.finish()
    });
    catch_unwind(walk).unwrap_or_else(|_| Analysis {
        opaque: vec![OpaquePart::new(text, OpaqueReason::ParserFailed)],
        ..Analysis::default()
    })
}
