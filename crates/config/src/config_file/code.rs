//! `code`: what programs that a model writes may use.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, LocatedValue};

/// Programs that a model writes, run by `run_code`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodeSection {
    /// Tools that code may call: outside tools by id (`github.get_issue`, `github.*`), the host's own also by name; `*`
    /// stands for any characters. Every tool by default. Each call is decided like any other.
    pub tools: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// The memory of the embedded interpreter.
    pub memory: Option<LocatedValue<ByteSize>>,
    /// Calls of tools that one run may make.
    pub calls: Option<LocatedValue<u32>>,
    /// Whether code may also ask for this machine's own Python, which runs in the sandbox.
    pub python3: Option<LocatedValue<bool>>,
}
