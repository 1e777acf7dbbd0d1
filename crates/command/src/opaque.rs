//! What cannot be known from a text, and why.

use std::fmt;

use serde::Serialize;

use crate::render;

/// A piece of a text whose effect cannot be known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OpaquePart {
    /// The piece, shortened to one line.
    pub text: String,
    /// Why it cannot be known.
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

/// Why a piece of a text cannot be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OpaqueReason {
    /// Longer than is read.
    TooLong,
    /// More commands than are listed.
    TooManyCommands,
    /// Nested deeper than is read.
    TooDeep,
    /// A NUL or a carriage return, which shells and parsers read differently.
    ControlCharacter,
    /// Not valid bash, or not to this parser.
    NotParsed,
    /// The parser gave up in a way it should not.
    ParserFailed,
    /// A form that the shell and the parser may read differently.
    Ambiguous,
    /// A word that is only known once the shell has expanded it.
    DynamicWord,
    /// A file that is only known once the shell has expanded its name.
    DynamicRedirect,
    /// A variable set to what is only known once the shell has expanded it.
    DynamicAssignment,
    /// More variables, or longer ones, than are looked at.
    LargeEnvironment,
    /// An expression or a word that the shell would evaluate a second time.
    Evaluated,
    /// A redirection that opens a connection.
    NetworkRedirect,
    /// A shell that reads its commands from its input.
    ReadsCommands,
    /// The commands of a file, run in this shell.
    SourcedFile,
    /// A language or a dialect that is not bash.
    OtherShell,
    /// A function of this text under the name of a command.
    FunctionCalled,
    /// A change of the shell after which names may mean other programs.
    ChangedShell,
    /// A program that runs another one, with options that are not known here.
    UnknownWrapper,
}

impl fmt::Display for OpaqueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "too long to be read",
            Self::TooManyCommands => "more commands than can be listed",
            Self::TooDeep => "too deeply nested to be read",
            Self::ControlCharacter => "holds a NUL or a carriage return",
            Self::NotParsed => "cannot be parsed",
            Self::ParserFailed => "the parser failed on it",
            Self::Ambiguous => "shells may read it in more than one way",
            Self::DynamicWord => "holds a word that is known only when it runs",
            Self::DynamicRedirect => "redirects to a file that is known only when it runs",
            Self::DynamicAssignment => "sets a variable to what is known only when it runs",
            Self::LargeEnvironment => "is one of more variables than can be listed",
            Self::Evaluated => "holds an expression that the shell evaluates when it runs",
            Self::NetworkRedirect => "redirects to the network",
            Self::ReadsCommands => "a shell that reads its commands from its input",
            Self::SourcedFile => "runs the commands of a file in this shell",
            Self::OtherShell => "is not written for bash",
            Self::FunctionCalled => "calls a function under the name of a command",
            Self::ChangedShell => "runs after a change of what names mean",
            Self::UnknownWrapper => "runs another command in a way that is not known",
        })
    }
}
