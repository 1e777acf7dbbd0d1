//! Protected names that are created at the top of a root while a process runs.
//!
//! A mount can cover an existing path, but no mount can stop a process with write access to a folder from creating a
//! certain name in it. A stub to mount over would be visible to everyone who uses the workspace, and would remain if
//! the host were killed. So the host compares the names before and after the run, and the result lists the new ones.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use crate::workspace::{ProtectedPath, Workspace, shown};

/// The protected names that existed before a process started.
pub struct NameWatch {
    workspace: Arc<Workspace>,
    before: HashSet<PathBuf>,
    /// The result after the process ended. Later names are not its own.
    found: OnceLock<Vec<ProtectedPath>>,
}

impl NameWatch {
    /// Reads the present names.
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

    /// Compares for the last time, after the process has ended.
    pub fn end(&self) -> &[ProtectedPath] {
        self.found.get_or_init(|| self.look())
    }

    /// The names that were created so far.
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

/// A line about each, for the caller.
pub fn created_lines(created: &[ProtectedPath]) -> impl Iterator<Item = String> {
    created.iter().map(|place| {
        let path = shown(&place.path.display().to_string());
        format!(
            "[`{path}` was created while this ran, and it is protected: {}]",
            place.reason
        )
    })
}
