//! What rules keep from a call, as paths: for processes, which ask nobody and must be shut out beforehand.
//!
//! A walk through what a process will see, as far as kept paths can lie there. What is made while the process runs
//! is not among it, nor another name of the same file.

use std::{
    ffi::{CStr, CString, OsStr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Dir as Listing, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};
use toolpost_model::{Access, CallContext, ErrorClass, ToolFailure};

use super::Workspace;

/// How many names are looked at, for how long, and how many paths a process can be shut out of.
const MOST_NAMES: usize = 200_000;
const MOST_TIME: Duration = Duration::from_secs(2);
const MOST_PATHS: usize = 4_096;
/// A descriptor is held for each level.
const MOST_LEVELS: usize = 200;
/// Names between two looks at the clock.
const NAMES_A_LOOK: usize = 512;
/// A name nobody uses. Where even this is kept, so is whatever comes there later.
const ANY_NAME: &str = "\u{1}any\u{1}";

const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Absolute paths that exist.
#[derive(Debug, Default)]
pub(in crate::native) struct KeptPaths {
    /// May not be read, with all beneath.
    pub(in crate::native) masked: Vec<PathBuf>,
    /// May not be changed, with all beneath.
    pub(in crate::native) protected: Vec<PathBuf>,
}

impl KeptPaths {
    pub(in crate::native) fn is_empty(&self) -> bool {
        self.masked.is_empty() && self.protected.is_empty()
    }
}

/// Why nobody can tell what to keep from a process, so that it cannot be started.
#[derive(Debug, thiserror::Error)]
pub(in crate::native) enum KeptError {
    #[error(
        "rules keep paths from this call, and what its process would see is too large to be searched for them (the \
         limits are {MOST_NAMES} names and {MOST_TIME:?})"
    )]
    TooMany,
    #[error("rules keep more than {MOST_PATHS} single paths from this call, too many to keep from a process")]
    TooManyKept,
    #[error("rules keep all of `{}` from this call", .path.display())]
    Everything { path: PathBuf },
    #[error("the call was canceled before its process was started")]
    Stopped,
}

impl KeptError {
    /// As the call's result tells it. Nothing was started.
    pub(in crate::native) fn into_failure(self) -> ToolFailure {
        let message = self.to_string();
        match self {
            Self::TooMany | Self::TooManyKept => ToolFailure::of(ErrorClass::PermissionDenied, message).hint(
                "the operator can write the rules for whole folders (`ws:secrets/**` in place of `*.key`), or leave \
                 large folders out of the roots",
            ),
            Self::Everything { .. } => ToolFailure::of(ErrorClass::PermissionDenied, message),
            Self::Stopped => return ToolFailure::of(ErrorClass::Canceled, message).untouched(),
        }
        .code("kept_by_rule")
        .untouched()
    }
}

/// What a process sees.
pub(in crate::native) struct Sight<'s> {
    /// Looked through wherever kept paths can lie.
    pub(in crate::native) readable: &'s [PathBuf],
    /// Looked through only where a rule names a place in them: programs, of which there are too many.
    pub(in crate::native) programs: &'s [PathBuf],
    /// Whether it may write in writable roots.
    pub(in crate::native) writes: bool,
}

/// Finds what is there that rules keep from the call.
pub(super) fn find(
    workspace: &Workspace,
    sight: &Sight<'_>,
    context: &CallContext,
) -> Result<KeptPaths, KeptError> {
    let until = Instant::now() + MOST_TIME;
    let mut search = Search { context, until, looked_at: 0, kept: KeptPaths::default() };
    for start in starts(workspace, sight, &context.kept_places()) {
        search.start(workspace, start)?;
    }
    Ok(search.kept)
}

/// Where to look.
#[derive(Debug, PartialEq, Eq)]
struct Start {
    path: PathBuf,
    writable: bool,
}

/// The places of `kept` within sight, none of them beneath another.
fn starts(workspace: &Workspace, sight: &Sight<'_>, kept: &[PathBuf]) -> Vec<Start> {
    let roots = workspace.roots().map(|(path, access)| (path, sight.writes && access == Access::Write, true));
    let readable = sight.readable.iter().map(|path| (path.as_path(), false, true));
    let programs = sight.programs.iter().map(|path| (path.as_path(), false, false));
    let mut found: Vec<Start> = Vec::new();
    for (tree, writable, always) in roots.chain(readable).chain(programs) {
        for place in kept {
            let anywhere = place.parent().is_none();
            let path = match (tree.starts_with(place), place.starts_with(tree)) {
                (true, _) if always || !anywhere => tree,
                (false, true) => place,
                (true, _) | (false, false) => continue,
            };
            found.push(Start { path: path.to_owned(), writable });
        }
    }
    // The outer first. A writable root in a readable tree is looked at for itself.
    found.sort_by(|a, b| {
        (a.path.components().count(), b.writable).cmp(&(b.path.components().count(), a.writable))
    });
    let mut starts: Vec<Start> = Vec::new();
    for start in found {
        let covers =
            |other: &Start| start.path.starts_with(&other.path) && (other.writable || !start.writable);
        if !starts.iter().any(covers) {
            starts.push(start);
        }
    }
    starts
}

