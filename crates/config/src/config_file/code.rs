//! `code`: the limits of programs that a model writes.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, LocatedValue};

/// Programs that a model writes, run by `run_code`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodeSection {
    /// Tools that code may call: outside tools by id (`github.get_issue`, `github.*`), the host's own also by name;
    /// `*` matches any characters. Every tool by default. Each call is decided like any other.
    pub tools: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// The memory limit of the embedded interpreter.
    pub memory: Option<LocatedValue<ByteSize>>,
    /// The most tool calls of one run.
    pub calls: Option<LocatedValue<u32>>,
    /// Whether code may also use this machine's own Python, in the sandbox.
    pub python3: Option<LocatedValue<bool>>,
}
