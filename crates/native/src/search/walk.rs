//! Walks a tree on several threads and passes every matching regular file to a visitor.
//!
//! Names are never trusted twice. A directory is opened beneath the start without following a link, and its entries are
//! then reached through its descriptor. A name that is swapped for a link during the walk therefore leads nowhere.
//! `ignore`'s own walker uses paths, so only its rules are used here.
//!
//! The threads are started by the file worker's thread and inherit its confinement.

mod open;
mod queue;
mod rules;

use std::{
    ffi::{CStr, CString, OsStr},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::{
    fd::{AsFd as _, BorrowedFd},
    fs::{AtFlags, Dir as Listing, DirEntry, FileType, statat},
};
use toolpost_model::ResourceAccess;
use toolpost_processes::Workspace;

pub(super) use self::{
    open::{open_directory, open_file, open_file_beneath},
    rules::IgnoreRules,
};
use self::{
    queue::{PendingDirectory, WalkJob, WalkQueue},
    rules::IgnoreRuleMatch,
};
use super::{start::SearchStart, watch::SearchStopSignal};

/// The deepest level of a walk. Tools do not accept deeper paths either.
const MAX_DEPTH: usize = 128;
/// The longest path that is entered or shown. No tool accepts a longer one.
const MAX_PLACE: usize = 4096;
/// Threads of one walk.
const MAX_THREADS: usize = 8;
/// Files that are passed to another thread at once.
const BATCH: usize = 64;
/// Files between two checks of the clock.
const FILES_A_LOOK: u32 = 16;
/// Directories of version control. They are searched only when named, because callers rarely search the history.
const VERSION_CONTROL: [&[u8]; 4] = [b".git", b".hg", b".svn", b".jj"];

/// The tree to walk, and the entries to skip.
pub(super) struct FileWalkPlan<'p> {
    pub(super) workspace: &'p Workspace,
    pub(super) start: &'p SearchStart,
    pub(super) include_hidden: bool,
    pub(super) include_ignored: bool,
    /// Levels to descend; 1 is the start itself.
    pub(super) depth: usize,
    /// Matches files by their path from the start and from the workspace.
    pub(super) wanted: &'p (dyn Fn(&Path, &Path) -> bool + Sync),
}

/// A regular file, as its directory lists it.
pub(super) struct WalkedFile<'m> {
    pub(super) dir: BorrowedFd<'m>,
    pub(super) name: &'m CStr,
    /// Its path in the workspace.
    pub(super) place: &'m Path,
}

/// Processes the files. Each thread has its own.
pub(super) trait FileVisitor {
    fn file(&mut self, met: &WalkedFile<'_>);
}

/// Counts of skipped entries.
#[derive(Default)]
pub(super) struct PassedOver {
    /// Files and directories that ignore files exclude.
    pub(super) ignored: AtomicU64,
    /// Directories that could not be opened or read to their end.
    pub(super) unreadable: AtomicU64,
    /// Directories that are too deep, or too many.
    pub(super) not_entered: AtomicU64,
    /// Files and directories that rules close to the call, regardless of the pattern. If only matches counted, a caller
    /// could find out hidden names by trying patterns.
    pub(super) kept: AtomicU64,
}

/// Walks until everything is visited or `watch` ends the search.
pub(super) fn walk<V: FileVisitor>(
    plan: &FileWalkPlan<'_>,
    watch: &SearchStopSignal<'_>,
    passed_over: &PassedOver,
    visitor: impl Fn() -> V + Sync,
) {
    let queue = WalkQueue::new(watch);
    let place = plan.start.place.as_os_str().as_bytes().to_vec();
    let rules = if plan.include_ignored {
        None
    } else {
        plan.start.rules.clone()
    };
    queue.add([WalkJob::Enter(PendingDirectory {
        place,
        depth: 1,
        rules,
    })]);
    let work = || DirectoryWalker::new(plan, watch, passed_over, &queue, visitor()).run();
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If the system has no more threads, the search is slower and does not fail.
            let _ = std::thread::Builder::new()
                .name("search".to_owned())
                .spawn_scoped(scope, work);
        }
        work();
    });
}

