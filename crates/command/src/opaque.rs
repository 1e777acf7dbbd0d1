//! Opaque pieces of a text, with their reasons.

use std::fmt;

use serde::Serialize;

use crate::render;

/// A piece of a text with an unknown effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OpaquePart {
    /// The piece, shortened to one line.
    pub text: String,
    /// Why its effect is unknown.
    pub reason: OpaqueReason,
}

impl OpaquePart {
    pub(crate) fn new(text: &str, reason: OpaqueReason) -> Self {
        Self {
            text: render::shortened(text),
            reason,
        }
    }
}

/// Why the effect of a piece is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OpaqueReason {
    /// The text is longer than the limit.
    TooLong,
    /// The text has more commands than the limit.
    TooManyCommands,
    /// The text is nested deeper than the limit.
    TooDeep,
    /// A NUL or a carriage return, which shells and parsers read differently.
    ControlCharacter,
    /// Not valid bash, or not valid for this parser.
    NotParsed,
    /// The parser panicked.
    ParserFailed,
    /// A form that shell and parser may read differently.
    Ambiguous,
    /// A word that is known only after the shell has expanded it.
    DynamicWord,
    /// A file name that is known only after the shell has expanded it.
    DynamicRedirect,
    /// A variable with a value that is known only after the shell has expanded it.
    DynamicAssignment,
    /// More variables, or longer ones, than the limit.
    LargeEnvironment,
    /// An expression or a word that the shell would evaluate a second time.
    Evaluated,
    /// A redirection that opens a connection.
    NetworkRedirect,
    /// A shell that reads its commands from its input.
    ReadsCommands,
    /// The commands of a file, run in the same shell.
    SourcedFile,
    /// A language or a dialect that is not bash.
    OtherShell,
    /// A function of this text with the name of a command.
    FunctionCalled,
    /// A change of the shell after which names may stand for other programs.
    ChangedShell,
    /// A program that runs another one, with an option that the tables do not list.
    UnknownWrapper,
}

impl fmt::Display for OpaqueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "too long to be read",
            Self::TooManyCommands => "more commands than can be listed",
            Self::TooDeep => "too deeply nested to be read",
            Self::ControlCharacter => "contains a NUL or a carriage return",
            Self::NotParsed => "cannot be parsed",
            Self::ParserFailed => "the parser failed on it",
            Self::Ambiguous => "shells may read it in more than one way",
            Self::DynamicWord => "contains a word that is known only when it runs",
            Self::DynamicRedirect => "redirects to a file that is known only when it runs",
            Self::DynamicAssignment => "sets a variable to a value that is known only when it runs",
            Self::LargeEnvironment => "is one of more variables than can be listed",
            Self::Evaluated => "contains an expression that the shell evaluates when it runs",
            Self::NetworkRedirect => "redirects to the network",
            Self::ReadsCommands => "a shell that reads its commands from its input",
            Self::SourcedFile => "runs the commands of a file in this shell",
            Self::OtherShell => "is not written for bash",
            Self::FunctionCalled => "calls a function under the name of a command",
            Self::ChangedShell => "runs after commands may have been redefined",
            Self::UnknownWrapper => "runs another command in an unknown way",
        })
    }
}
