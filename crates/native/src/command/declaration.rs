//! A command as an operator declares it.

use std::collections::BTreeMap;

use serde_json::{Number, Value};
use toolpost_model::{EffectClass, SandboxProfile};

/// A program that becomes a tool.
#[derive(Clone, Debug)]
pub struct CommandDeclaration {
    /// The tool's name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The program and its arguments. `{name}` stands for a parameter's value, alone or inside an argument; an argument
    /// with a missing parameter is left out. `{name?text}` is the argument `text` if the flag is set or the parameter
    /// given. `{{` and `}}` are braces.
    pub argv: Vec<String>,
    /// The parameters by name.
    pub parameters: BTreeMap<String, CommandParameter>,
    /// A template with `{name}` for its standard input. Without it the input is empty.
    pub stdin: Option<String>,
    /// The working directory relative to the workspace; the default is the workspace itself.
    pub working_directory: Option<String>,
    /// The sandbox profile; the default follows from the class.
    pub profile: Option<SandboxProfile>,
    /// The effect class.
    pub class: EffectClass,
    /// Variables in addition to those of every process.
    pub environment: BTreeMap<String, String>,
    /// The format of its output.
    pub output: CommandOutputFormat,
    /// Exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// The most bytes of output that are shown, or read in case of JSON and lines.
    pub max_output: Option<usize>,
}

impl CommandDeclaration {
    /// A command without parameters, with the default profile for commands.
    pub fn new(name: impl Into<String>, description: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            argv,
            parameters: BTreeMap::new(),
            stdin: None,
            working_directory: None,
            profile: None,
            class: EffectClass::Execute,
            environment: BTreeMap::new(),
            output: CommandOutputFormat::Text,
            success_codes: vec![0],
            max_output: None,
        }
    }

    /// The sandbox profile: a command of class `read` may not write.
    pub(super) fn profile(&self, usual: SandboxProfile) -> SandboxProfile {
        self.profile.unwrap_or(match self.class {
            EffectClass::Read => SandboxProfile::ReadOnly,
            EffectClass::Network => SandboxProfile::Network,
            EffectClass::Write | EffectClass::Execute | EffectClass::Unknown => usual,
        })
    }
}

/// One parameter of a command.
#[derive(Clone, Debug)]
pub struct CommandParameter {
    /// The type of its values.
    pub kind: CommandParameterType,
    /// The description for the model.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
    /// The value if it is not given.
    pub default: Option<Value>,
    /// Whether a value may begin with `-` where a program could take it for an option.
    pub allow_dash: bool,
}

/// The type of a parameter's values.
#[derive(Clone, Debug)]
pub enum CommandParameterType {
    /// Any text.
    Text {
        /// A regular expression that the whole text must match.
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
    /// A flag.
    Boolean,
    /// A path in the workspace's roots. The command gets it as an absolute path without links.
    Path,
    /// One of these texts.
    Choice(Vec<String>),
}

/// The format of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandOutputFormat {
    /// Text for the model, standard error included.
    #[default]
    Text,
    /// One JSON value on standard output.
    Json,
    /// Lines on standard output.
    Lines,
}