struct Search<'s> {
    context: &'s CallContext,
    until: Instant,
    looked_at: usize,
    kept: KeptPaths,
}

/// A directory that is being looked through.
struct Level {
    dir: OwnedFd,
    path: PathBuf,
    writable: bool,
    depth: usize,
}

impl Search<'_> {
    fn start(&mut self, workspace: &Workspace, start: Start) -> Result<(), KeptError> {
        let Start { path, writable } = start;
        let whole = workspace.roots().any(|(root, _)| path == root);
        if whole && !self.may(&path, Access::Read) {
            return Err(KeptError::Everything { path });
        }
        // By its path, as the launcher will take it. What is not there, or is reached only by a link, has no guard.
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let Ok(parent) = openat(CWD, parent, LIST - OFlags::NOFOLLOW, Mode::empty()) else { return Ok(()) };
        let Ok(name) = CString::new(name.as_bytes()) else { return Ok(()) };
        let Ok(stat) = statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let before = self.kept.masked.len();
        self.entry(&parent, (&name, kind), &path, (writable, 0))?;
        match whole && self.kept.masked[before..].contains(&path) {
            true => Err(KeptError::Everything { path }),
            false => Ok(()),
        }
    }

    fn may(&self, path: &Path, access: Access) -> bool {
        self.context.may_use(path, access)
    }

    fn mask(&mut self, path: &Path) -> Result<(), KeptError> {
        self.kept.masked.push(path.to_owned());
        self.check_room()
    }

    fn protect(&mut self, path: &Path) -> Result<(), KeptError> {
        self.kept.protected.push(path.to_owned());
        self.check_room()
    }

    fn check_room(&self) -> Result<(), KeptError> {
        match self.kept.masked.len() + self.kept.protected.len() > MOST_PATHS {
            true => Err(KeptError::TooManyKept),
            false => Ok(()),
        }
    }

    fn count(&mut self) -> Result<(), KeptError> {
        self.looked_at += 1;
        if self.looked_at > MOST_NAMES {
            return Err(KeptError::TooMany);
        }
        if !self.looked_at.is_multiple_of(NAMES_A_LOOK) {
            return Ok(());
        }
        match (self.context.is_canceled(), Instant::now() >= self.until) {
            (true, _) => Err(KeptError::Stopped),
            (false, true) => Err(KeptError::TooMany),
            (false, false) => Ok(()),
        }
    }

    /// Looks at what has a name in an open directory. `path` is its whole path.
    fn entry(
        &mut self,
        parent: &OwnedFd,
        (name, kind): (&CStr, FileType),
        path: &Path,
        (writable, depth): (bool, usize),
    ) -> Result<(), KeptError> {
        // Whoever reads through a link is judged by where that leads.
        if kind != FileType::Symlink && !self.may(path, Access::Read) {
            return self.mask(path);
        }
        let protected = writable && !self.may(path, Access::Write);
        if protected {
            self.protect(path)?;
        }
        if kind != FileType::Directory {
            return Ok(());
        }
        if depth == MOST_LEVELS {
            return Err(KeptError::TooMany);
        }
        match openat(parent, name, LIST, Mode::empty()) {
            Ok(dir) => {
                let writable = writable && !protected;
                self.directory(&Level { dir, path: path.to_owned(), writable, depth: depth + 1 })
            }
            // Gone, or nothing that could be read by a process with fewer rights than this one.
            Err(_) => Ok(()),
        }
    }

    fn directory(&mut self, level: &Level) -> Result<(), KeptError> {
        let names = self.names(level)?;
        let path = |name: &CStr| level.path.join(OsStr::from_bytes(name.to_bytes()));
        let any = level.path.join(ANY_NAME);
        let none = |access| names.iter().all(|(name, _)| !self.may(&path(name), access));
        // As a whole where possible: then what comes there later is kept too.
        if !self.may(&any, Access::Read) && none(Access::Read) {
            return self.mask(&level.path);
        }
        let sealed = level.writable && !self.may(&any, Access::Write) && none(Access::Write);
        if sealed {
            self.protect(&level.path)?;
        }
        let writable = level.writable && !sealed;
        for (name, kind) in &names {
            self.entry(&level.dir, (name, *kind), &path(name), (writable, level.depth))?;
        }
        Ok(())
    }

    fn names(&mut self, level: &Level) -> Result<Vec<(CString, FileType)>, KeptError> {
        let mut names = Vec::new();
        let Ok(listing) = Listing::read_from(&level.dir) else { return Ok(names) };
        for entry in listing {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.count()?;
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&level.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(_) => FileType::Unknown,
                },
                known => known,
            };
            names.push((name.to_owned(), kind));
        }
        Ok(names)
    }
}