struct DirectoryWalker<'w, V> {
    plan: &'w FileWalkPlan<'w>,
    watch: &'w SearchStopSignal<'w>,
    passed_over: &'w PassedOver,
    queue: &'w WalkQueue<'w>,
    visitor: V,
    /// The position in a place's path where the part for the pattern begins.
    start: usize,
    /// Whether the start is inside a directory of version control.
    inside_version_control: bool,
    /// Whether every name is checked against rules.
    asks_rules: bool,
    /// The present path.
    place: Vec<u8>,
    until_look: u32,
}

impl<'w, V: FileVisitor> DirectoryWalker<'w, V> {
    fn new(
        plan: &'w FileWalkPlan<'w>,
        watch: &'w SearchStopSignal<'w>,
        passed_over: &'w PassedOver,
        queue: &'w WalkQueue<'w>,
        visitor: V,
    ) -> Self {
        let base = &plan.start.place;
        let inside_version_control = base
            .iter()
            .any(|name| VERSION_CONTROL.contains(&name.as_bytes()));
        let start = plan.start.names_begin_at();
        let asks_rules = watch.stop().may_meet_kept(plan.workspace, base);
        Self {
            plan,
            watch,
            passed_over,
            queue,
            visitor,
            start,
            inside_version_control,
            asks_rules,
            place: Vec::new(),
            until_look: 0,
        }
    }

    fn run(mut self) {
        while let Some((job, turn)) = self.queue.take() {
            match job {
                WalkJob::Enter(pending) => self.enter(&pending),
                WalkJob::Files { dir, place, names } => {
                    for name in names {
                        self.stand_at(&place, &name);
                        self.file(dir.as_fd(), &name);
                    }
                }
            }
            drop(turn);
        }
    }

