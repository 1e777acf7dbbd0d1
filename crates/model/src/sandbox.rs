//! The confinement of a process: as requested, and as really applied.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The profile of a sandbox: the things that a process may do.
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
    /// The name in configurations and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Network => "network",
            Self::None => "none",
        }
    }

    /// The stricter of two profiles: each profile allows everything that the profiles before it allow.
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

/// The strength of confinement on this machine. Found by a trial run.
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
    /// The means of the tier.
    pub fn explain(self) -> &'static str {
        match self {
            Self::A => "namespaces, Landlock and a system call filter",
            Self::B => "Landlock and a system call filter, without namespaces",
            Self::C => "a system call filter only; files are not confined",
            Self::N => "none",
        }
    }
}

/// The confinement planned for a call's process. [`AppliedSandbox`] reports the confinement that was really applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxPlan {
    /// The profile.
    pub profile: SandboxProfile,
    /// The tier of the machine.
    pub tier: SandboxTier,
    /// Whether the process reaches the network.
    pub network: bool,
    /// Folders that it may write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Further folders that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// The process is not started on a machine that cannot apply all of this.
    pub required: bool,
    /// The gap between profile and machine, if it is so large that the call asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
    /// Parts of the profile that the machine did not provide in the trial. Empty: everything is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl fmt::Display for SandboxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.profile;
        let tier = self.tier;
        match (profile, tier) {
            (SandboxProfile::None, _) => {
                f.write_str("none: by the operator's setting, it runs unconfined")?;
            }
            (_, SandboxTier::N) => {
                write!(
                    f,
                    "{profile} is requested, and this machine offers no confinement (tier N)"
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

/// The confinement that was applied to a process. The launcher reports it right before the process begins, so it is a
/// fact and not a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedSandbox {
    /// The tier of the machine.
    pub tier: SandboxTier,
    /// The requested profile.
    pub requested: SandboxProfile,
    /// The folders that it may write; the private temporary directory is `tmp`.
    pub fs_write: Vec<String>,
    /// The scope of its reads: `system+roots`, or `everything`.
    pub fs_read: String,
    /// Paths inside of writable roots that it may not write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
    /// The number of paths hidden from it.
    #[serde(default)]
    pub masked: usize,
    /// `none` or `host`, with the means in brackets.
    pub net: String,
    /// The version of Landlock, where it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock_abi: Option<u32>,
    /// The system call filter is in force.
    pub seccomp: bool,
    /// Capabilities left: `none` or `kept`.
    pub caps: String,
    /// It runs in a user namespace.
    pub userns: bool,
    /// The limit of processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<SandboxLimit>,
    /// The limit of memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SandboxLimit>,
    /// Parts of the profile that this machine could not provide. Empty: everything is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Protected paths at the top of a root that appeared while the process ran: the sandbox cannot keep a process from
    /// making a name that did not exist. Found after its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_created: Vec<String>,
}

/// A limit, and the mechanism that enforces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLimit {
    /// The limit.
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
