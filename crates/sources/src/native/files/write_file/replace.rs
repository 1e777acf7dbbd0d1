//! The write itself: a temporary file in the same directory, made durable, then renamed over the name.
//!
//! Hard links to the old file keep the old content, and access lists and extended attributes are not carried
//! over; mode and owner are.

use std::{
    ffi::OsString,
    io::{self, Write as _},
};

use cap_std::fs::Dir;
use cap_tempfile::TempFile;
use rustix::{
    fs::{AtFlags, Gid, Mode, Uid, fchmod, fchown, fstat, statat},
    io::Errno,
};

use super::{
    Arguments,
    error::WriteError,
    made_directories::MadeDirectories,
    old_file::{DigestWish, OldFile},
};
use crate::native::files::{
    digest,
    failure::PathError,
    names::relative,
    worker::StopSign,
    workspace::{Found, Workspace, sync_directory},
};

/// New files may be read by all and written by their owner, less what the umask takes.
const NEW_MODE: u32 = 0o644;

/// A write that was done.
pub(super) struct Written {
    pub(super) path: String,
    pub(super) created: bool,
    pub(super) sha256: String,
    pub(super) previous_sha256: Option<String>,
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
    let wish = match &expected {
        Some(_) => DigestWish::Required,
        None => DigestWish::IfCheap,
    };
    let mut made = MadeDirectories::default();
    let target = match located.found {
        Found::Directory(_) => {
            return Err(PathError::IsDirectory { given: given.to_owned() }.into());
        }
        Found::Entry { parent, name, stat } => {
            let old = Some(OldFile::examine((&parent, &name), stat, given, wish, stop)?);
            Target { parent, name, old, path }
        }
        Found::Missing { rest, .. } if rest.len() > 1 && !arguments.create_directories => {
            let missing = located.path.join(&rest[0]);
            return Err(WriteError::NoDirectory { path: relative(&missing).0.into_owned() });
        }
        Found::Missing { parent, rest } => match expected {
            Some(expected) => return Err(WriteError::Gone { path, expected }),
            None => {
                stop.check()?;
                let (parent, name) = made.make(parent, rest, &path)?;
                Target { parent, name, old: None, path }
            }
        },
    };
    target.require(expected.as_deref())?;
    let written = target.replace(arguments.content.as_bytes(), wish, stop)?;
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

impl Target {
    /// Compares the digest the caller has seen with the one the file has.
    fn require(&self, expected: Option<&str>) -> Result<(), WriteError> {
        let found = self.old.as_ref().and_then(|old| old.sha256.as_deref());
        match (expected, found) {
            (None, _) => Ok(()),
            (Some(expected), Some(found)) if expected == found => Ok(()),
            (Some(expected), found) => Err(WriteError::Changed {
                path: self.path.clone(),
                found: found.unwrap_or("unknown").to_owned(),
                expected: expected.to_owned(),
            }),
        }
    }

    fn failed(&self, source: impl Into<io::Error>) -> WriteError {
        WriteError::Io { path: self.path.clone(), source: source.into() }
    }

    fn replace(self, content: &[u8], wish: DigestWish, stop: &StopSign) -> Result<Written, WriteError> {
        stop.check()?;
        let mut temporary = TempFile::new(&self.parent).map_err(|error| self.failed(error))?;
        temporary.write_all(content).map_err(|error| self.failed(error))?;
        self.dress(&temporary).map_err(|error| self.failed(error))?;
        temporary.as_file().sync_all().map_err(|error| self.failed(error))?;
        stop.check()?;
        if wish == DigestWish::Required {
            self.require_unchanged()?;
        }
        temporary.replace(&self.name).map_err(|error| self.failed(error))?;
        if let Err(source) = sync_directory(&self.parent) {
            return Err(WriteError::NotDurable { path: self.path, source });
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
            Ok(_) | Err(Errno::NOENT) => Err(WriteError::ChangedMeanwhile { path: self.path.clone() }),
            Err(error) => Err(self.failed(error)),
        }
    }
}
