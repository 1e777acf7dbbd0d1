//! The file that a write replaces: whether it may be replaced, and its content.

use std::{
    ffi::OsStr,
    io::{self, Read as _},
};

use cap_std::fs::{Dir, File};
use rustix::fs::{Access, AtFlags, Stat, accessat, fstat};
use toolpost_processes::{FileWorkInterruption, PathError, StopSign, digest, open_regular};

use super::{CONTENT_BYTES, error::WriteError};

/// How much is read between two checks of the stop sign.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// The file that will be replaced.
pub(in crate::files) struct OldFile {
    pub(in crate::files) stat: Stat,
    pub(in crate::files) sha256: Option<String>,
    /// Its content, if it was read.
    pub(in crate::files) content: Option<Vec<u8>>,
}

/// How much of the old content is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) enum OldContentNeed {
    /// Nothing: the call may not read it.
    Nothing,
    /// As much as costs little.
    IfCheap,
    /// Its digest, which decides whether the file is written.
    Digest,
    /// Its content, which the new content is made from.
    Content,
}

impl OldFile {
    /// Refuses files that must not be replaced, and reads the content that is needed.
    pub(super) fn examine(
        (parent, name): (&Dir, &OsStr),
        stat: Stat,
        given: &str,
        wish: OldContentNeed,
        stop: &StopSign,
    ) -> Result<Self, WriteError> {
        let failed = |source: io::Error| PathError::Io {
            given: given.to_owned(),
            source,
        };
        // A rename requires rights on the directory only. Without this check, a file that its owner made read-only
        // would be replaced.
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        accessat(parent, name, Access::WRITE_OK, flags).map_err(|error| failed(error.into()))?;
        let large = size_of(&stat) > CONTENT_BYTES as u64;
        let too_large = |stat: &Stat| WriteError::TooLarge {
            path: given.to_owned(),
            size: size_of(stat),
        };
        match wish {
            OldContentNeed::Nothing => return Ok(Self::unread(stat)),
            OldContentNeed::IfCheap if large => return Ok(Self::unread(stat)),
            OldContentNeed::Content if large => return Err(too_large(&stat)),
            OldContentNeed::IfCheap | OldContentNeed::Digest | OldContentNeed::Content => {}
        }
        let (file, stat) = match open_regular(parent, name, given) {
            Ok(opened) => opened,
            // The file may be written and not read, which is unusual but allowed.
            Err(PathError::Io { .. }) if wish == OldContentNeed::IfCheap => {
                return Ok(Self::unread(stat));
            }
            Err(error) => return Err(error.into()),
        };
        match Self::read(&file, stat, stop) {
            // A file that changed during the read may have been read half old and half new.
            Ok(old) if !fstat(&file).is_ok_and(|now| old.is_still(&now)) => match wish {
                OldContentNeed::Nothing | OldContentNeed::IfCheap => Ok(Self::unread(stat)),
                OldContentNeed::Digest | OldContentNeed::Content => {
                    Err(WriteError::ChangedMeanwhile {
                        path: given.to_owned(),
                    })
                }
            },
            Ok(Self { content: None, .. }) if wish == OldContentNeed::Content => {
                Err(too_large(&stat))
            }
            Ok(old) => Ok(old),
            Err(FileWorkInterruption::Stopped(stopped)) => Err(stopped.into()),
            Err(FileWorkInterruption::Io(_)) if wish == OldContentNeed::IfCheap => {
                Ok(Self::unread(stat))
            }
            Err(FileWorkInterruption::Io(source)) => Err(failed(source).into()),
        }
    }

    fn unread(stat: Stat) -> Self {
        Self {
            stat,
            sha256: None,
            content: None,
        }
    }

    /// Reads a small file whole, and a larger one only for its digest.
    fn read(mut file: &File, stat: Stat, stop: &StopSign) -> Result<Self, FileWorkInterruption> {
        if size_of(&stat) > CONTENT_BYTES as u64 {
            let sha256 = digest::of_file(&mut file, u64::MAX, stop, |_| {})?;
            return Ok(Self {
                stat,
                sha256,
                content: None,
            });
        }
        let mut content = Vec::with_capacity(usize::try_from(size_of(&stat)).unwrap_or(0));
        loop {
            stop.check()?;
            if file.take(CHUNK_BYTES).read_to_end(&mut content)? == 0 {
                let sha256 = Some(digest::of_bytes(&content));
                return Ok(Self {
                    stat,
                    sha256,
                    content: Some(content),
                });
            }
            if content.len() > CONTENT_BYTES {
                return Ok(Self::unread(stat));
            }
        }
    }

    /// The content as text.
    pub(in crate::files) fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(self.content.as_ref()?).ok()?;
        (!text.contains('\0')).then_some(text)
    }

    /// Whether `now` is still the examined file.
    pub(super) fn is_still(&self, now: &Stat) -> bool {
        same(&self.stat, now)
    }
}

/// Whether two lookups saw the same unchanged file. The inode alone is not enough: a new file can get the inode of a
/// removed one.
pub(super) fn same(before: &Stat, now: &Stat) -> bool {
    let id = |stat: &Stat| {
        (
            stat.st_dev,
            stat.st_ino,
            stat.st_size,
            stat.st_ctime,
            stat.st_ctime_nsec,
        )
    };
    id(before) == id(now)
}

fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
