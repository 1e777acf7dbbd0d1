//! `roots` and `protect`: which folders, and what in them is not to be touched lightly.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::ResourceAccess;

use crate::LocatedValue;

/// A folder beside the workspace that tools may work in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootEntry {
    /// The folder, relative to this file.
    pub path: LocatedValue<PathBuf>,
    /// What tools may do there.
    #[serde(default)]
    pub access: RootAccess,
}

/// What tools may do in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootAccess {
    /// Look at it.
    #[default]
    Read,
    /// Change it, too.
    Write,
}

impl RootAccess {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl From<RootAccess> for ResourceAccess {
    fn from(access: RootAccess) -> Self {
        match access {
            RootAccess::Read => Self::Read,
            RootAccess::Write => Self::Write,
        }
    }
}

/// Paths whose change asks even where writing is allowed, and which sandboxed commands cannot write.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectSection {
    /// Whether the usual ones are protected: version control, hooks, CI, editor and agent settings, start-up files
    /// of shells, and this file.
    pub defaults: Option<LocatedValue<bool>>,
    /// Whether `.git` is among them. Without it, sandboxed commands can commit.
    pub git: Option<LocatedValue<bool>>,
    /// Further ones: globs from the top of each root, such as `deploy/**`.
    pub paths: Vec<LocatedValue<String>>,
}
