//! The file that a write replaces: whether it may be, and what it held.

use std::{ffi::OsStr, io};

use cap_std::fs::Dir;
use rustix::fs::{Access, AtFlags, FileType, Stat, accessat};

use super::error::WriteError;
use crate::native::files::{
    digest,
    failure::{PathError, special},
    worker::{StopSign, Unfinished},
    workspace::open_regular,
};

/// Replaced content up to this size is read for its digest even where nobody asked for it.
const PREVIOUS_BYTES: u64 = super::CONTENT_BYTES as u64;

/// The file that will be replaced.
pub(super) struct OldFile {
    pub(super) stat: Stat,
    pub(super) sha256: Option<String>,
}

/// How much the digest of the old content is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DigestWish {
    /// It decides whether the file is written.
    Required,
    /// It is told if it costs little.
    IfCheap,
}

impl OldFile {
    /// Refuses what must not be replaced, and takes the digest.
    pub(super) fn examine(
        (parent, name): (&Dir, &OsStr),
        stat: Stat,
        given: &str,
        wish: DigestWish,
        stop: &StopSign,
    ) -> Result<Self, WriteError> {
        let failed = |source: io::Error| PathError::Io { given: given.to_owned(), source };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            other => return Err(special(given, other).into()),
        }
        // A rename asks only for rights on the directory: without this look a file its owner made read-only
        // would be replaced all the same.
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        accessat(parent, name, Access::WRITE_OK, flags).map_err(|error| failed(error.into()))?;
        let limit = match wish {
            DigestWish::Required => u64::MAX,
            DigestWish::IfCheap => PREVIOUS_BYTES,
        };
        if u64::try_from(stat.st_size).is_ok_and(|size| size > limit) {
            return Ok(Self { stat, sha256: None });
        }
        let (mut file, stat) = match open_regular(parent, name, given) {
            Ok(opened) => opened,
            // May be written and not read, which is odd but allowed.
            Err(PathError::Io { .. }) if wish == DigestWish::IfCheap => {
                return Ok(Self { stat, sha256: None });
            }
            Err(error) => return Err(error.into()),
        };
        match digest::of_file(&mut file, limit, stop, |_| {}) {
            Ok(sha256) => Ok(Self { stat, sha256 }),
            Err(Unfinished::Stopped(stopped)) => Err(stopped.into()),
            Err(Unfinished::Io(_)) if wish == DigestWish::IfCheap => Ok(Self { stat, sha256: None }),
            Err(Unfinished::Io(source)) => Err(failed(source).into()),
        }
    }

    /// Whether `now` is still the file that was examined.
    pub(super) fn is_still(&self, now: &Stat) -> bool {
        let id = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
        id(&self.stat) == id(now)
    }
}
