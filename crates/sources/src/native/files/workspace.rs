//! The workspace: the one directory the file tools may touch, held open.
//!
//! This is the crate's only module that opens something by an ambient path. Everything else starts from the
//! descriptor held here.
#![expect(clippy::disallowed_methods, reason = "the root itself can only be opened by its ambient path")]

mod locate;
mod open;
mod path;

use std::{
    io,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};

pub(crate) use self::{
    locate::{Found, Located},
    open::{open_directory, open_regular, read_link, sync_directory},
    path::{PathRefusal, RequestedPath},
};
use super::failure::PathError;

/// A directory the file tools work in. Holds it open, so that it stays the same directory whatever happens to
/// its name.
#[derive(Debug)]
pub struct Workspace {
    root: Dir,
    /// Without links. The name in records and messages.
    path: PathBuf,
    /// Absolute, but spelled as the operator gave it: callers were told this name and will use it.
    given: PathBuf,
}

/// Why a workspace could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace `{}`", path.display())]
pub struct WorkspaceError {
    /// As given.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl Workspace {
    /// Opens the directory at `root` and holds it.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let open = || {
            let given = std::path::absolute(root)?;
            let path = std::fs::canonicalize(root)?;
            let root = Dir::open_ambient_dir(&path, ambient_authority())?;
            Ok(Self { root, path, given })
        };
        open().map_err(|source| WorkspaceError { path: root.to_owned(), source })
    }

    /// Its absolute path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a path as a caller sent it. No I/O.
    pub(crate) fn request(&self, given: &str) -> Result<RequestedPath, PathRefusal> {
        RequestedPath::parse(given, &[&self.path, &self.given])
    }

    /// Finds what a path names, without ever leaving the root.
    pub(crate) fn locate(&self, requested: &RequestedPath) -> Result<Located, PathError> {
        locate::locate(&self.root, &[&self.path, &self.given], requested)
    }
}
