//! Tools made of a command line, checked and with every default filled in.

use std::{fmt, path::PathBuf};

use serde_json::{Number, Value};
use toolpost_model::{EffectClass, SandboxProfile};

use crate::CommandOutput;

/// A tool made of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandConfig {
    /// The tool's name.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// The program, which holds no parameter, and its arguments. Never empty.
    pub argv: Vec<CommandTemplateConfig>,
    /// What the model may give, in the order of their names. Each is used in `argv` or `stdin`.
    pub parameters: Vec<ParameterConfig>,
    /// What the program reads from standard input.
    pub stdin: Option<CommandTemplateConfig>,
    /// The folder it starts in, from the workspace.
    pub working_directory: Option<PathBuf>,
    /// What it may do. Where nobody says, that follows from its class and the sandbox's own profile.
    pub profile: Option<SandboxProfile>,
    /// What its calls count as.
    pub class: EffectClass,
    /// Names of variables it gets beside those of the sandbox.
    pub environment: Vec<String>,
    /// How its output is read.
    pub output: CommandOutput,
    /// Exit codes that mean that it went well. Never empty.
    pub success_codes: Vec<i32>,
    /// The most output that is shown or, for JSON and lines, taken, in bytes.
    pub max_output: Option<u64>,
    /// File and line of its entry.
    pub place: String,
}

impl CommandConfig {
    /// What calls count as where the file does not say: a program can do anything the sandbox lets it.
    pub(crate) const CLASS: EffectClass = EffectClass::Execute;
    /// The exit code that usually means that it went well.
    pub(crate) const SUCCESS: [i32; 1] = [0];
}

/// Something the model gives to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterConfig {
    /// Its name.
    pub name: String,
    /// What the model reads.
    pub description: Option<String>,
    /// What values it takes.
    pub kind: ParameterKind,
    /// What is taken where the model gives nothing. Of the right kind.
    pub default: Option<Value>,
    /// Whether the model must give it. Never together with a default.
    pub required: bool,
    /// Whether a value may begin with `-` where the program could take it for an option.
    pub allow_dash: bool,
}

/// What values a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A text.
    String {
        /// A regular expression that the whole of it must match. Its syntax is right.
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

/// A text with places for parameters. It prints as it is written in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTemplateConfig {
    /// The parameter that must be given, or be true, for the text to be there at all: `{name?text}`.
    pub condition: Option<String>,
    /// Its parts.
    pub pieces: Vec<TemplatePieceConfig>,
}

/// A part of a [`CommandTemplateConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePieceConfig {
    /// Taken as it is.
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
