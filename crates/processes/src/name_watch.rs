//! Protected names that come into being at the top of a root while a process runs.
//!
//! A mount can cover what exists, and nothing keeps a process that may write a folder from making one certain name in it.
//! A stub to mount over would lie in the workspace for everybody to see, and stay there if the host were killed. So the
//! names are compared, and the result tells which ones are new.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use crate::workspace::{ProtectedPath, Workspace, shown};

/// The protected names that were there before a process began.
pub struct NameWatch {
    workspace: Arc<Workspace>,
    before: HashSet<PathBuf>,
    /// What was found when the process had ended: later ones are not its own.
    found: OnceLock<Vec<ProtectedPath>>,
}

impl NameWatch {
    /// Looks at the names that are there now.
    pub fn begin(workspace: Arc<Workspace>) -> Self {
        let before = workspace
            .protected_paths()
            .into_iter()
            .map(|place| place.path)
            .collect();
        Self {
            workspace,
            before,
            found: OnceLock::new(),
        }
    }

    /// Looks for the last time.
    pub fn end(&self) -> &[ProtectedPath] {
        self.found.get_or_init(|| self.look())
    }

    /// What has come into being so far.
    pub fn created(&self) -> Vec<ProtectedPath> {
        self.found.get().cloned().unwrap_or_else(|| self.look())
    }

    fn look(&self) -> Vec<ProtectedPath> {
        let now = self.workspace.protected_paths().into_iter();
        now.filter(|place| !self.before.contains(&place.path))
            .collect()
    }
}

/// Their absolute paths, as text.
pub fn created_paths(created: &[ProtectedPath]) -> Vec<String> {
    created
        .iter()
        .map(|place| place.path.display().to_string())
        .collect()
}

/// One line about each, for the caller.
pub fn created_lines(created: &[ProtectedPath]) -> impl Iterator<Item = String> {
    created.iter().map(|place| {
        let path = shown(&place.path.display().to_string());
        format!(
            "[`{path}` came into being while this ran, and it is protected: {}]",
            place.reason
        )
    })
}
