//! The move: one rename, or a copy if the new place is on another file system.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use cap_std::fs::Dir;
use rustix::{
    fs::{
        AtFlags, FileType, RenameFlags, Stat, accessat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use toolpost_model::{ResourceAccess, ToolFailure};
use toolpost_processes::{
    CallStopError, ExistingPathEntry, LastLink, PathError, PathTarget, StopSign, Workspace,
    io_code, open_regular, relative, require_all, shown, sync_directory,
};

use super::Arguments;
use crate::files::writing::{
    IfMissing, MadeDirectories, OldContentNeed, ReplaceCondition, WriteError, WriteTarget,
    WriteTargetRequest,
};

/// Why nothing was moved, or why that is uncertain.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Stopped(#[from] CallStopError),
    #[error("`{}` already exists", shown(.path))]
    Exists { path: String },
    #[error("`{}` is {found}; only a file can replace a file", shown(.path))]
    NotReplaced { path: String, found: &'static str },
    #[error("`{}` and `{}` are the same", shown(.from), shown(.to))]
    Same { from: String, to: String },
    #[error("`{}` is inside of `{}`, which would be moved", shown(.to), shown(.from))]
    IntoItself { from: String, to: String },
    #[error("`{}` and `{}` are on different file systems, and only files are copied", shown(.from), shown(.to))]
    OtherFileSystem { from: String, to: String },
    #[error("cannot move `{}`: {source}", shown(.from))]
    Io { from: String, source: io::Error },
    #[error("`{}` was copied to `{}`, but is still there: {source}", shown(.from), shown(.to))]
    SourceLeft {
        from: String,
        to: String,
        source: io::Error,
    },
    #[error("`{}` was moved, but the move could not be synced to disk: {source}", shown(.from))]
    NotDurable { from: String, source: io::Error },
}

impl MoveError {
    pub(super) fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string());
        match self {
            Self::Path(error) => error.into_failure(),
            Self::Write(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::Exists { .. } => failure
                .code("exists")
                .hint("give another path, or set `overwrite` to replace a file")
                .untouched(),
            Self::NotReplaced { .. } => failure
                .code("exists")
                .hint("give the whole new path, name included")
                .untouched(),
            Self::Same { .. } => failure.code("same_file").untouched(),
            Self::IntoItself { .. } => failure.code("into_itself").untouched(),
            Self::OtherFileSystem { .. } => failure.code("other_file_system").untouched(),
            Self::Io { source, .. } => failure.code(io_code(&source)).untouched(),
            Self::SourceLeft { .. } => failure.code("source_left"),
            Self::NotDurable { .. } => failure.code("not_durable"),
        }
    }
}

/// A completed move.
pub(super) struct CompletedMove {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) file_type: FileType,
    pub(super) overwritten: bool,
}

