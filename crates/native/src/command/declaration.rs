//! A command as an operator declares it.

use std::collections::BTreeMap;

use serde_json::{Number, Value};
use toolpost_model::{EffectClass, SandboxProfile};

/// A program that is to be a tool.
#[derive(Clone, Debug)]
pub struct CommandDeclaration {
    /// The tool's name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The program and its arguments. `{name}` stands for a parameter's value, alone or inside an argument; an argument
    /// whose parameter is not given is left out. `{name?text}` is the argument `text` if the flag is set or the
    /// parameter given. `{{` and `}}` are braces.
    pub argv: Vec<String>,
    /// By name.
    pub parameters: BTreeMap<String, CommandParameter>,
    /// What it reads: a text with `{name}` in it. Without one its input is closed.
    pub stdin: Option<String>,
    /// Where it runs, relative to the workspace; the workspace itself where there is none.
    pub working_directory: Option<String>,
    /// What confines it; what fits its class where there is none.
    pub profile: Option<SandboxProfile>,
    /// What kind of effect it has.
    pub class: EffectClass,
    /// Variables it is given beside those that every process gets.
    pub environment: BTreeMap<String, String>,
    /// What its output is.
    pub output: CommandOutputFormat,
    /// Exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// Most bytes of output that are shown, or, for JSON and lines, taken.
    pub max_output: Option<usize>,
}

impl CommandDeclaration {
    /// A command without parameters that may do what commands may do.
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

    /// What confines it: a command that is said only to read is kept from writing.
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
    /// What its values are.
    pub kind: CommandParameterType,
    /// What it means, for the model.
    pub description: String,
    /// It must be given.
    pub required: bool,
    /// What it is where it is not given.
    pub default: Option<Value>,
    /// A value may begin with `-` where a program could take it for an option.
    pub allow_dash: bool,
}

/// What the values of a parameter are.
#[derive(Clone, Debug)]
pub enum CommandParameterType {
    /// Any text.
    Text {
        /// What the whole of it must look like: a regular expression.
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
    /// A path inside the workspace's roots. The command is given it as an absolute path without links.
    Path,
    /// One of these texts.
    Choice(Vec<String>),
}

/// What a command writes.
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
