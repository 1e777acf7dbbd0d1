//! Changes files so that readers see the old content or the new one, and never a mix. For all tools that write.
//!
//! The new content is written to a file beside the old one and synced, and then that file takes the name. A crash
//! before the rename leaves the old file, and a crash after it the new one; without the sync the name could point to an
//! empty file after a power loss. Hard links to the old file keep the old content. Mode and owner are copied; access
//! lists and extended attributes are not.

mod error;
mod made_directories;
mod old_file;
mod removal;
mod temporary;

use std::{ffi::OsString, io, sync::Arc};

use cap_std::fs::{Dir, File};
use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, Stat, Uid, fchmod, fchown, fstat, statat, unlinkat},
    io::Errno,
};
use sha2::{Digest, Sha256};
use toolpost_model::ResourceAccess;
use toolpost_processes::{
    LastLink, PathError, PathTarget, StopSign, Workspace, digest, relative, special, sync_directory,
};

use self::temporary::TemporaryFile;
pub(super) use self::{
    error::WriteError,
    made_directories::MadeDirectories,
    old_file::{OldContentNeed, OldFile},
    removal::{FileRemoval, RemovedFile},
};

/// The most content that one call writes or changes.
pub(super) const CONTENT_BYTES: usize = 8 * 1024 * 1024;
/// How much is copied between two checks of the stop sign.
const COPIED_BYTES: usize = 256 * 1024;

/// The condition on the present file when the new one takes its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplaceCondition {
    /// Any file may be replaced.
    Any,
    /// The examined file, unchanged; or no file, if there was none.
    Unchanged,
}

/// The mode of a new file, before the umask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NewMode {
    /// Readable by all, writable by the owner.
    #[default]
    Plain,
    /// Also executable.
    Executable,
}

impl NewMode {
    fn bits(self) -> u32 {
        match self {
            Self::Plain => 0o644,
            Self::Executable => 0o755,
        }
    }
}

/// A name to write, in its open directory.
pub(super) struct WriteTarget {
    parent: Arc<Dir>,
    name: OsString,
    pub(super) old: Option<OldFile>,
    /// For messages and the result.
    pub(super) path: String,
    pub(super) new_mode: NewMode,
    /// The file that a new one gets its mode and owner from.
    pub(super) like: Option<Stat>,
    /// Directories created for the file, removed again unless it is written.
    made: MadeDirectories,
}

/// The requirements on a target.
#[derive(Clone, Copy)]
pub(super) struct WriteTargetRequest<'a> {
    pub(super) given: &'a str,
    /// How much is read of an existing file.
    pub(super) wish: OldContentNeed,
    pub(super) missing: IfMissing,
    pub(super) last_link: LastLink,
}

/// The behaviour for a missing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    Fail,
    Create,
    /// Also the directories above.
    CreateDirectories,
}

impl WriteTarget {
    /// Finds the file to write, or the place for a new one.
    pub(super) fn open(
        workspace: &Workspace,
        opening: WriteTargetRequest<'_>,
        stop: &StopSign,
    ) -> Result<Self, WriteError> {
        let WriteTargetRequest {
            given,
            wish,
            missing,
            last_link,
        } = opening;
        let requested = workspace.request(given).map_err(PathError::from)?;
        let located = match last_link {
            LastLink::Follow => workspace.locate(&requested)?,
            LastLink::Keep => workspace.locate_name(&requested)?,
        };
        let located = located.writable(given)?;
        let place = located.whole_path();
        stop.as_decided(workspace, given, &place)?;
        stop.require(workspace, (given, &place), ResourceAccess::Write)?;
        let wish = match wish {
            OldContentNeed::IfCheap if !stop.may(workspace, &place, ResourceAccess::Read) => {
                OldContentNeed::Nothing
            }
            OldContentNeed::Nothing | OldContentNeed::IfCheap => wish,
            OldContentNeed::Digest | OldContentNeed::Content => {
                stop.require(workspace, (given, &place), ResourceAccess::Read)?;
                wish
            }
        };
        let path = relative(&located.whole_path()).0.into_owned();
        let mut made = MadeDirectories::default();
        let (parent, name, old) = match located.found {
            PathTarget::Directory(_) => {
                return Err(PathError::IsDirectory {
                    given: given.to_owned(),
                }
                .into());
            }
            PathTarget::Entry { parent, name, stat } => match FileType::from_raw_mode(stat.st_mode)
            {
                FileType::RegularFile => {
                    let old = OldFile::examine((&parent, &name), stat, given, wish, stop)?;
                    (parent, name, Some(old))
                }
                FileType::Directory => {
                    return Err(PathError::IsDirectory {
                        given: given.to_owned(),
                    }
                    .into());
                }
                other => return Err(special(given, other).into()),
            },
            PathTarget::Missing { parent, rest } if missing == IfMissing::Fail => {
                let place = (&parent, located.path.as_path());
                return Err(stop.not_found(workspace, given, place, &rest).into());
            }
            PathTarget::Missing { rest, .. } if rest.len() > 1 && missing == IfMissing::Create => {
                let missing = located.path.join(&rest[0]);
                return Err(WriteError::NoDirectory {
                    path: relative(&missing).0.into_owned(),
                });
            }
            PathTarget::Missing { parent, rest } => {
                stop.check()?;
                let (parent, name) = made.make(parent, rest, &path)?;
                (parent, name, None)
            }
        };
        Ok(Self {
            parent: Arc::new(parent),
            name,
            old,
            path,
            new_mode: NewMode::Plain,
            like: None,
            made,
        })
    }

