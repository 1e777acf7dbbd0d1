//! What confines a process: what is asked for, and what was really applied.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a process may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxProfile {
    /// Reads the system and the roots; writes only its private temporary directory; no network.
    ReadOnly,
    /// Also writes the writable roots, apart from protected paths.
    #[default]
    WorkspaceWrite,
    /// The same with the network.
    Network,
    /// Not confined; only the environment is clean and the process tree is ended with the call.
    None,
}

impl SandboxProfile {
    /// The word in configurations and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Network => "network",
            Self::None => "none",
        }
    }

    /// The one of two that allows less: each allows all that the ones before it do.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let room = |profile: Self| match profile {
            Self::ReadOnly => 0,
            Self::WorkspaceWrite => 1,
            Self::Network => 2,
            Self::None => 3,
        };
        if room(other) < room(self) {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for SandboxProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much confinement this machine can give. Found by trying, not by asking.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum SandboxTier {
    /// Namespaces, Landlock and a system call filter.
    A,
    /// Landlock and a system call filter; no namespaces, as in most containers.
    B,
    /// A system call filter only: files are not confined.
    C,
    /// Nothing.
    N,
}

impl SandboxTier {
    /// What it consists of.
    pub fn explain(self) -> &'static str {
        match self {
            Self::A => "namespaces, Landlock and a system call filter",
            Self::B => "Landlock and a system call filter, without namespaces",
            Self::C => "a system call filter only; files are not confined",
            Self::N => "none",
        }
    }
}

/// What would confine a process of a call, as far as that can be told before it starts. What really did is told by
/// [`AppliedSandbox`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxPlan {
    /// What it may do.
    pub profile: SandboxProfile,
    /// What the machine can give.
    pub tier: SandboxTier,
    /// Whether it reaches the network.
    pub network: bool,
    /// Folders it may write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Further folders it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// Nothing is started where the machine cannot give all of it.
    pub required: bool,
    /// What the machine cannot give of it, where that is so much that the call asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
    /// What the profile promises and the machine did not give when that was tried. Empty: everything is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl fmt::Display for SandboxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.profile;
        let tier = self.tier;
        match (profile, tier) {
            (SandboxProfile::None, _) => {
                f.write_str("none: the operator lets it run unconfined")?;
            }
            (_, SandboxTier::N) => {
                write!(
                    f,
                    "{profile} is asked for, and this machine gives nothing (tier N)"
                )?;
            }
            (_, SandboxTier::A | SandboxTier::B | SandboxTier::C) => {
                write!(f, "{profile} on tier {tier:?} ({})", tier.explain())?;
            }
        }
        f.write_str(if self.network {
            ", with the network"
        } else {
            ", without network"
        })?;
        match self.missing.as_slice() {
            [] => Ok(()),
            missing => write!(f, "; missing: {}", missing.join("; ")),
        }
    }
}

/// What really confined a process: reported by the launcher right before the process began, never what was wished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedSandbox {
    /// What the machine can give.
    pub tier: SandboxTier,
    /// What was asked for.
    pub requested: SandboxProfile,
    /// Where it may write; the private temporary directory is `tmp`.
    pub fs_write: Vec<String>,
    /// What it may read: `system+roots`, or `everything`.
    pub fs_read: String,
    /// Paths inside of writable roots that it may not write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
    /// How many paths are hidden from it.
    #[serde(default)]
    pub masked: usize,
    /// `none` or `host`, with the means in brackets.
    pub net: String,
    /// Landlock's version, where it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock_abi: Option<u32>,
    /// The system call filter is in force.
    pub seccomp: bool,
    /// Capabilities left: `none` or `kept`.
    pub caps: String,
    /// It runs in a user namespace.
    pub userns: bool,
    /// The bound on processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<SandboxLimit>,
    /// The bound on memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SandboxLimit>,
    /// What the profile promises and this machine could not give. Empty: everything is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Protected paths at the top of a root that came into being while it ran: nothing can keep a process from making a
    /// name. Found when it had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_created: Vec<String>,
}

/// A bound, and what enforces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLimit {
    /// The bound.
    pub limit: u64,
    /// Such as `cgroup1`, `cgroup2` or `rlimit`.
    pub by: String,
}

#[cfg(test)]
mod tests {
    use super::SandboxProfile::{Network, None, ReadOnly, WorkspaceWrite};

    #[test]
    fn the_stricter_of_two_profiles_wins() {
        assert_eq!(WorkspaceWrite.stricter(ReadOnly), ReadOnly);
        assert_eq!(ReadOnly.stricter(None), ReadOnly);
        assert_eq!(None.stricter(Network), Network);
        assert_eq!(Network.stricter(Network), Network);
    }
}
