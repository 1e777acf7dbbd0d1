//! Finds the paths that rules close to calls. A process opens files without asking the host, so its sandbox must close
//! these paths in advance.
//!
//! The search walks through the process's view, as far as kept paths can be there. It finds neither files that are
//! created while the process runs, nor other names of the same file.

use std::{
    ffi::{CStr, CString, OsStr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, CWD, Dir as Listing, FileType, Mode, OFlags, Statx, StatxFlags, openat, statat,
        statx,
    },
    io::Errno,
    time::{ClockId, clock_gettime},
};
use toolpost_model::{CallContext, ErrorClass, ResourceAccess, ToolFailure};
use toolpost_sandbox::SandboxRoot;

use crate::workspace::names::shown;

/// Limits of a search: names, time, and paths that a process can be closed to.
const MOST_NAMES: usize = 200_000;
const MOST_TIME: Duration = Duration::from_secs(2);
const MOST_PATHS: usize = 4_096;
/// The search holds one descriptor per level.
const MOST_LEVELS: usize = 200;
/// The coarsest time step of a file system, in seconds.
const LONGEST_STEP: i64 = 2;
/// Names between two checks of the clock.
const NAMES_A_LOOK: usize = 512;
/// A name that no file has. If rules close even this path, they also close every file that is created there later.
const ANY_NAME: &str = "\u{1}any\u{1}";

const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Absolute paths that exist.
#[derive(Debug, Default)]
pub(crate) struct KeptPaths {
    /// Closed for reading, with everything beneath.
    pub(crate) masked: Vec<PathBuf>,
    /// Closed for changes, with everything beneath.
    pub(crate) protected: Vec<PathBuf>,
}

impl KeptPaths {
    pub(crate) fn is_empty(&self) -> bool {
        self.masked.is_empty() && self.protected.is_empty()
    }

    /// The files at these paths now, sorted by path. Reads the metadata of each.
    pub(crate) fn marks(&self) -> Vec<PathMark> {
        let masked = self
            .masked
            .iter()
            .map(|path| PathMark::of(path, ResourceAccess::Read));
        let protected = self
            .protected
            .iter()
            .map(|path| PathMark::of(path, ResourceAccess::Write));
        let mut marks: Vec<PathMark> = masked.chain(protected).collect();
        marks.sort_by(|one, other| one.path.cmp(&other.path));
        marks
    }
}

/// A kept path and its file. A mount covers a file and not a name: if the file is removed or another file is moved to
/// its path, the cover is gone and the path is open again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathMark {
    path: PathBuf,
    kept: ResourceAccess,
    /// Device and inode of the file.
    file: Option<(u32, u32, u64)>,
    /// The time of creation, because inodes are reused. On a file system without it: the time of the last change, and
    /// `None` for a folder, whose entries change.
    made: Option<(i64, u32)>,
}

impl PathMark {
    fn of(path: &Path, kept: ResourceAccess) -> Self {
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME | StatxFlags::CTIME;
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok();
        let made = found.as_ref().and_then(|stat| {
            let is_folder = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory;
            let is_dated = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
            match (is_dated, is_folder) {
                (true, _) => Some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
                (false, true) => None,
                (false, false) => Some((stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec)),
            }
        });
        let file = found.map(|stat| (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino));
        Self {
            path: path.to_owned(),
            kept,
            file,
            made,
        }
    }
}

/// The directories of a search with their state at that time. While all of them are unchanged, the same search finds
/// the same paths. Checking the directories costs a fraction of checking every name in them.
#[derive(Debug, Default)]
pub(crate) struct SearchTrail {
    directories: Vec<DirectoryMark>,
    /// Whether a directory had changed shortly before it was listed.
    is_fresh: bool,
}

/// A path that a search visited. `seen` is `None` if it did not exist.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryMark {
    path: PathBuf,
    seen: Option<DirectoryState>,
}

/// The identity of a directory, and the time of the last change of its entries or rights. The change time is used and
/// not the modification time, because programs can set the latter back.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryState {
    device: (u32, u32),
    inode: u64,
    changed: (i64, u32),
}

impl DirectoryState {
    fn of(found: &Statx) -> Self {
        Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
        }
    }

    fn at(path: &Path) -> Option<Self> {
        let wanted = StatxFlags::INO | StatxFlags::CTIME;
        statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted)
            .ok()
            .map(|found| Self::of(&found))
    }
}