    /// Compares the digest in the call with the digest of the file.
    pub(super) fn require(&self, expected: Option<&str>) -> Result<(), WriteError> {
        let Some(expected) = expected.map(str::to_ascii_lowercase) else {
            return Ok(());
        };
        let path = self.path.clone();
        match &self.old {
            None => Err(WriteError::Gone { path, expected }),
            Some(old) if old.sha256.as_ref() == Some(&expected) => Ok(()),
            Some(old) => {
                let found = old.sha256.as_deref().unwrap_or("unknown").to_owned();
                Err(WriteError::Changed {
                    path,
                    found,
                    expected,
                })
            }
        }
    }

    /// Writes the new content beside the old one, invisibly.
    pub(super) fn stage(self, content: &[u8], stop: &StopSign) -> Result<StagedFile, WriteError> {
        stop.check()?;
        self.stage_now(content)
    }

    /// Like [`stage`](Self::stage), with the rest of `source`, of any size.
    pub(super) fn copy(self, mut source: File, stop: &StopSign) -> Result<StagedFile, WriteError> {
        let temporary = self.temporary()?;
        let mut hasher = Sha256::new();
        let mut chunk = vec![0; COPIED_BYTES];
        loop {
            stop.check()?;
            let count =
                digest::read_some(&mut source, &mut chunk).map_err(|error| self.failed(error))?;
            if count == 0 {
                break;
            }
            hasher.update(&chunk[..count]);
            temporary
                .write(&chunk[..count])
                .map_err(|error| self.failed(error))?;
        }
        self.finish(temporary, digest::hex(hasher))
    }

    /// Starts new content that arrives in pieces, beside the old one and invisibly.
    pub(super) fn grow(self) -> Result<IncrementalFileWrite, WriteError> {
        Ok(IncrementalFileWrite {
            temporary: self.temporary()?,
            target: self,
            hasher: Sha256::new(),
            bytes: 0,
        })
    }

    fn stage_now(self, content: &[u8]) -> Result<StagedFile, WriteError> {
        let temporary = self.temporary()?;
        temporary
            .write(content)
            .map_err(|error| self.failed(error))?;
        self.finish(temporary, digest::of_bytes(content))
    }

    fn temporary(&self) -> Result<TemporaryFile, WriteError> {
        let mode = Mode::from_raw_mode(self.new_mode.bits() | 0o022);
        TemporaryFile::new(&self.parent, &self.name, mode).map_err(|error| self.failed(error))
    }

    fn finish(self, temporary: TemporaryFile, sha256: String) -> Result<StagedFile, WriteError> {
        self.dress(&temporary).map_err(|error| self.failed(error))?;
        temporary.sync().map_err(|error| self.failed(error))?;
        Ok(StagedFile {
            temporary,
            sha256,
            target: self,
        })
    }

    fn failed(&self, source: impl Into<io::Error>) -> WriteError {
        WriteError::Io {
            path: self.path.clone(),
            source: source.into(),
        }
    }

    /// Gives the new file the old one's owner and mode, without the set-user-ID and set-group-ID bits: they were
    /// granted to the old content.
    fn dress(&self, temporary: &TemporaryFile) -> Result<(), Errno> {
        let file = temporary.file();
        let fresh = fstat(file)?;
        let mode = match self.old.as_ref().map(|old| old.stat).or(self.like) {
            Some(old) => {
                if (old.st_uid, old.st_gid) != (fresh.st_uid, fresh.st_gid) {
                    let owner = Uid::from_raw(old.st_uid);
                    let group = Gid::from_raw(old.st_gid);
                    // Only the superuser can change the owner; other users keep the files that they write.
                    let _ = fchown(file, Some(owner), Some(group));
                }
                old.st_mode & 0o777
            }
            None => fresh.st_mode & self.new_mode.bits(),
        };
        fchmod(file, Mode::from_raw_mode(mode))
    }