    fn enter(&mut self, pending: &PendingDirectory) {
        if !self.watch.look() {
            return;
        }
        let from_start = path_of(pending.place.get(self.start..).unwrap_or_default());
        let listing = open_directory(&self.plan.start.dir, from_start).and_then(Listing::new);
        let Ok(mut listing) = listing else {
            self.passed_over.unreadable.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let rules = match (self.plan.include_ignored, listing.fd()) {
            (false, Ok(dir)) => {
                IgnoreRules::in_directory(dir, &pending.place, pending.rules.as_ref())
            }
            (true, _) | (_, Err(_)) => None,
        };
        let mut found = FoundHere::new(pending, rules);
        while let Some(entry) = listing.read() {
            let Ok(entry) = entry else {
                self.passed_over.unreadable.fetch_add(1, Ordering::Relaxed);
                break;
            };
            let Ok(dir) = listing.fd() else { break };
            self.entry(dir, &entry, &mut found);
            if self.watch.is_over() {
                return;
            }
        }
        if let Ok(dir) = listing.fd() {
            self.files_left(dir, &mut found);
        }
        self.share_directories(&mut found);
    }

    fn entry(&mut self, dir: BorrowedFd<'_>, entry: &DirEntry, found: &mut FoundHere<'_>) {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            return;
        }
        let is_dir = match type_of(dir, entry) {
            FileType::Directory => true,
            FileType::RegularFile => false,
            _ => return,
        };
        self.stand_at(&found.pending.place, name);
        if self.place.len() > MAX_PLACE {
            self.passed_over.not_entered.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.is_kept_by_rules() {
            self.passed_over.kept.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if is_dir {
            self.directory(name, found);
        } else if (self.plan.wanted)(
            path_of(self.place.get(self.start..).unwrap_or_default()),
            path_of(&self.place),
        ) && self.is_wanted(name, false, found)
        {
            if self.queue.somebody_waits() {
                found.files.push(name.to_owned());
                if found.files.len() == BATCH {
                    self.share_files(dir, found);
                }
            } else {
                self.file(dir, name);
            }
        }
    }

    fn directory(&mut self, name: &CStr, found: &mut FoundHere<'_>) {
        let depth = found.pending.depth + 1;
        if depth > self.plan.depth || !self.is_wanted(name, true, found) {
            return;
        }
        if depth > MAX_DEPTH {
            self.passed_over.not_entered.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let pending = PendingDirectory {
            place: self.place.clone(),
            depth,
            rules: found.rules.clone(),
        };
        found.directories.push(WalkJob::Enter(pending));
        // The queue is bounded, and this buffer must not grow beyond it.
        if self.queue.somebody_waits() || found.directories.len() == BATCH {
            self.share_directories(found);
        }
    }

    /// Whether rules close the present path to the call. This comes before ignore files and patterns: those are under
    /// the caller's control, and their counts must not depend on hidden names.
    fn is_kept_by_rules(&self) -> bool {
        let place = path_of(&self.place);
        self.asks_rules
            && !self
                .watch
                .stop()
                .may(self.plan.workspace, place, ResourceAccess::Read)
    }

    /// Whether the present name is part of the search.
    fn is_wanted(&self, name: &CStr, is_dir: bool, found: &FoundHere<'_>) -> bool {
        let name = name.to_bytes();
        if VERSION_CONTROL.contains(&name) && !self.inside_version_control {
            return false;
        }
        let verdict = found
            .rules
            .as_ref()
            .map_or(IgnoreRuleMatch::Nothing, |rules| {
                rules.verdict(&self.place, is_dir)
            });
        match verdict {
            IgnoreRuleMatch::Keep => true,
            IgnoreRuleMatch::Nothing => self.plan.include_hidden || !name.starts_with(b"."),
            IgnoreRuleMatch::LeaveOut => {
                self.passed_over.ignored.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    fn share_directories(&self, found: &mut FoundHere<'_>) {
        let dropped = self.queue.add(found.directories.drain(..));
        self.passed_over
            .not_entered
            .fetch_add(dropped, Ordering::Relaxed);
    }

    fn share_files(&mut self, dir: BorrowedFd<'_>, found: &mut FoundHere<'_>) {
        match dir.try_clone_to_owned() {
            Ok(dir) => {
                let place = found.pending.place.as_slice().into();
                let names = std::mem::take(&mut found.files);
                self.queue.add([WalkJob::Files {
                    dir: Arc::new(dir),
                    place,
                    names,
                }]);
            }
            Err(_) => self.files_left(dir, found),
        }
    }

    fn files_left(&mut self, dir: BorrowedFd<'_>, found: &mut FoundHere<'_>) {
        for name in std::mem::take(&mut found.files) {
            self.stand_at(&found.pending.place, &name);
            self.file(dir, &name);
        }
    }

    fn file(&mut self, dir: BorrowedFd<'_>, name: &CStr) {
        if self.until_look == 0 {
            self.until_look = FILES_A_LOOK;
            self.watch.look();
        }
        self.until_look -= 1;
        if !self.watch.is_over() {
            self.visitor.file(&WalkedFile {
                dir,
                name,
                place: path_of(&self.place),
            });
        }
    }

    fn stand_at(&mut self, directory: &[u8], name: &CStr) {
        self.place.clear();
        self.place.extend_from_slice(directory);
        if !directory.is_empty() {
            self.place.push(b'/');
        }
        self.place.extend_from_slice(name.to_bytes());
    }
}

/// The entries of one directory that are not processed yet.
struct FoundHere<'p> {
    pending: &'p PendingDirectory,
    rules: Option<Arc<IgnoreRules>>,
    directories: Vec<WalkJob>,
    files: Vec<CString>,
}

impl<'p> FoundHere<'p> {
    fn new(pending: &'p PendingDirectory, rules: Option<Arc<IgnoreRules>>) -> Self {
        Self {
            pending,
            rules,
            directories: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// The type of an entry. Some file systems do not include it in the listing.
fn type_of(dir: BorrowedFd<'_>, entry: &DirEntry) -> FileType {
    match entry.file_type() {
        FileType::Unknown => statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| {
                FileType::from_raw_mode(stat.st_mode)
            }),
        known => known,
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
