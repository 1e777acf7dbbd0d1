//! Deletes one name at a time in open directories.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

use cap_std::fs::Dir;
use rustix::{
    fs::{AtFlags, FileType, fstat, statat, unlinkat},
    io::Errno,
};
use toolpost_model::{ErrorClass, ToolFailure};
use toolpost_processes::{
    CallStopError, ExistingPathEntry, StopSign, Workspace, io_code, open_listing, relative, shown,
    sync_directory,
};

use super::Arguments;

/// The deepest tree that can be deleted. A descriptor is held for each level.
const MAX_DEPTH: usize = 200;
/// The most names of one directory that are held at a time.
const HELD_NAMES: usize = 4096;

/// Why something was not deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeleteError {
    #[error(transparent)]
    Stopped(#[from] CallStopError),
    #[error("`{}` is a directory that is not empty", shown(.path))]
    NotEmpty { path: String },
    #[error("cannot delete `{}`: {source}", shown(.path))]
    Io { path: String, source: io::Error },
    #[error("`{}` is deeper than {MAX_DEPTH} levels", shown(.path))]
    TooDeep { path: String },
    #[error("`{}` is on another file system", shown(.path))]
    OtherFileSystem { path: String },
    #[error("`{}` is a root of the workspace", shown(.path))]
    Root { path: String },
    #[error("`{}` was deleted, but the deletion could not be synced to disk: {source}", shown(.path))]
    NotDurable { path: String, source: io::Error },
    #[error("{deleted} entries of `{}` were deleted, the others remain: {reason}", shown(.path))]
    Midway {
        path: String,
        deleted: u64,
        reason: Box<DeleteError>,
    },
}

impl DeleteError {
    pub(super) fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::of(self.class(), self.to_string()).code(self.code());
        match self {
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::NotEmpty { .. } => failure
                .hint("set `recursive: true` to delete it with its content")
                .untouched(),
            Self::Midway { .. } | Self::NotDurable { .. } => failure,
            Self::Io { .. }
            | Self::TooDeep { .. }
            | Self::OtherFileSystem { .. }
            | Self::Root { .. } => failure.untouched(),
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Stopped(_) => ErrorClass::Canceled,
            Self::Root { .. } | Self::OtherFileSystem { .. } => ErrorClass::SandboxViolation,
            Self::Midway { reason, .. } => reason.class(),
            Self::NotEmpty { .. }
            | Self::Io { .. }
            | Self::TooDeep { .. }
            | Self::NotDurable { .. } => ErrorClass::ExecutionFailed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Stopped(_) => "stopped",
            Self::NotEmpty { .. } => "not_empty",
            Self::Io { source, .. } => io_code(source),
            Self::TooDeep { .. } => "too_deep",
            Self::OtherFileSystem { .. } => "other_file_system",
            Self::Root { .. } => "holds_root",
            Self::NotDurable { .. } => "not_durable",
            Self::Midway { .. } => "partly_deleted",
        }
    }
}

/// Deletes `named`, and returns the number of deleted entries.
pub(super) fn delete(
    workspace: &Workspace,
    named: &ExistingPathEntry,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<u64, DeleteError> {
    let mut sweep = DirectoryDeletion {
        workspace,
        stop,
        device: named.stat.st_dev,
        deleted: 0,
    };
    let swept = match named.is_directory() && arguments.recursive {
        true => sweep.directory(&named.parent, &named.name, &named.place, 0),
        false => sweep.single(named),
    };
    let path = relative(&named.place).0.into_owned();
    match swept {
        Ok(()) => {}
        Err(reason) if sweep.deleted > 0 => {
            return Err(DeleteError::Midway {
                path,
                deleted: sweep.deleted,
                reason: Box::new(reason),
            });
        }
        Err(reason) => return Err(reason),
    }
    sync_directory(&named.parent).map_err(|source| DeleteError::NotDurable { path, source })?;
    Ok(sweep.deleted)
}

struct DirectoryDeletion<'s> {
    workspace: &'s Workspace,
    stop: &'s StopSign,
    /// The device of the tree: other file systems mounted in it are not deleted.
    device: u64,
    deleted: u64,
}

impl DirectoryDeletion<'_> {
    fn single(&mut self, named: &ExistingPathEntry) -> Result<(), DeleteError> {
        self.stop.check()?;
        let flags = if named.is_directory() {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        self.unlink(&named.parent, &named.name, flags, &named.place)
    }

    /// Deletes everything in a directory, then the directory.
    fn directory(
        &mut self,
        parent: &Dir,
        name: &OsStr,
        place: &Path,
        depth: usize,
    ) -> Result<(), DeleteError> {
        let path = || relative(place).0.into_owned();
        if depth == MAX_DEPTH {
            return Err(DeleteError::TooDeep { path: path() });
        }
        let failed = |source: io::Error| DeleteError::Io {
            path: path(),
            source,
        };
        loop {
            let dir = open_listing(parent, name).map_err(|error| failed(error.into()))?;
            let stat = fstat(&dir).map_err(|error| failed(error.into()))?;
            if stat.st_dev != self.device {
                return Err(DeleteError::OtherFileSystem { path: path() });
            }
            if self.workspace.root_within(place, &stat).is_some() {
                return Err(DeleteError::Root { path: path() });
            }
            let entries = dir.entries().map_err(failed)?.take(HELD_NAMES);
            let names: Vec<OsString> = entries
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<_>>()
                .map_err(failed)?;
            if names.is_empty() {
                return self.unlink(parent, name, AtFlags::REMOVEDIR, place);
            }
            for name in names {
                self.entry(&dir, &name, &place.join(&name), depth)?;
            }
        }
    }

    fn entry(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        place: &Path,
        depth: usize,
    ) -> Result<(), DeleteError> {
        self.stop.check()?;
        let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Another program deleted it first.
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => {
                return Err(DeleteError::Io {
                    path: relative(place).0.into_owned(),
                    source: error.into(),
                });
            }
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.directory(dir, name, place, depth + 1),
            _ => self.unlink(dir, name, AtFlags::empty(), place),
        }
    }

    fn unlink(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        flags: AtFlags,
        place: &Path,
    ) -> Result<(), DeleteError> {
        let path = || relative(place).0.into_owned();
        match unlinkat(dir, name, flags) {
            Ok(()) => {
                self.deleted += 1;
                Ok(())
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(DeleteError::NotEmpty { path: path() }),
            Err(error) => Err(DeleteError::Io {
                path: path(),
                source: error.into(),
            }),
        }
    }
}
