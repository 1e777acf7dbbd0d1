//! Errors in the declaration of a command.

use toolpost_model::ToolIdError;
use toolpost_processes::{EnvironmentRefusal, shown};

/// A declared command that cannot become a tool.
#[derive(Debug, thiserror::Error)]
#[error("command `{}`: {problem}", shown(.command))]
pub struct CommandError {
    /// The command.
    pub command: String,
    /// The problem.
    #[source]
    pub problem: CommandProblem,
}

/// Why a declared command cannot become a tool.
#[derive(Debug, thiserror::Error)]
pub enum CommandProblem {
    /// The name is not valid for a tool.
    #[error(transparent)]
    Name(ToolIdError),
    /// The name has characters that some models cannot call.
    #[error("a name can have up to 64 letters, digits, `_` and `-`")]
    NameForm,
    /// The command is empty.
    #[error("`argv` is empty; it begins with the program to run")]
    NoProgram,
    /// The program comes from a parameter.
    #[error("the program `{program}` must not come from a parameter")]
    ProgramFromParameter {
        /// The first entry of `argv`.
        program: String,
    },
    /// A template that cannot be parsed.
    #[error("`{template}` cannot be read: {reason}")]
    Template {
        /// The argument or text.
        template: String,
        /// The reason.
        reason: &'static str,
    },
    /// A template names a parameter that is not declared.
    #[error("`{template}` names the parameter `{name}`, which is not declared")]
    UnknownParameter {
        /// The argument or text.
        template: String,
        /// The parameter's name.
        name: String,
    },
    /// No template uses the parameter.
    #[error("no argument uses the parameter `{name}`")]
    UnusedParameter {
        /// Its name.
        name: String,
    },
    /// A parameter with a name that templates cannot contain.
    #[error("`{name}` is not a name for a parameter; use letters, digits and `_`")]
    ParameterName {
        /// Its name.
        name: String,
    },
    /// A required parameter with a default.
    #[error("the parameter `{name}` is required, so its default is never used")]
    RequiredDefault {
        /// Its name.
        name: String,
    },
    /// A default that the parameter would refuse.
    #[error("the default of `{name}` does not fit: {reason}")]
    Default {
        /// The parameter.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A choice without choices.
    #[error("the parameter `{name}` has no values to choose from")]
    NoChoices {
        /// Its name.
        name: String,
    },
    /// A pattern that is not a regular expression.
    #[error("the pattern of `{name}` is not a regular expression")]
    Pattern {
        /// The parameter.
        name: String,
        /// The parser's error.
        #[source]
        source: Box<regex::Error>,
    },
    /// A working directory outside of the workspace.
    #[error("{0}")]
    Directory(String),
    /// A variable that is never passed.
    #[error(transparent)]
    Environment(EnvironmentRefusal),
    /// No exit code means success.
    #[error("no exit code means success")]
    NoSuccess,
}
