//! One directory of a workspace.

use std::{
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use rustix::fs::{fstat, stat};
use toolpost_model::ResourceAccess;

use super::WorkspaceError;

#[derive(Debug)]
pub(crate) struct WorkspaceRoot {
    pub(super) dir: Dir,
    /// Absolute and without links. The name in records and messages.
    pub(super) path: PathBuf,
    /// Absolute, as the operator wrote it: callers were given this name and use it.
    pub(super) given: PathBuf,
    pub(crate) access: ResourceAccess,
    /// Device and inode, which identify the directory under any name.
    pub(super) identity: (u64, u64),
}

impl WorkspaceRoot {
    pub(super) fn open(given: &Path, access: ResourceAccess) -> Result<Self, WorkspaceError> {
        let open = || {
            let absolute = std::path::absolute(given)?;
            let path = given.canonicalize()?;
            let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
            let stat = fstat(&dir)?;
            Ok(Self {
                dir,
                path,
                given: absolute,
                access,
                identity: (stat.st_dev, stat.st_ino),
            })
        };
        open().map_err(|source| WorkspaceError {
            path: given.to_owned(),
            source,
        })
    }

    /// A path to this directory, for code that can only take a path. It goes through the descriptor, so that it is the
    /// directory that is held open and not the one that has its name now. Without `/proc` it is the name.
    pub(crate) fn reachable_path(&self) -> PathBuf {
        let held = PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd()));
        match stat(&held) {
            Ok(found) if (found.st_dev, found.st_ino) == self.identity => held,
            Ok(_) | Err(_) => self.path.clone(),
        }
    }
}
