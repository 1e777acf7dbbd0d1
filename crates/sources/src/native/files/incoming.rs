//! A file whose content comes in pieces, from somewhere slow: the HTTP tools save bodies with it.
//!
//! No worker thread waits for the next piece. The pieces go into a file without a name beside the target; only
//! when all have come is it written, as `write_file` does it: seen wholly or not at all.

use std::{
    ffi::OsString,
    io::{self, Seek as _, Write as _},
    path::PathBuf,
    sync::Arc,
};

use cap_std::fs::{Dir, File};
use cap_tempfile::TempFile;
use rustix::fs::{Access as Right, AtFlags, FileType, Gid, Mode, Stat, Uid, accessat, fchmod, fchown, fstat};
use sha2::{Digest as _, Sha256};
use toolpost_model::{Effects, Refusal, ToolFailure};

use super::{
    Touch, change_effects,
    digest::{hex, read_some},
    failure::{PathError, io_code, special},
    names::{relative, shown},
    worker::{StopSign, Stopped},
    workspace::{Found, Located, Workspace, sync_directory},
};

/// New files may be read by all and written by their owner, less what the umask takes.
const NEW_MODE: u32 = 0o644;
/// How much is copied between two looks at the stop sign.
const CHUNK_BYTES: usize = 256 * 1024;

/// A file that is coming in.
pub(crate) struct IncomingFile {
    workspace: Arc<Workspace>,
    given: String,
    /// Where the path led when the call began. It must lead there in the end too: what was decided on is this place.
    place: PathBuf,
    spool: File,
    bytes: u64,
    hasher: Sha256,
}

/// A file that was saved.
pub(crate) struct SavedFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) created: bool,
}

/// Why nothing was saved, or why that is not certain.
#[derive(Debug, thiserror::Error)]
enum SaveError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error("the directory of `{}` does not exist", shown(.given))]
    NoDirectory { given: String },
    #[error("`{}` leads somewhere else than when the call began; nothing was saved", shown(.given))]
    Moved { given: String },
    #[error("cannot write `{}`: {source}", shown(.given))]
    Io { given: String, source: io::Error },
    #[error("`{}` was written, but could not be made durable: {source}", shown(.given))]
    NotDurable { given: String, source: io::Error },
}

impl SaveError {
    fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string());
        match self {
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::NoDirectory { .. } => failure.code("not_found").hint("name a directory that exists"),
            Self::Moved { .. } => failure.code("swapped").hint("call again"),
            Self::Io { source, .. } => failure.code(io_code(&source)),
            Self::NotDurable { .. } => failure.code("not_durable"),
        }
    }
}

/// Looks at a path to save to, without I/O. `at` is where the path stands among the arguments.
pub(crate) fn check_incoming(workspace: &Workspace, given: &str, at: &str) -> Result<(), Refusal> {
    let requested = workspace.request_change(given).map_err(|refusal| {
        let refusal = refusal.into_refusal();
        Refusal { at: at.to_owned(), ..refusal }
    })?;
    match requested.names_directory() {
        true => {
            Err(Refusal::invalid(at, format!("`{}` names a directory; name the file to write", shown(given))))
        }
        false => Ok(()),
    }
}

/// Adds to `effects` what saving to a path touches.
pub(crate) fn incoming_effects(workspace: &Workspace, effects: Effects, given: &str) -> Option<Effects> {
    change_effects(workspace, effects, Touch::content(given))
}

impl IncomingFile {
    /// Finds the place, and refuses it before anything was fetched for it.
    pub(crate) fn begin(workspace: Arc<Workspace>, given: &str) -> Result<Self, ToolFailure> {
        let begin = || {
            let located = locate(&workspace, given)?;
            let place = located.whole_path();
            let target = Target::of(located, given)?;
            let spool = TempFile::new_anonymous(&target.parent).map_err(|source| failed(given, source))?;
            Ok((place, spool))
        };
        let (place, spool) = begin().map_err(SaveError::into_failure)?;
        Ok(Self { workspace, given: given.to_owned(), place, spool, bytes: 0, hasher: Sha256::new() })
    }

