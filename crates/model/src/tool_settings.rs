//! What an operator can set for one tool. The configuration resolves its files into these settings, and the core applies
//! them on top of what the tool declares. `None` or empty leaves a thing as the tool declares it.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::{
    ArgumentMeaning, EffectClass, Interrupt, PersistStrategy, Requirements, SandboxProfile,
};

/// What an operator can set for one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Where the tool is seen, and under which name.
    pub surface: ToolSurfaceSettings,
    /// What its arguments are: how large, filled in with what, and which of them are secret.
    pub input: ToolInputSettings,
    /// What rules and modes read.
    pub permission: ToolPermissionSettings,
    /// When, how long and in which confines it runs.
    pub execution: ToolExecutionSettings,
    /// How much of a result is shown and kept.
    pub persistence: ToolPersistenceSettings,
}

/// Where a tool is seen, and under which name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSurfaceSettings {
    /// `false` takes it off every surface.
    pub enabled: Option<bool>,
    /// `true` keeps it from agents: only operators see and call it.
    pub hidden: Option<bool>,
    /// Its name on the wire.
    pub name: Option<String>,
    /// Whether it stays out of lists until a search shows it.
    pub deferred: Option<bool>,
    /// What a surface must offer before it shows the tool.
    pub requires: Option<Requirements>,
}

/// What the arguments of a tool are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolInputSettings {
    /// The largest arguments of one call, in bytes.
    pub argument_bytes: Option<usize>,
    /// Arguments kept out of every record, as JSON pointers, beside those the schema marks.
    pub sensitive: Vec<String>,
    /// Arguments that are filled in where a call leaves them out.
    pub defaults: Map<String, Value>,
}

/// What rules and modes read of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPermissionSettings {
    /// What its calls count as: the operator vouches for it.
    pub class: Option<EffectClass>,
    /// Ask a person even where the mode would allow.
    pub approval_required: Option<bool>,
    /// What arguments mean to rules.
    pub arguments: Vec<ArgumentMeaning>,
}

/// When, how long and in which confines a tool runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolExecutionSettings {
    /// How long one call may run; without a `ceiling`, also the most a caller may ask for.
    pub timeout: Option<Duration>,
    /// The most a caller may ask for.
    pub ceiling: Option<Duration>,
    /// How many of its calls run at the same time, in all sessions together.
    pub concurrency: Option<usize>,
    /// Whether it runs alone in its session: the operator's word replaces the tool's.
    pub exclusive: Option<bool>,
    /// Whether running it twice equals running it once: the operator vouches for it.
    pub idempotent: Option<bool>,
    /// What becomes of a running call when others of its batch are canceled.
    pub interrupt: Option<Interrupt>,
    /// What confines its processes, where that is stricter than what confines them anyway.
    pub sandbox: Option<SandboxProfile>,
}

/// How much of a tool's results is shown and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPersistenceSettings {
    /// The longest text shown whole, in characters.
    pub max_inline_chars: Option<usize>,
    /// What becomes of a result that is too long to be shown whole.
    pub keep: Option<PersistStrategy>,
}
