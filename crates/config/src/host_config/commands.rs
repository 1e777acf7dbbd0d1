//! Tools that run a command line, checked and with every default filled in.

use std::{fmt, path::PathBuf};

use serde_json::{Number, Value};
use toolpost_model::{EffectClass, SandboxProfile};

use crate::CommandOutput;

/// A tool that runs a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandConfig {
    /// The tool's name.
    pub name: String,
    /// The purpose of the tool, for the model.
    pub description: String,
    /// The program, without parameters in its name, and its arguments. Never empty.
    pub argv: Vec<CommandTemplateConfig>,
    /// The parameters, sorted by name. Each is used in `argv` or `stdin`.
    pub parameters: Vec<ParameterConfig>,
    /// The program's standard input.
    pub stdin: Option<CommandTemplateConfig>,
    /// The folder that it starts in, relative to the workspace.
    pub working_directory: Option<PathBuf>,
    /// The sandbox profile. `None`: it follows from the class and the sandbox's default profile.
    pub profile: Option<SandboxProfile>,
    /// The effect class of its calls.
    pub class: EffectClass,
    /// Names of variables that it gets beside those of the sandbox.
    pub environment: Vec<String>,
    /// The format of its output.
    pub output: CommandOutput,
    /// Exit codes that mean success. Never empty.
    pub success_codes: Vec<i32>,
    /// The most output that is shown or, for JSON and lines, parsed, in bytes.
    pub max_output: Option<u64>,
    /// File and line of its entry.
    pub place: String,
}

impl CommandConfig {
    /// The default effect class of calls: a program can do anything that the sandbox permits.
    pub(crate) const CLASS: EffectClass = EffectClass::Execute;
    /// The usual exit code for success.
    pub(crate) const SUCCESS: [i32; 1] = [0];
}

/// A parameter of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterConfig {
    /// Its name.
    pub name: String,
    /// The purpose of the parameter, for the model.
    pub description: Option<String>,
    /// The kind of its values.
    pub kind: ParameterKind,
    /// The value if the model gives none. It fits the kind.
    pub default: Option<Value>,
    /// Whether the model must give it. Never together with a default.
    pub required: bool,
    /// Whether a value may begin with `-` where the program could read it as an option.
    pub allow_dash: bool,
}

/// The kind of a parameter's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A text.
    String {
        /// A valid regular expression that the whole text must match.
        pattern: Option<String>,
    },
    /// A whole number.
    Integer {
        /// The smallest.
        minimum: Option<i64>,
        /// The largest.
        maximum: Option<i64>,
    },
    /// A number.
    Number {
        /// The smallest.
        minimum: Option<Number>,
        /// The largest.
        maximum: Option<Number>,
    },
    /// True or false.
    Boolean,
    /// A path in one of the roots.
    Path,
    /// One of these texts. Never empty.
    Enum(Vec<String>),
}

/// A text with placeholders for parameters. It prints as in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTemplateConfig {
    /// The parameter that must be given, or be true, for the text to be used at all: `{name?text}`.
    pub condition: Option<String>,
    /// Its parts.
    pub pieces: Vec<TemplatePieceConfig>,
}

/// A part of a [`CommandTemplateConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePieceConfig {
    /// Literal text.
    Text(String),
    /// The value of the parameter of this name.
    Parameter(String),
}

impl CommandTemplateConfig {
    /// The names of the parameters in it.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        let filled_in = self.pieces.iter().filter_map(|piece| match piece {
            TemplatePieceConfig::Parameter(name) => Some(name.as_str()),
            TemplatePieceConfig::Text(_) => None,
        });
        self.condition.as_deref().into_iter().chain(filled_in)
    }
}

impl fmt::Display for CommandTemplateConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.condition {
            write!(f, "{{{name}?")?;
        }
        for piece in &self.pieces {
            match piece {
                TemplatePieceConfig::Text(text) => {
                    f.write_str(&text.replace('{', "{{").replace('}', "}}"))?;
                }
                TemplatePieceConfig::Parameter(name) => write!(f, "{{{name}}}")?,
            }
        }
        if self.condition.is_some() {
            f.write_str("}")
        } else {
            Ok(())
        }
    }
}