impl SearchTrail {
    /// Notes the state of a directory before it is listed.
    fn note(&mut self, path: &Path, seen: Option<DirectoryState>) {
        // File systems count time in steps. A name that is created after the listing, but within the same step as the
        // noted change, leaves the time as it is, and the trail would look unchanged. A trail with so recent a change
        // is therefore never valid, and the search runs again. The kernel stamps files with the coarse clock, so this
        // compares with the same one.
        let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        let is_fresh = |seen: &DirectoryState| now - seen.changed.0 <= LONGEST_STEP;
        self.is_fresh |= seen.as_ref().is_some_and(is_fresh);
        self.directories.push(DirectoryMark {
            path: path.to_owned(),
            seen,
        });
    }

    /// Whether the search would find the same paths again.
    pub(crate) fn is_unchanged(&self) -> bool {
        !self.is_fresh
            && self
                .directories
                .iter()
                .all(|mark| mark.seen == DirectoryState::at(&mark.path))
    }
}

/// The rules of a search.
pub(crate) trait KeepingRules {
    /// Places with kept paths; each includes everything beneath it.
    fn kept_places(&self) -> Vec<PathBuf>;

    /// Whether a path may be used.
    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool;

    /// Whether the result is no longer needed.
    fn is_canceled(&self) -> bool;
}

/// The rules for one call.
impl KeepingRules for CallContext {
    fn kept_places(&self) -> Vec<PathBuf> {
        self.kept_places()
    }

    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        self.may_use(path, access)
    }

    fn is_canceled(&self) -> bool {
        self.is_canceled()
    }
}

/// Why the kept paths of a process cannot be determined, so that it cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    #[error(
        "rules deny paths to this call, and the files of its process are too many to search for them (the \
         limits are {MOST_NAMES} names and {MOST_TIME:?})"
    )]
    TooMany,
    #[error(
        "rules deny more than {MOST_PATHS} single paths to this call, too many to hide from a process"
    )]
    TooManyKept,
    #[error("rules deny all of `{}` to this call", shown(&.path.to_string_lossy()))]
    Everything { path: PathBuf },
    #[error("the call was canceled before its process was started")]
    Stopped,
}

impl KeptError {
    /// The error as the failure of a call. Nothing was started.
    pub(crate) fn into_failure(self) -> ToolFailure {
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

/// The view of a process.
pub(crate) struct ProcessPathView<'s> {
    /// Its roots; searched like readable paths.
    pub(crate) roots: &'s [SandboxRoot],
    /// Searched wherever kept paths can be.
    pub(crate) readable: &'s [PathBuf],
    /// Searched only at places that a rule names: directories of programs, which have too many files.
    pub(crate) programs: &'s [PathBuf],
    /// Whether it may write in writable roots.
    pub(crate) writes: bool,
}

/// Finds the existing paths that rules close.
pub(crate) fn find_kept(
    sight: &ProcessPathView<'_>,
    rules: &dyn KeepingRules,
) -> Result<(KeptPaths, SearchTrail), KeptError> {
    let until = Instant::now() + MOST_TIME;
    let kept = KeptPaths::default();
    let trail = SearchTrail::default();
    let mut search = KeptPathSearch {
        rules,
        until,
        looked_at: 0,
        kept,
        trail,
    };
    for start in starts(sight, &rules.kept_places()) {
        search.start(sight.roots, start)?;
    }
    Ok((search.kept, search.trail))
}

/// A place to search.
#[derive(Debug, PartialEq, Eq)]
struct KeptSearchStart {
    path: PathBuf,
    writable: bool,
}

/// The places of `kept` within the view; none is beneath another.
fn starts(sight: &ProcessPathView<'_>, kept: &[PathBuf]) -> Vec<KeptSearchStart> {
    let is_open = |root: &SandboxRoot| sight.writes && root.access == ResourceAccess::Write;
    let roots = sight
        .roots
        .iter()
        .map(|root| (root.path.as_path(), is_open(root), true));
    let readable = sight
        .readable
        .iter()
        .map(|path| (path.as_path(), false, true));
    let programs = sight
        .programs
        .iter()
        .map(|path| (path.as_path(), false, false));
    let mut found: Vec<KeptSearchStart> = Vec::new();
    for (tree, writable, always) in roots.chain(readable).chain(programs) {
        for place in kept {
            let anywhere = place.parent().is_none();
            let path = match (tree.starts_with(place), place.starts_with(tree)) {
                (true, _) if always || !anywhere => tree,
                (false, true) => place,
                (true, _) | (false, false) => continue,
            };
            found.push(KeptSearchStart {
                path: path.to_owned(),
                writable,
            });
        }
    }
    // Outer before inner. A writable root in a readable tree is searched by itself.
    found.sort_by(|a, b| {
        (a.path.components().count(), b.writable).cmp(&(b.path.components().count(), a.writable))
    });
    let mut starts: Vec<KeptSearchStart> = Vec::new();
    for start in found {
        let covers = |other: &KeptSearchStart| {
            start.path.starts_with(&other.path) && (other.writable || !start.writable)
        };
        if !starts.iter().any(covers) {
            starts.push(start);
        }
    }
    starts
}

struct KeptPathSearch<'s> {
    rules: &'s dyn KeepingRules,
    until: Instant,
    looked_at: usize,
    kept: KeptPaths,
    trail: SearchTrail,
}

