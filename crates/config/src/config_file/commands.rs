//! `commands`: tools that run a command line.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;
use toolpost_model::{EffectClass, SandboxProfile};

use crate::{ByteSize, ConfigScalar, LocatedValue};

/// A tool that runs a command line.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandEntry {
    /// The purpose of the tool, for the model.
    pub description: LocatedValue<String>,
    /// The program and its arguments, without a shell: `{name}` stands for a parameter, as a whole argument or as a
    /// part of one, and `{{` for a brace. An argument with a parameter without a value is left out, and
    /// `{name?--flag}` is the argument `--flag` if the parameter is true or given.
    #[schemars(length(min = 1))]
    pub argv: LocatedValue<Vec<LocatedValue<String>>>,
    /// The parameters of the tool, by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, LocatedValue<ParameterEntry>>,
    /// The program's standard input, with `{name}` for parameters. Without it, it is empty.
    #[serde(default)]
    pub stdin: Option<LocatedValue<String>>,
    /// The folder that the program starts in, relative to the workspace.
    #[serde(default)]
    pub working_directory: Option<LocatedValue<PathBuf>>,
    /// The sandbox profile of the program. By default: `read-only` for the class `read`, `network` for the class
    /// `network`, and `sandbox.profile` for others.
    #[serde(default)]
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// The effect class of the tool's calls, for rules and modes. You vouch for it.
    #[serde(default)]
    pub class: Option<LocatedValue<EffectClass>>,
    /// Variables of the host's environment for the program, beside those of `sandbox.environment`.
    #[serde(default)]
    pub environment: Vec<LocatedValue<String>>,
    /// The format of the program's output.
    #[serde(default)]
    pub output: Option<LocatedValue<CommandOutput>>,
    /// Exit codes that mean success.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub success_codes: Option<LocatedValue<Vec<LocatedValue<i32>>>>,
    /// The most output that is shown whole or, for `json` and `lines`, parsed.
    #[serde(default)]
    pub max_output: Option<LocatedValue<ByteSize>>,
}

/// A parameter of a command.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterEntry {
    /// The kind of its value.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// The purpose of the parameter, for the model.
    pub description: Option<LocatedValue<String>>,
    /// The allowed texts, for `enum`.
    pub values: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// The value if the model gives none.
    pub default: Option<LocatedValue<ConfigScalar>>,
    /// Whether the model must give it. By default, it must unless there is a `default`.
    pub required: Option<LocatedValue<bool>>,
    /// A regular expression that the whole of a `string` must match.
    pub pattern: Option<LocatedValue<String>>,
    /// Whether a value may begin with `-` where the program could read it as an option.
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
    /// A path in one of the roots. A path that leads out of them is refused.
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

/// The format of a program's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutput {
    /// As text.
    #[default]
    Text,
    /// As one JSON value. Other output is a failure.
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
