//! Hooks as used.

use std::{path::PathBuf, time::Duration};

use toolpost_model::{HookEvent, HookStanding, SandboxProfile, Selector, ToolPattern};

/// A program that looks at calls, checked and with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {
    /// What records and messages call it.
    pub name: String,
    /// When it is asked. Never empty.
    pub events: Vec<HookEvent>,
    /// About calls of which tools; empty: of every tool.
    pub tools: Vec<ToolPattern>,
    /// Of those only the calls that this fits.
    pub when: Option<Selector>,
    /// The program and its arguments. Never empty.
    pub command: Vec<String>,
    /// The files among them that were written relative to the configuration.
    pub files: Vec<PathBuf>,
    /// What its failure means.
    pub standing: HookStanding,
    /// How long it may take; the host says where it does not.
    pub timeout: Option<Duration>,
    /// What it may do.
    pub profile: SandboxProfile,
    /// Folders it may write, whatever its profile says.
    pub writable: Vec<PathBuf>,
    /// Names of variables it gets beside those of the sandbox.
    pub environment: Vec<String>,
    /// File and line of its entry.
    pub place: String,
}

impl HookConfig {
    /// A hook is to look, not to touch.
    pub(crate) const PROFILE: SandboxProfile = SandboxProfile::ReadOnly;
}
