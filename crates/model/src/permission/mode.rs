//! Modes: the default when no rule matches.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Behavior;
use crate::{EffectClass, SandboxProfile};

/// The default when no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Mode")]
pub enum PermissionMode {
    /// Reads run; everything else asks.
    #[default]
    Default,
    /// Reads run; everything else is denied.
    Plan,
    /// Reads and workspace writes run; everything else asks.
    Edits,
    /// Calls that stay in the workspace or in the sandbox run; calls that would leave it ask.
    Sandboxed,
    /// Reads run; every call that would ask is denied, also when a rule asks.
    NeverAsk,
    /// Everything runs that no rule denies or asks about.
    Bypass,
}

/// The text is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode; the modes are plan, never-ask, default, edits, sandboxed, bypass")]
pub struct ModeError(pub String);

impl PermissionMode {
    /// Every mode, from the strictest to the loosest.
    pub const ALL: [Self; 6] = [
        Self::Plan,
        Self::NeverAsk,
        Self::Default,
        Self::Edits,
        Self::Sandboxed,
        Self::Bypass,
    ];

    /// The name in configuration and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::Edits => "edits",
            Self::Sandboxed => "sandboxed",
            Self::NeverAsk => "never-ask",
            Self::Bypass => "bypass",
        }
    }

    /// The mode's behavior for a class. `confined` is the profile that the host enforces on the call, if any.
    pub fn behavior(self, class: EffectClass, confined: Option<SandboxProfile>) -> Behavior {
        if class == EffectClass::Read {
            return Behavior::Allow;
        }
        let stays_inside = match (class, confined) {
            (EffectClass::Write, _) => true,
            (_, Some(SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite)) => true,
            (_, Some(SandboxProfile::Network | SandboxProfile::None) | None) => false,
        };
        match self {
            Self::Bypass => Behavior::Allow,
            Self::Edits if class == EffectClass::Write => Behavior::Allow,
            Self::Sandboxed if stays_inside => Behavior::Allow,
            Self::Plan | Self::NeverAsk => Behavior::Deny,
            Self::Default | Self::Edits | Self::Sandboxed => Behavior::Ask,
        }
    }

    /// The stricter of two modes, for configuration that may only restrict.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let place = |mode: Self| Self::ALL.iter().position(|&each| each == mode);
        if place(other) < place(self) {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PermissionMode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| ModeError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::PermissionMode;

    #[test]
    fn the_stricter_of_two_modes_wins() {
        assert_eq!(
            PermissionMode::Bypass.stricter(PermissionMode::Plan),
            PermissionMode::Plan
        );
        assert_eq!(
            PermissionMode::Default.stricter(PermissionMode::Edits),
            PermissionMode::Default
        );
        assert_eq!(
            PermissionMode::Sandboxed.stricter(PermissionMode::NeverAsk),
            PermissionMode::NeverAsk
        );
    }
}
