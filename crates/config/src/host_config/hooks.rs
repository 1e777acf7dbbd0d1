//! Hooks as used.

use std::{path::PathBuf, time::Duration};

use toolpost_model::{HookEvent, HookStanding, SandboxProfile, Selector, ToolPattern};

/// A hook program, checked and with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {
    /// Its name in records and messages.
    pub name: String,
    /// The moments at which it runs. Never empty.
    pub events: Vec<HookEvent>,
    /// The tools whose calls it gets; empty: all tools.
    pub tools: Vec<ToolPattern>,
    /// Limits it to the calls that match.
    pub when: Option<Selector>,
    /// The program and its arguments. Never empty.
    pub command: Vec<String>,
    /// The files among them with paths relative to the configuration.
    pub files: Vec<PathBuf>,
    /// The consequence of its failure.
    pub standing: HookStanding,
    /// Its time limit; `None`: the host's default.
    pub timeout: Option<Duration>,
    /// The sandbox profile of the program.
    pub profile: SandboxProfile,
    /// Folders that it may write under any profile.
    pub writable: Vec<PathBuf>,
    /// Names of variables that it gets beside those of the sandbox.
    pub environment: Vec<String>,
    /// File and line of its entry.
    pub place: String,
}

impl HookConfig {
    /// A hook reads, and needs no write access.
    pub(crate) const PROFILE: SandboxProfile = SandboxProfile::ReadOnly;
}