/// A directory of the search.
struct KeptSearchLevel {
    dir: OwnedFd,
    path: PathBuf,
    writable: bool,
    depth: usize,
}

impl KeptPathSearch<'_> {
    fn start(&mut self, roots: &[SandboxRoot], start: KeptSearchStart) -> Result<(), KeptError> {
        let KeptSearchStart { path, writable } = start;
        let whole = roots.iter().any(|root| path == root.path);
        if whole && !self.may(&path, ResourceAccess::Read) {
            return Err(KeptError::Everything { path });
        }
        // By its path, as the launcher will open it. A path that is missing, or is reached only by a link, gets no
        // guard.
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        // A directory is noted a second time when it is listed. A file or a missing path gets only this mark.
        self.trail.note(&path, DirectoryState::at(&path));
        let Ok(parent) = openat(CWD, parent, LIST - OFlags::NOFOLLOW, Mode::empty()) else {
            return Ok(());
        };
        let Ok(name) = CString::new(name.as_bytes()) else {
            return Ok(());
        };
        let Ok(stat) = statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(());
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let before = self.kept.masked.len();
        self.entry(&parent, (&name, kind), &path, (writable, 0))?;
        match whole && self.kept.masked[before..].contains(&path) {
            true => Err(KeptError::Everything { path }),
            false => Ok(()),
        }
    }

    fn may(&self, path: &Path, access: ResourceAccess) -> bool {
        self.rules.may_use(path, access)
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
        match (self.rules.is_canceled(), Instant::now() >= self.until) {
            (true, _) => Err(KeptError::Stopped),
            (false, true) => Err(KeptError::TooMany),
            (false, false) => Ok(()),
        }
    }

    /// Checks one name in an open directory. `path` is its whole path.
    fn entry(
        &mut self,
        parent: &OwnedFd,
        (name, kind): (&CStr, FileType),
        path: &Path,
        (writable, depth): (bool, usize),
    ) -> Result<(), KeptError> {
        // The target of a link decides whether it may be read.
        if kind != FileType::Symlink && !self.may(path, ResourceAccess::Read) {
            return self.mask(path);
        }
        let protected = writable && !self.may(path, ResourceAccess::Write);
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
                self.directory(&KeptSearchLevel {
                    dir,
                    path: path.to_owned(),
                    writable,
                    depth: depth + 1,
                })
            }
            // The directory is gone, or a process with fewer rights than the host could not read it either.
            Err(_) => {
                self.trail.note(path, DirectoryState::at(path));
                Ok(())
            }
        }
    }

    fn directory(&mut self, level: &KeptSearchLevel) -> Result<(), KeptError> {
        let found = statx(
            &level.dir,
            c"",
            AtFlags::EMPTY_PATH,
            StatxFlags::INO | StatxFlags::CTIME,
        );
        self.trail
            .note(&level.path, found.ok().as_ref().map(DirectoryState::of));
        let names = self.names(level)?;
        let path = |name: &CStr| level.path.join(OsStr::from_bytes(name.to_bytes()));
        let any = level.path.join(ANY_NAME);
        let none = |access| names.iter().all(|(name, _)| !self.may(&path(name), access));
        // The whole directory if possible, because that also closes names that are created there later. Masks of single
        // names would leave those open.
        if !self.may(&any, ResourceAccess::Read) && none(ResourceAccess::Read) {
            return self.mask(&level.path);
        }
        let sealed =
            level.writable && !self.may(&any, ResourceAccess::Write) && none(ResourceAccess::Write);
        if sealed {
            self.protect(&level.path)?;
        }
        let writable = level.writable && !sealed;
        for (name, kind) in &names {
            self.entry(
                &level.dir,
                (name, *kind),
                &path(name),
                (writable, level.depth),
            )?;
        }
        Ok(())
    }

    fn names(&mut self, level: &KeptSearchLevel) -> Result<Vec<(CString, FileType)>, KeptError> {
        let mut names = Vec::new();
        let Ok(listing) = Listing::read_from(&level.dir) else {
            return Ok(names);
        };
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
