//! A file's place among the others: who vouches for it, and what it was not allowed to say.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use toolpost_amplifier::MountPlan;
use toolpost_model::RuleOrigin;

use crate::{IncludeEntry, LocatedValue, McpServersFile, ParsedConfig};

/// Who vouches for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerTrust {
    /// The operator named it or said `toolpost trust` to these bytes. It may say everything.
    Trusted,
    /// It was found in the workspace, where agents can write. It may only restrict.
    Untrusted,
    /// What there is now cannot be read, and this is what last could. It may only restrict.
    LastGood,
}

/// One file's settings on the way to a [`HostConfig`](crate::HostConfig).
#[derive(Clone, Debug)]
pub struct ConfigLayer {
    /// What it says.
    pub parsed: ParsedConfig,
    /// Whether it may say everything.
    pub standing: LayerTrust,
    /// What its rules are recorded as. Not the same as the standing: a workspace's file can be trusted.
    pub origin: RuleOrigin,
    /// The folder that its relative paths begin in; empty leaves them as they are.
    pub base: PathBuf,
    /// The plans that its `include` names, in their order. Whoever makes the layer reads them: of one that is not trusted
    /// they do not count.
    pub plans: Vec<MountPlan>,
    /// The lists of MCP servers that its `include` names, in their order. The same holds for them.
    pub mcp_files: Vec<McpServersFile>,
    /// What every decision should say of it.
    pub note: Option<String>,
}

impl ConfigLayer {
    /// A layer whose relative paths are left as they are.
    pub fn new(parsed: ParsedConfig, standing: LayerTrust, origin: RuleOrigin) -> Self {
        Self {
            parsed,
            standing,
            origin,
            base: PathBuf::new(),
            plans: Vec::new(),
            mcp_files: Vec::new(),
            note: None,
        }
    }

    /// The layer of a file that can no longer be read: what it last said counts as far as it restricts, and every
    /// decision says that this is so.
    pub fn last_good(parsed: ParsedConfig, origin: RuleOrigin, note: impl Into<String>) -> Self {
        Self {
            note: Some(note.into()),
            ..Self::new(parsed, LayerTrust::LastGood, origin)
        }
    }

    /// Lets relative paths begin in the folder of the file.
    #[must_use]
    pub fn relative_to(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            base: folder.into(),
            ..self
        }
    }

    /// Brings the plans along that the file includes.
    #[must_use]
    pub fn with_plans(self, plans: Vec<MountPlan>) -> Self {
        Self { plans, ..self }
    }

    /// Brings the lists of MCP servers along that the file includes.
    #[must_use]
    pub fn with_mcp_files(self, mcp_files: Vec<McpServersFile>) -> Self {
        Self { mcp_files, ..self }
    }

    /// The plans that the file includes, from where its paths begin.
    pub fn includes(&self) -> impl Iterator<Item = PathBuf> {
        self.parsed
            .file()
            .include
            .iter()
            .filter_map(|entry| match &entry.value {
                IncludeEntry::Plan(path) => Some(self.beneath(path)),
                IncludeEntry::Mcp(_) | IncludeEntry::A2e(_) => None,
            })
    }

    /// The same of lists of MCP servers.
    pub fn mcp_includes(&self) -> impl Iterator<Item = PathBuf> {
        self.parsed
            .file()
            .include
            .iter()
            .filter_map(|entry| match &entry.value {
                IncludeEntry::Mcp(path) => Some(self.beneath(path)),
                IncludeEntry::Plan(_) | IncludeEntry::A2e(_) => None,
            })
    }

    /// The same of files of A2E hosts.
    pub fn a2e_includes(&self) -> impl Iterator<Item = PathBuf> {
        self.parsed
            .file()
            .include
            .iter()
            .filter_map(|entry| match &entry.value {
                IncludeEntry::A2e(path) => Some(self.beneath(path)),
                IncludeEntry::Plan(_) | IncludeEntry::Mcp(_) => None,
            })
    }

    /// A path as written, from where the layer's paths begin.
    pub(crate) fn path(
        &self,
        written: &Option<LocatedValue<PathBuf>>,
    ) -> Option<LocatedValue<Option<PathBuf>>> {
        written.as_ref().map(|path| LocatedValue {
            value: Some(self.base.join(&path.value)),
            at: path.at,
        })
    }

    /// The same of a path that must be there.
    pub(crate) fn beneath(&self, written: &Path) -> PathBuf {
        self.base.join(written)
    }
}

/// Something a file said that does not count, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigNotice {
    /// The key, such as `limits.queue`.
    pub key: String,
    /// File and line.
    pub place: String,
    /// One sentence for the operator.
    pub message: String,
}

impl fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}
