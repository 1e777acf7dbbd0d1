//! The file that a write replaces: whether it may be, and what it held.

use std::{
    ffi::OsStr,
    io::{self, Read as _},
};

use cap_std::fs::{Dir, File};
use rustix::fs::{Access, AtFlags, Stat, accessat, fstat};
use toolpost_processes::{FileWorkInterruption, PathError, StopSign, digest, open_regular};

use super::{CONTENT_BYTES, error::WriteError};

/// How much is read between two looks at the stop sign.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// The file that will be replaced.
pub(in crate::files) struct OldFile {
    pub(in crate::files) stat: Stat,
    pub(in crate::files) sha256: Option<String>,
    /// What it held, where that was worth reading.
    pub(in crate::files) content: Option<Vec<u8>>,
}

/// How much of the old content is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) enum OldContentNeed {
    /// Nothing: the call may not read it.
    Nothing,
    /// What costs little.
    IfCheap,
    /// Its digest decides whether the file is written.
    Digest,
    /// The new content is made of it.
    Content,
}

impl OldFile {
    /// Refuses what must not be replaced, and reads what is wanted.
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
        // A rename asks only for rights on the directory: without this look a file its owner made read-only
        // would be replaced all the same.
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
            // May be written and not read, which is odd but allowed.
            Err(PathError::Io { .. }) if wish == OldContentNeed::IfCheap => {
                return Ok(Self::unread(stat));
            }
            Err(error) => return Err(error.into()),
        };
        match Self::read(&file, stat, stop) {
            // A file that is written while it is read may have been read half old and half new.
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

    /// Reads a file whole where it is small, and only for its digest where not.
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

    /// What it held, as text.
    pub(in crate::files) fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(self.content.as_ref()?).ok()?;
        (!text.contains('\0')).then_some(text)
    }

    /// Whether `now` is still the file that was examined.
    pub(super) fn is_still(&self, now: &Stat) -> bool {
        same(&self.stat, now)
    }
}

/// Whether two looks saw the same file, unchanged. A number alone does not tell: a new file gets that of one that is
/// gone.
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
