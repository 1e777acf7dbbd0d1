//! The write itself: a temporary file in the same directory, made durable, then renamed over the name.
//!
//! Hard links to the old file keep the old content, and access lists and extended attributes are not carried
//! over; mode and owner are.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::Path,
};

use cap_std::fs::Dir;
use cap_tempfile::TempFile;
use rustix::{
    fs::{Access, AtFlags, FileType, Gid, Mode, Stat, Uid, accessat, fchmod, fchown, fstat, statat},
    io::Errno,
};
use toolpost_model::ToolFailure;

use super::Arguments;
use crate::native::files::{
    digest::{self, HashError},
    failure::{PathError, io_code, special},
    names::{relative, shown},
    worker::{StopSign, Stopped},
    workspace::{Found, Workspace, open_directory, open_regular, sync_directory},
};

/// Replaced content up to this size is read for its digest even where nobody asked for it.
const PREVIOUS_BYTES: u64 = super::CONTENT_BYTES as u64;
/// New files may be read by all and written by their owner, less what the umask takes.
const NEW_MODE: u32 = 0o644;

/// A write that was done.
pub(super) struct Written {
    pub(super) path: String,
    pub(super) created: bool,
    pub(super) sha256: String,
    pub(super) previous_sha256: Option<String>,
}

/// Why nothing was written, or why that is not certain.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error("the directory `{}` does not exist", shown(.path))]
    NoDirectory { path: String },
    #[error("`{}` has changed: its content has sha256 {}, expected was {}", shown(.path), start(.found), start(.expected))]
    Changed {
        path: String,
        found: String,
        expected: String,
    },
    #[error("`{}` does not exist, expected was content with sha256 {}", shown(.path), start(.expected))]
    Gone { path: String, expected: String },
    #[error("`{}` was changed by somebody else while it was being written", shown(.path))]
    ChangedMeanwhile { path: String },
    #[error("cannot write `{}`: {source}", shown(.path))]
    Io { path: String, source: io::Error },
    #[error("`{}` was written, but could not be made durable: {source}", shown(.path))]
    NotDurable { path: String, source: io::Error },
}

/// Enough of a digest to tell two apart.
fn start(digest: &str) -> String {
    digest.chars().take(12).collect()
}

impl WriteError {
    pub(super) fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string());
        match self {
            Self::Path(error @ PathError::IsDirectory { .. }) => {
                error.into_failure().hint("name the file to write in it")
            }
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::NoDirectory { .. } => failure
                .code("not_found")
                .hint("`create_directories: true` makes it")
                .untouched(),
            Self::Changed { .. } | Self::Gone { .. } | Self::ChangedMeanwhile { .. } => failure
                .code("changed")
                .hint("read the file again before writing")
                .untouched(),
            Self::Io { source, .. } => failure.code(io_code(&source)).untouched(),
            Self::NotDurable { .. } => failure.code("not_durable"),
        }
    }
}

