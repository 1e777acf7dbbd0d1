//! Why a declared command cannot be a tool.

use toolpost_model::ToolIdError;
use toolpost_processes::{EnvironmentRefusal, shown};

/// Why a declared command cannot be a tool.
#[derive(Debug, thiserror::Error)]
#[error("command `{}`: {problem}", shown(.command))]
pub struct CommandError {
    /// The command.
    pub command: String,
    /// What is wrong with it.
    #[source]
    pub problem: CommandProblem,
}

/// What is wrong with a declared command.
#[derive(Debug, thiserror::Error)]
pub enum CommandProblem {
    /// The name cannot be a tool's.
    #[error(transparent)]
    Name(ToolIdError),
    /// The name has characters that not every model can call.
    #[error("a name has letters, digits, `_` and `-`, at most 64 of them")]
    NameForm,
    /// Nothing to run.
    #[error("`argv` is empty; it begins with the program to run")]
    NoProgram,
    /// The program is not fixed.
    #[error("the program `{program}` must not come from a parameter")]
    ProgramFromParameter {
        /// The first entry of `argv`.
        program: String,
    },
    /// A template that cannot be read.
    #[error("`{template}` cannot be read: {reason}")]
    Template {
        /// The argument or text.
        template: String,
        /// Why.
        reason: &'static str,
    },
    /// A template names something that is not there.
    #[error("`{template}` names the parameter `{name}`, which is not declared")]
    UnknownParameter {
        /// The argument or text.
        template: String,
        /// The name.
        name: String,
    },
    /// A parameter that changes nothing.
    #[error("no argument uses the parameter `{name}`")]
    UnusedParameter {
        /// Its name.
        name: String,
    },
    /// A parameter whose name templates cannot hold.
    #[error("`{name}` is not a name for a parameter; letters, digits and `_` make one")]
    ParameterName {
        /// Its name.
        name: String,
    },
    /// A parameter that must be given and has a default.
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
        /// Why.
        reason: String,
    },
    /// A choice without choices.
    #[error("the parameter `{name}` has no values to choose from")]
    NoChoices {
        /// Its name.
        name: String,
    },
    /// A pattern that is no regular expression.
    #[error("the pattern of `{name}` is no regular expression")]
    Pattern {
        /// The parameter.
        name: String,
        /// What is wrong with it.
        #[source]
        source: Box<regex::Error>,
    },
    /// A working directory outside of the workspace.
    #[error("{0}")]
    Directory(String),
    /// A variable that is never passed.
    #[error(transparent)]
    Environment(EnvironmentRefusal),
    /// No exit code would ever be a success.
    #[error("there is no exit code that means success")]
    NoSuccess,
}