    /// Takes another piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), ToolFailure> {
        let written = self.spool.write_all(piece);
        written.map_err(|source| failed(&self.given, source).into_failure())?;
        self.bytes += piece.len() as u64;
        self.hasher.update(piece);
        Ok(())
    }

    /// All pieces have come: gives the file its name.
    pub(crate) fn finish(self, stop: &StopSign) -> Result<SavedFile, ToolFailure> {
        self.save(stop).map_err(SaveError::into_failure)
    }

    fn save(mut self, stop: &StopSign) -> Result<SavedFile, SaveError> {
        let given = self.given.as_str();
        let located = locate(&self.workspace, given)?;
        if located.whole_path() != self.place {
            return Err(SaveError::Moved { given: given.to_owned() });
        }
        let target = Target::of(located, given)?;
        let failed = |source| failed(given, source);
        let mut temporary = TempFile::new(&target.parent).map_err(failed)?;
        self.spool.rewind().map_err(failed)?;
        copy(&mut self.spool, &mut temporary, given, stop)?;
        target.dress(&temporary).map_err(failed)?;
        temporary.as_file().sync_all().map_err(failed)?;
        stop.check()?;
        temporary.replace(&target.name).map_err(failed)?;
        sync_directory(&target.parent)
            .map_err(|source| SaveError::NotDurable { given: given.to_owned(), source })?;
        Ok(SavedFile {
            path: relative(&self.place).0.into_owned(),
            bytes: self.bytes,
            sha256: hex(self.hasher),
            created: target.old.is_none(),
        })
    }
}

fn failed(given: &str, source: io::Error) -> SaveError {
    SaveError::Io { given: given.to_owned(), source }
}

fn locate(workspace: &Workspace, given: &str) -> Result<Located, SaveError> {
    Ok(workspace.locate(&workspace.request_change(given).map_err(PathError::from)?)?)
}

fn copy(from: &mut File, to: &mut TempFile<'_>, given: &str, stop: &StopSign) -> Result<(), SaveError> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        stop.check()?;
        match read_some(from, &mut chunk).map_err(|source| failed(given, source))? {
            0 => return Ok(()),
            count => to.write_all(&chunk[..count]).map_err(|source| failed(given, source))?,
        }
    }
}

/// The name to write, in its open directory.
struct Target {
    parent: Dir,
    name: OsString,
    old: Option<Stat>,
}

impl Target {
    fn of(located: Located, given: &str) -> Result<Self, SaveError> {
        match located.found {
            Found::Directory(_) => Err(PathError::IsDirectory { given: given.to_owned() }.into()),
            Found::Entry { parent, name, stat } => {
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => {}
                    other => return Err(special(given, other).into()),
                }
                // A rename asks only for rights on the directory.
                let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
                accessat(&parent, &name, Right::WRITE_OK, flags)
                    .map_err(|error| failed(given, error.into()))?;
                Ok(Self { parent, name, old: Some(stat) })
            }
            Found::Missing { parent, mut rest } => match (rest.pop(), rest.is_empty()) {
                (Some(name), true) => Ok(Self { parent, name, old: None }),
                _ => Err(SaveError::NoDirectory { given: given.to_owned() }),
            },
        }
    }

    /// Gives the new file the old one's owner and mode, without the bits that lend its owner's rights to others.
    fn dress(&self, temporary: &TempFile<'_>) -> io::Result<()> {
        let file = temporary.as_file();
        let fresh = fstat(file)?;
        let mode = match &self.old {
            Some(old) => {
                if (old.st_uid, old.st_gid) != (fresh.st_uid, fresh.st_gid) {
                    // Only the superuser can give files away; others keep what they write.
                    let _ = fchown(file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
                }
                old.st_mode & 0o777
            }
            None => fresh.st_mode & NEW_MODE,
        };
        Ok(fchmod(file, Mode::from_raw_mode(mode))?)
    }
}