/// Does the write. Until the rename nothing is visible; directories made on the way are taken back on failure.
pub(super) fn write(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<Written, WriteError> {
    let given = arguments.path;
    let located = workspace.locate(&workspace.request(given).map_err(PathError::from)?)?;
    let path = relative(&located.whole_path()).0.into_owned();
    let expected = arguments.expected_sha256.map(str::to_ascii_lowercase);
    let mut made = MadeDirectories::default();
    let target = match located.found {
        Found::Directory(_) => {
            return Err(PathError::IsDirectory {
                given: given.to_owned(),
            }
            .into());
        }
        Found::Entry { parent, name, stat } => {
            let old = Some(OldFile::examine(
                &parent,
                &name,
                stat,
                given,
                expected.is_some(),
                stop,
            )?);
            Target {
                parent,
                name,
                old,
                path,
            }
        }
        Found::Missing { rest, .. } if rest.len() > 1 && !arguments.create_directories => {
            let missing = located.path.join(&rest[0]);
            return Err(WriteError::NoDirectory {
                path: relative(&missing).0.into_owned(),
            });
        }
        Found::Missing { parent, rest } => match expected {
            Some(expected) => return Err(WriteError::Gone { path, expected }),
            None => {
                stop.check()?;
                let (parent, name) = made.make(parent, rest, &path)?;
                Target {
                    parent,
                    name,
                    old: None,
                    path,
                }
            }
        },
    };
    target.require(expected.as_deref())?;
    let written = target.replace(arguments.content.as_bytes(), expected.is_some(), stop)?;
    made.keep(&written.path)?;
    Ok(written)
}

/// The name to write, in its open directory.
struct Target {
    parent: Dir,
    name: OsString,
    old: Option<OldFile>,
    /// For messages and the result.
    path: String,
}

/// The file that will be replaced.
struct OldFile {
    stat: Stat,
    sha256: Option<String>,
}

impl OldFile {
    /// Refuses what must not be replaced, and takes the digest.
    fn examine(
        parent: &Dir,
        name: &OsString,
        stat: Stat,
        given: &str,
        digest_needed: bool,
        stop: &StopSign,
    ) -> Result<Self, WriteError> {
        let failed = |source: io::Error| PathError::Io {
            given: given.to_owned(),
            source,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            other => return Err(special(given, other).into()),
        }
        // A rename asks only for rights on the directory: without this look a file its owner made read-only
        // would be replaced all the same.
        accessat(
            parent,
            name,
            Access::WRITE_OK,
            AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW,
        )
        .map_err(|error| failed(error.into()))?;
        if !digest_needed && u64::try_from(stat.st_size).is_ok_and(|size| size > PREVIOUS_BYTES) {
            return Ok(Self { stat, sha256: None });
        }
        let (mut file, stat) = match open_regular(parent, name, given) {
            Ok(opened) => opened,
            // May be written and not read, which is odd but allowed.
            Err(PathError::Io { .. }) if !digest_needed => return Ok(Self { stat, sha256: None }),
            Err(error) => return Err(error.into()),
        };
        let limit = if digest_needed { u64::MAX } else { PREVIOUS_BYTES };
        match digest::of_file(&mut file, limit, stop, |_| {}) {
            Ok(sha256) => Ok(Self {
                stat,
                sha256: Some(sha256),
            }),
            Err(HashError::Stopped) => Err(Stopped.into()),
            Err(HashError::LongerThanLimit) => Ok(Self { stat, sha256: None }),
            Err(HashError::Io(source)) if digest_needed => Err(failed(source).into()),
            Err(HashError::Io(_)) => Ok(Self { stat, sha256: None }),
        }
    }

    /// Whether `now` is still the file that was examined.
    fn is_still(&self, now: &Stat) -> bool {
        let id = |stat: &Stat| {
            (
                stat.st_dev,
                stat.st_ino,
                stat.st_size,
                stat.st_ctime,
                stat.st_ctime_nsec,
            )
        };
        id(&self.stat) == id(now)
    }
}

impl Target {
    /// Compares the digest the caller has seen with the one the file has.
    fn require(&self, expected: Option<&str>) -> Result<(), WriteError> {
        let found = self.old.as_ref().and_then(|old| old.sha256.as_deref());
        match (expected, found) {
            (Some(expected), Some(found)) if expected != found => Err(WriteError::Changed {
                path: self.path.clone(),
                found: found.to_owned(),
                expected: expected.to_owned(),
            }),
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn failed(&self, source: impl Into<io::Error>) -> WriteError {
        WriteError::Io {
            path: self.path.clone(),
            source: source.into(),
        }
    }

    fn replace(self, content: &[u8], guarded: bool, stop: &StopSign) -> Result<Written, WriteError> {
        stop.check()?;
        let mut temporary = TempFile::new(&self.parent).map_err(|error| self.failed(error))?;
        temporary.write_all(content).map_err(|error| self.failed(error))?;
        self.dress(&temporary).map_err(|error| self.failed(error))?;
        temporary
            .as_file()
            .sync_all()
            .map_err(|error| self.failed(error))?;
        stop.check()?;
        if guarded {
            self.require_unchanged()?;
        }
        temporary
            .replace(&self.name)
            .map_err(|error| self.failed(error))?;
        if let Err(source) = sync_directory(&self.parent) {
            return Err(WriteError::NotDurable {
                path: self.path,
                source,
            });
        }
        Ok(Written {
            path: self.path,
            created: self.old.is_none(),
            sha256: digest::of_bytes(content),
            previous_sha256: self.old.and_then(|old| old.sha256),
        })
    }

    /// Gives the new file the old one's owner and mode, without the bits that lend its owner's rights to others:
    /// the content they were granted to is gone.
    fn dress(&self, temporary: &TempFile<'_>) -> Result<(), Errno> {
        let file = temporary.as_file();
        let fresh = fstat(file)?;
        let mode = match &self.old {
            Some(old) => {
                if (old.stat.st_uid, old.stat.st_gid) != (fresh.st_uid, fresh.st_gid) {
                    let (owner, group) = (Uid::from_raw(old.stat.st_uid), Gid::from_raw(old.stat.st_gid));
                    // Only the superuser can give files away; others keep what they write.
                    let _ = fchown(file, Some(owner), Some(group));
                }
                old.stat.st_mode & 0o777
            }
            None => fresh.st_mode & NEW_MODE,
        };
        fchmod(file, Mode::from_raw_mode(mode))
    }

    /// The last look before the rename. It cannot see a change in the moment after; calls of this host are kept
    /// apart by the scheduler.
    fn require_unchanged(&self) -> Result<(), WriteError> {
        let Some(old) = &self.old else { return Ok(()) };
        match statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if old.is_still(&now) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(WriteError::ChangedMeanwhile {
                path: self.path.clone(),
            }),
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// Directories made for a file, removed again unless the file was written.
#[derive(Default)]
struct MadeDirectories(Vec<(Dir, OsString)>);

impl MadeDirectories {
    /// Makes all of `rest` but the last, which is the file's name.
    fn make(
        &mut self,
        mut parent: Dir,
        mut rest: Vec<OsString>,
        path: &str,
    ) -> Result<(Dir, OsString), WriteError> {
        let failed = |source: io::Error| WriteError::Io {
            path: path.to_owned(),
            source,
        };
        let name = rest.pop().unwrap_or_default();
        for directory in rest {
            match parent.create_dir(Path::new(&directory)) {
                Ok(()) => self
                    .0
                    .push((parent.try_clone().map_err(failed)?, directory.clone())),
                // Somebody else made it a moment ago, so it is not ours to remove.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            parent = open_directory(&parent, &directory).map_err(|error| failed(error.into()))?;
        }
        Ok((parent, name))
    }

    /// The file was written: the directories stay, and their names are made durable too.
    fn keep(&mut self, path: &str) -> Result<(), WriteError> {
        for (parent, _) in std::mem::take(&mut self.0) {
            sync_directory(&parent).map_err(|source| WriteError::NotDurable {
                path: path.to_owned(),
                source,
            })?;
        }
        Ok(())
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        // Deepest first. One that somebody else uses by now is not empty and stays.
        for (parent, name) in self.0.drain(..).rev() {
            let _ = parent.remove_dir(name);
        }
    }
}
