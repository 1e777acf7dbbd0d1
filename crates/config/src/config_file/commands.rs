//! `commands`: tools made of a command line.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;
use toolpost_model::{EffectClass, SandboxProfile};

use crate::{ByteSize, ConfigScalar, LocatedValue};

/// A tool made of a command line.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandEntry {
    /// What the tool does and when to use it. The model reads this.
    pub description: LocatedValue<String>,
    /// The program and its arguments. No shell reads them: `{name}` stands for a parameter, in an argument of its
    /// own or as part of one, and `{{` for a brace. An argument whose parameter has no value is left out, and
    /// `{name?--flag}` is the argument `--flag` where the parameter is true or given.
    #[schemars(length(min = 1))]
    pub argv: LocatedValue<Vec<LocatedValue<String>>>,
    /// What the model may give, by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, LocatedValue<ParameterEntry>>,
    /// What the program reads from standard input, with `{name}` for parameters. Without it, nothing.
    #[serde(default)]
    pub stdin: Option<LocatedValue<String>>,
    /// The folder the program starts in, relative to the workspace.
    #[serde(default)]
    pub working_directory: Option<LocatedValue<PathBuf>>,
    /// What the program may do. Where nobody says: `read-only` for the class `read`, `network` for the class
    /// `network`, and what `sandbox.profile` says for others.
    #[serde(default)]
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// What the tool's calls count as, for rules and modes. You vouch for it.
    #[serde(default)]
    pub class: Option<LocatedValue<EffectClass>>,
    /// Variables that the program gets from the host's environment, beside those of `sandbox.environment`.
    #[serde(default)]
    pub environment: Vec<LocatedValue<String>>,
    /// What the program prints.
    #[serde(default)]
    pub output: Option<LocatedValue<CommandOutput>>,
    /// Exit codes that mean that it went well.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub success_codes: Option<LocatedValue<Vec<LocatedValue<i32>>>>,
    /// The most output that is shown whole or, for `json` and `lines`, taken.
    #[serde(default)]
    pub max_output: Option<LocatedValue<ByteSize>>,
}

/// Something the model gives to a command.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterEntry {
    /// What kind of value it is.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// What it is for. The model reads this.
    pub description: Option<LocatedValue<String>>,
    /// The texts to choose from, for `enum`.
    pub values: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// What is taken where the model gives nothing.
    pub default: Option<LocatedValue<ConfigScalar>>,
    /// Whether the model must give it: without a default, yes.
    pub required: Option<LocatedValue<bool>>,
    /// A regular expression that the whole of a `string` must match.
    pub pattern: Option<LocatedValue<String>>,
    /// Whether a value may begin with `-` where the program could take it for an option.
    pub allow_dash: Option<LocatedValue<bool>>,
    /// The smallest `integer` or `number`.
    pub minimum: Option<LocatedValue<Number>>,
    /// The largest `integer` or `number`.
    pub maximum: Option<LocatedValue<Number>>,
}

/// The kind of a parameter's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterType {
    /// A text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A path in one of the roots. What leads out of them is refused.
    Path,
    /// One of `values`.
    Enum,
}

impl ParameterType {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Path => "path",
            Self::Enum => "enum",
        }
    }
}

/// How a program's output is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutput {
    /// As text.
    #[default]
    Text,
    /// As one JSON value. Anything else is a failure.
    Json,
    /// As a list of lines.
    Lines,
}

impl CommandOutput {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Lines => "lines",
        }
    }
}