    /// The last check before the name is taken. It cannot see a change right after it; the scheduler's locks keep calls
    /// of this host apart.
    fn require_unchanged(&self) -> Result<(), WriteError> {
        let now = statat(&*self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        match (now, &self.old) {
            (Ok(now), Some(old)) if old.is_still(&now) => Ok(()),
            (Err(Errno::NOENT), None) => Ok(()),
            (Ok(_), _) | (Err(Errno::NOENT), _) => Err(WriteError::ChangedMeanwhile {
                path: self.path.clone(),
            }),
            (Err(error), _) => Err(self.failed(error)),
        }
    }
}

/// New content that arrives in pieces.
pub(super) struct IncrementalFileWrite {
    /// Fields are dropped in this order: the file goes before the directories that were created for it.
    temporary: TemporaryFile,
    target: WriteTarget,
    hasher: Sha256,
    bytes: u64,
}

impl IncrementalFileWrite {
    /// Writes another piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), WriteError> {
        self.temporary
            .write(piece)
            .map_err(|error| self.target.failed(error))?;
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// The bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Completes the content.
    pub(super) fn finish(self) -> Result<StagedFile, WriteError> {
        let Self {
            temporary,
            target,
            hasher,
            ..
        } = self;
        target.finish(temporary, digest::hex(hasher))
    }
}

/// New content that only has to take its name.
pub(super) struct StagedFile {
    /// Fields are dropped in this order: the file goes before the directories that were created for it.
    temporary: TemporaryFile,
    pub(super) target: WriteTarget,
    pub(super) sha256: String,
}

impl StagedFile {
    /// Makes the new content visible.
    pub(super) fn commit(
        self,
        taking: ReplaceCondition,
        stop: &StopSign,
    ) -> Result<WrittenFile, WriteError> {
        stop.check()?;
        self.commit_now(taking)
    }

    fn commit_now(mut self, taking: ReplaceCondition) -> Result<WrittenFile, WriteError> {
        let target = &self.target;
        if taking == ReplaceCondition::Unchanged {
            target.require_unchanged()?;
        }
        let placed = match (taking, &target.old) {
            (ReplaceCondition::Unchanged, None) => self.temporary.take_new(&target.name),
            (ReplaceCondition::Unchanged, Some(_)) | (ReplaceCondition::Any, _) => {
                self.temporary.take_over(&target.name)
            }
        };
        match placed {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                return Err(WriteError::ChangedMeanwhile {
                    path: target.path.clone(),
                });
            }
            Err(error) => return Err(target.failed(error)),
        }
        let stat = fstat(self.temporary.file()).ok();
        let path = self.target.path.clone();
        let synced = sync_directory(&self.target.parent).and_then(|()| self.target.made.keep());
        let durable = synced.map_err(|source| WriteError::NotDurable { path, source });
        Ok(WrittenFile {
            target: self.target,
            sha256: self.sha256,
            stat,
            durable,
        })
    }
}

/// A file that was written.
pub(super) struct WrittenFile {
    pub(super) target: WriteTarget,
    pub(super) sha256: String,
    /// The file's metadata right after it took the name.
    stat: Option<Stat>,
    /// Whether the change survives a power loss.
    pub(super) durable: Result<(), WriteError>,
}

impl WrittenFile {
    /// Whether the file did not exist before.
    pub(super) fn created(&self) -> bool {
        self.target.old.is_none()
    }

    /// Restores the old state, unless another program has changed the file since.
    pub(super) fn undo(self) -> Result<(), WriteError> {
        let Self { target, stat, .. } = self;
        let now = statat(&*target.parent, &target.name, AtFlags::SYMLINK_NOFOLLOW);
        let is_ours = now
            .ok()
            .zip(stat)
            .is_some_and(|(now, then)| old_file::same(&now, &then));
        if !is_ours {
            return Err(WriteError::ChangedMeanwhile { path: target.path });
        }
        match target.old.as_ref().map(|old| old.content.clone()) {
            Some(Some(content)) => {
                target
                    .stage_now(&content)?
                    .commit_now(ReplaceCondition::Any)?
                    .durable
            }
            // Changes of several files together only use files that were read whole.
            Some(None) => Err(WriteError::ChangedMeanwhile { path: target.path }),
            None => {
                unlinkat(&*target.parent, &target.name, AtFlags::empty())
                    .map_err(|error| target.failed(error))?;
                target.made.take_back();
                Ok(())
            }
        }
    }
}
