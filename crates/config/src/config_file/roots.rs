//! `roots` and `protect`: the folders of tools, and the protected paths in them.

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
    /// The permitted access.
    #[serde(default)]
    pub access: RootAccess,
}

/// The access of tools to a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootAccess {
    /// Read.
    #[default]
    Read,
    /// Read and write.
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

/// Paths that need an approval to change, even where writing is allowed. Sandboxed commands cannot write them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectSection {
    /// Whether the usual paths are protected: version control, hooks, CI, editor and agent settings, start-up files of
    /// shells, and this file.
    pub defaults: Option<LocatedValue<bool>>,
    /// Whether `.git` is protected. If not, sandboxed commands can commit.
    pub git: Option<LocatedValue<bool>>,
    /// Further protected paths: globs from the top of each root, such as `deploy/**`.
    pub paths: Vec<LocatedValue<String>>,
}