/// Moves the file that `arguments` name. Directories that were created on the way are removed on failure.
pub(super) fn rename(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<CompletedMove, MoveError> {
    let may_see = |place: &Path| stop.may(workspace, place, ResourceAccess::Read);
    let from = ExistingPathEntry::locate(workspace, arguments.from, may_see)?;
    let given = arguments.to;
    let requested = workspace.request(given).map_err(PathError::from)?;
    let to = workspace.locate_name(&requested)?.writable(given)?;
    let place = to.whole_path();
    stop.as_decided_beneath(workspace, (given, &from), &[&from.place, &place])?;
    let uses = [
        (&*from.place, ResourceAccess::Read),
        (&from.place, ResourceAccess::Write),
        (&place, ResourceAccess::Write),
    ];
    require_all(workspace, (arguments.from, &from), &uses, stop)?;
    let told = relative(&place).0.into_owned();
    if from.is_directory() && place != from.place && place.starts_with(&from.place) {
        return Err(MoveError::IntoItself {
            from: arguments.from.to_owned(),
            to: told,
        });
    }
    let mut made = MadeDirectories::default();
    let (parent, name, overwritten) = match to.found {
        PathTarget::Directory(_) => {
            return Err(MoveError::NotReplaced {
                path: told,
                found: "a directory",
            });
        }
        PathTarget::Entry { parent, name, stat } => {
            replaceable(&from, arguments, (&parent, &name, &stat), &told)?;
            (parent, name, true)
        }
        PathTarget::Missing { rest, .. } if rest.len() > 1 && !arguments.create_directories => {
            let missing = to.path.join(&rest[0]);
            return Err(WriteError::NoDirectory {
                path: relative(&missing).0.into_owned(),
            }
            .into());
        }
        PathTarget::Missing { parent, rest } => {
            stop.check()?;
            let (parent, name) = made.make(parent, rest, &told)?;
            (parent, name, false)
        }
    };
    stop.check()?;
    let target = MoveDestination { parent, name, told };
    match target.take(&from, overwritten) {
        Ok(()) => {
            let synced = sync_directory(&target.parent).and_then(|()| sync_directory(&from.parent));
            synced.map_err(|source| MoveError::NotDurable {
                from: arguments.from.to_owned(),
                source,
            })?;
        }
        Err(Errno::XDEV) => copy(workspace, arguments, &from, &target.told, stop)?,
        Err(Errno::EXIST) => return Err(MoveError::Exists { path: target.told }),
        Err(error) => {
            return Err(MoveError::Io {
                from: arguments.from.to_owned(),
                source: error.into(),
            });
        }
    }
    made.keep().map_err(|source| MoveError::NotDurable {
        from: arguments.from.to_owned(),
        source,
    })?;
    Ok(CompletedMove {
        file_type: from.file_type(),
        from: from.place,
        to: place,
        overwritten,
    })
}

/// Refuses to replace files that must stay.
fn replaceable(
    from: &ExistingPathEntry,
    arguments: &Arguments<'_>,
    (parent, name, stat): (&Dir, &OsStr, &Stat),
    told: &str,
) -> Result<(), MoveError> {
    let path = told.to_owned();
    if (stat.st_dev, stat.st_ino) == (from.stat.st_dev, from.stat.st_ino) {
        // Renaming one hard link over another does nothing and reports success.
        return Err(MoveError::Same {
            from: arguments.from.to_owned(),
            to: path,
        });
    }
    if !arguments.overwrite {
        return Err(MoveError::Exists { path });
    }
    let file_type = FileType::from_raw_mode(stat.st_mode);
    if file_type == FileType::Directory {
        return Err(MoveError::NotReplaced {
            path,
            found: "a directory",
        });
    }
    if from.is_directory() {
        return Err(MoveError::NotReplaced {
            path,
            found: "not a directory",
        });
    }
    if file_type == FileType::RegularFile {
        // As for writing: a file that its owner made read-only is not replaced.
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        accessat(parent, name, rustix::fs::Access::WRITE_OK, flags).map_err(|error| {
            PathError::Io {
                given: path,
                source: error.into(),
            }
        })?;
    }
    Ok(())
}

struct MoveDestination {
    parent: Dir,
    name: OsString,
    told: String,
}

impl MoveDestination {
    fn take(&self, from: &ExistingPathEntry, overwrite: bool) -> rustix::io::Result<()> {
        if overwrite {
            return renameat(&from.parent, &from.name, &self.parent, &self.name);
        }
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(&from.parent, &from.name, &self.parent, &self.name, flags) {
            // This file system has no rename that fails if the target exists, so the target is checked first.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(Errno::NOENT) => {
                        renameat(&from.parent, &from.name, &self.parent, &self.name)
                    }
                    Err(error) => Err(error),
                }
            }
            renamed => renamed,
        }
    }
}

/// Copies a file to another file system, then removes the original. The original is removed only if its size and
/// identity are unchanged since it was opened: content that another program appended during the copy would be lost.
fn copy(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    from: &ExistingPathEntry,
    told: &str,
    stop: &StopSign,
) -> Result<(), MoveError> {
    let given = || arguments.from.to_owned();
    if from.file_type() != FileType::RegularFile {
        return Err(MoveError::OtherFileSystem {
            from: given(),
            to: told.to_owned(),
        });
    }
    let (file, stat) = open_regular(&from.parent, &from.name, arguments.from)?;
    let opening = WriteTargetRequest {
        given: arguments.to,
        wish: OldContentNeed::IfCheap,
        missing: IfMissing::Create,
        last_link: LastLink::Keep,
    };
    let mut target = WriteTarget::open(workspace, opening, stop)?;
    let taking = match (&target.old, arguments.overwrite) {
        (Some(_), false) => {
            return Err(MoveError::Exists {
                path: told.to_owned(),
            });
        }
        (Some(_), true) => ReplaceCondition::Any,
        (None, _) => ReplaceCondition::Unchanged,
    };
    target.like = Some(stat);
    target.copy(file, stop)?.commit(taking, stop)?.durable?;
    let left = |error: Errno| MoveError::SourceLeft {
        from: given(),
        to: told.to_owned(),
        source: error.into(),
    };
    let now = statat(&from.parent, &from.name, AtFlags::SYMLINK_NOFOLLOW).map_err(left)?;
    if (now.st_dev, now.st_ino, now.st_size) != (stat.st_dev, stat.st_ino, stat.st_size) {
        return Err(left(Errno::BUSY));
    }
    unlinkat(&from.parent, &from.name, AtFlags::empty()).map_err(left)?;
    sync_directory(&from.parent).map_err(|source| MoveError::NotDurable {
        from: given(),
        source,
    })
}
