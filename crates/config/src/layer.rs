//! A file's place among the others: its trust, and the settings that were ignored.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use toolpost_amplifier::MountPlan;
use toolpost_model::RuleOrigin;

use crate::{IncludeEntry, LocatedValue, McpServersFile, ParsedConfig};

/// The trust in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerTrust {
    /// The operator named it, or ran `toolpost trust` on exactly these bytes. It may set everything.
    Trusted,
    /// The file was found in the workspace, where agents can write. It may only restrict.
    Untrusted,
    /// The file cannot be read now, and this is its last readable text. It may only restrict.
    LastGood,
}

/// One file's settings on the way to a [`HostConfig`](crate::HostConfig).
#[derive(Clone, Debug)]
pub struct ConfigLayer {
    /// Its settings.
    pub parsed: ParsedConfig,
    /// Whether it may set everything.
    pub standing: LayerTrust,
    /// The origin of its rules in records. It differs from the trust: a workspace's file can be trusted.
    pub origin: RuleOrigin,
    /// The folder for its relative paths; empty leaves them as they are.
    pub base: PathBuf,
    /// The plans under its `include`, in their order. The caller reads them. The plans of an untrusted layer are
    /// ignored.
    pub plans: Vec<MountPlan>,
    /// The lists of MCP servers in its `include`, in their order. An untrusted layer's lists are ignored too.
    pub mcp_files: Vec<McpServersFile>,
    /// A note for every decision.
    pub note: Option<String>,
}

impl ConfigLayer {
    /// A layer with its relative paths left as they are.
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

    /// The layer of a file that can no longer be read: only the restrictions of its last text apply, and every
    /// decision notes that.
    pub fn last_good(parsed: ParsedConfig, origin: RuleOrigin, note: impl Into<String>) -> Self {
        Self {
            note: Some(note.into()),
            ..Self::new(parsed, LayerTrust::LastGood, origin)
        }
    }

    /// Resolves relative paths from the folder of the file.
    #[must_use]
    pub fn relative_to(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            base: folder.into(),
            ..self
        }
    }

    /// Adds the plans of the file's `include`.
    #[must_use]
    pub fn with_plans(self, plans: Vec<MountPlan>) -> Self {
        Self { plans, ..self }
    }

    /// Adds the lists of MCP servers of the file's `include`.
    #[must_use]
    pub fn with_mcp_files(self, mcp_files: Vec<McpServersFile>) -> Self {
        Self { mcp_files, ..self }
    }

    /// The paths of the included plans, resolved from the layer's folder.
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

    /// The paths of the included lists of MCP servers.
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

    /// The paths of the included files of A2E hosts.
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

    /// A path as written, resolved from the layer's folder.
    pub(crate) fn path(
        &self,
        written: &Option<LocatedValue<PathBuf>>,
    ) -> Option<LocatedValue<Option<PathBuf>>> {
        written.as_ref().map(|path| LocatedValue {
            value: Some(self.base.join(&path.value)),
            at: path.at,
        })
    }

    /// The same for a path that must exist.
    pub(crate) fn beneath(&self, written: &Path) -> PathBuf {
        self.base.join(written)
    }
}

/// An ignored setting of a file, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigNotice {
    /// The key, such as `limits.queue`.
    pub key: String,
    /// File and line.
    pub place: String,
    /// A sentence for the operator.
    pub message: String,
}

impl fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}
