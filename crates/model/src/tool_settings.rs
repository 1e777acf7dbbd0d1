//! The operator's settings for one tool. The configuration resolves its files into these settings, and the core applies
//! them on top of the tool's declaration. `None` or empty keeps the declaration's value.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::{
    ArgumentMeaning, EffectClass, Interrupt, PersistStrategy, Requirements, SandboxProfile,
};

/// The operator's settings for one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Where and under which name the tool is visible.
    pub surface: ToolSurfaceSettings,
    /// Limits, defaults and sensitive fields of the arguments.
    pub input: ToolInputSettings,
    /// Settings for rules and modes.
    pub permission: ToolPermissionSettings,
    /// When, how long and under which confinement it runs.
    pub execution: ToolExecutionSettings,
    /// How much of a result is shown and kept.
    pub persistence: ToolPersistenceSettings,
}

/// Where and under which name a tool is visible.
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
    /// Conditions that a surface must meet before it shows the tool.
    pub requires: Option<Requirements>,
}

/// Limits, defaults and sensitive fields of a tool's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolInputSettings {
    /// The largest size of one call's arguments, in bytes.
    pub argument_bytes: Option<usize>,
    /// Arguments kept out of every record, as JSON pointers, beside those the schema marks.
    pub sensitive: Vec<String>,
    /// Arguments that are filled in where a call leaves them out.
    pub defaults: Map<String, Value>,
}

/// A tool's settings for rules and modes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPermissionSettings {
    /// The effect class of its calls; the operator vouches for it.
    pub class: Option<EffectClass>,
    /// Ask a person even where the mode would allow.
    pub approval_required: Option<bool>,
    /// The meaning of arguments to rules.
    pub arguments: Vec<ArgumentMeaning>,
}

/// When, how long and under which confinement a tool runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolExecutionSettings {
    /// The time limit of one call; without a `ceiling`, also the highest limit that a caller may ask for.
    pub timeout: Option<Duration>,
    /// The highest limit that a caller may ask for.
    pub ceiling: Option<Duration>,
    /// The limit of its concurrent calls, over all sessions.
    pub concurrency: Option<usize>,
    /// Whether it runs alone in its session; replaces the tool's own value.
    pub exclusive: Option<bool>,
    /// Whether running it twice equals running it once: the operator vouches for it.
    pub idempotent: Option<bool>,
    /// The handling of a running call when others of its batch are canceled.
    pub interrupt: Option<Interrupt>,
    /// The confinement of its processes, if stricter than their normal one.
    pub sandbox: Option<SandboxProfile>,
}

/// How much of a tool's results is shown and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPersistenceSettings {
    /// The longest text shown whole, in characters.
    pub max_inline_chars: Option<usize>,
    /// The handling of a result that is too long to show whole.
    pub keep: Option<PersistStrategy>,
}
