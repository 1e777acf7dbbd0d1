//! The workspace: the directories of the file tools, held open.
//!
//! The native tools open no other path of the system. Everything starts from the descriptors held here.
//!
//! Places below the primary root are relative to it, and other places are absolute. So `workspace.path().join(place)`
//! is the absolute path of every place.

pub mod digest;
mod failure;
mod kept;
mod locate;
mod named;
mod names;
mod open;
mod path;
mod protection;
mod root;
mod worker;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use rustix::fs::Stat;
use toolpost_model::{InputRefusal, ResourceAccess};

pub use self::{
    failure::{PathError, io_code, special},
    locate::{LastLink, PathTarget, ReadableTarget},
    named::{ExistingPathEntry, cautions_beneath, require_all},
    names::{relative, shown},
    open::{
        link_unnamed, open_directory, open_listing, open_regular, open_unnamed, read_link,
        sync_directory,
    },
    path::PathRefusal,
    protection::{
        PathProtection, PlaceEffect, ProtectedPath, ProtectionPatternError, folders_in_the_making,
    },
    worker::{CallStopError, FileWorkInterruption, StopSign, on_worker},
};
pub(crate) use self::{
    kept::{KeepingRules, KeptError, KeptPaths, PathMark, ProcessPathView, SearchTrail, find_kept},
    locate::LocatedPath,
    path::RequestedPath,
    protection::{CONFIG, PlaceWarning, is_piece, is_repository},
    root::WorkspaceRoot,
};
use self::{path::RootSpelling, worker::FileWorkers};

/// The directories that the file tools work in. It holds them open, so that they stay the same directories when their
/// names change.
#[derive(Debug)]
pub struct Workspace {
    /// All roots, the primary first.
    roots: Vec<Arc<WorkspaceRoot>>,
    protection: PathProtection,
    /// Created at the first use, when all roots are known.
    workers: OnceLock<FileWorkers>,
}

/// Why an operator should be asked before a place is changed.
#[derive(Clone, Debug)]
pub struct PlaceCaution {
    /// The effect of a change there.
    pub effect: PlaceEffect,
    /// The protected place.
    pub place: PathBuf,
    /// The text of the question.
    pub text: String,
}

impl PlaceCaution {
    pub(super) fn of(place: &Path, warning: &PlaceWarning) -> Self {
        let text = format!("`{}` is protected: {}", told(place), warning.reason);
        Self {
            effect: warning.effect,
            place: place.to_owned(),
            text,
        }
    }

    /// A caution for a folder that is a repository by its content.
    pub(super) fn of_repository(folder: PathBuf) -> Self {
        let text = format!(
            "`{}` is protected: git treats it as a repository, whose hooks and settings run commands",
            if folder.as_os_str().is_empty() {
                ".".to_owned()
            } else {
                told(&folder)
            }
        );
        Self {
            effect: PlaceEffect::RunsCode,
            place: folder,
            text,
        }
    }
}

/// A workspace that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace `{}`", path.display())]
pub struct WorkspaceError {
    /// The path as given.
    pub path: PathBuf,
    /// The system's error.
    #[source]
    pub source: io::Error,
}

impl Workspace {
    /// Opens the directory at `primary`, the root of relative paths. It may be written, and the standard paths in it
    /// are protected.
    pub fn open(primary: &Path) -> Result<Self, WorkspaceError> {
        let root = WorkspaceRoot::open(primary, ResourceAccess::Write)?;
        Ok(Self {
            roots: vec![Arc::new(root)],
            protection: PathProtection::standard(),
            workers: OnceLock::new(),
        })
    }

    /// Adds another root, which is reached by absolute paths. Roots may be nested: the deepest one decides. A directory
    /// that is given twice is read-only if it is so in one of the two.
    pub fn with_root(
        mut self,
        path: &Path,
        access: ResourceAccess,
    ) -> Result<Self, WorkspaceError> {
        let mut root = WorkspaceRoot::open(path, access)?;
        if let Some(known) = self.roots.iter_mut().find(|known| known.path == root.path) {
            if known.access == ResourceAccess::Write && access == ResourceAccess::Read {
                root.given.clone_from(&known.given);
                *known = Arc::new(root);
            }
            return Ok(self);
        }
        self.roots.push(Arc::new(root));
        Ok(self)
    }

    /// Replaces the standard protection.
    #[must_use]
    pub fn with_protection(self, protection: PathProtection) -> Self {
        Self { protection, ..self }
    }

    /// The primary root's absolute path, without links.
    pub fn path(&self) -> &Path {
        &self.roots[0].path
    }

    /// All roots, the primary first: absolute paths without links, and their access.
    pub fn roots(&self) -> impl Iterator<Item = (&Path, ResourceAccess)> {
        self.roots
            .iter()
            .map(|root| (root.path.as_path(), root.access))
    }

    /// The paths that ask before they are changed.
    pub fn protection(&self) -> &PathProtection {
        &self.protection
    }

    /// Absolute paths that are protected and exist, for sandboxes, which have to close them in advance. Only known
    /// names in each root are checked, not the whole tree.
    pub(crate) fn protected_paths(&self) -> Vec<ProtectedPath> {
        self.roots
            .iter()
            .flat_map(|root| self.protection.existing(&root.dir, &root.path))
            .collect()
    }

    /// Parses a path as a caller sent it. No I/O.
    pub fn request(&self, given: &str) -> Result<RequestedPath, PathRefusal> {
        RequestedPath::parse(given, &self.spellings())
    }

    /// Like [`request`](Self::request), for a path that is to be changed: refused if the text alone shows that it may
    /// not be.
    pub fn request_change(&self, given: &str) -> Result<RequestedPath, PathRefusal> {
        let requested = self.request(given)?;
        match self.forbids(&self.path().join(requested.lexical()), None) {
            Some(root) => Err(PathRefusal::ReadOnlyRoot {
                given: given.to_owned(),
                root,
            }),
            None => Ok(requested),
        }
    }

    /// `request` as `check` reports it, for an argument `path`.
    pub fn check_path(&self, given: &str) -> Result<(), InputRefusal> {
        self.request(given)
            .map(|_| ())
            .map_err(PathRefusal::into_refusal)
    }

    /// `request_change` as `check` reports it.
    pub fn check_change(&self, given: &str) -> Result<RequestedPath, InputRefusal> {
        self.request_change(given)
            .map_err(PathRefusal::into_refusal)
    }

    /// Resolves a path without ever leaving the roots.
    pub fn locate(&self, requested: &RequestedPath) -> Result<LocatedPath, PathError> {
        locate::locate(self, requested, LastLink::Follow)
    }

    /// Resolves the name itself: a link at the end of the path is not followed.
    pub fn locate_name(&self, requested: &RequestedPath) -> Result<LocatedPath, PathError> {
        locate::locate(self, requested, LastLink::Keep)
    }

    /// The caution before a change of `requested`, which really is `place`.
    pub fn caution(&self, requested: &RequestedPath, place: &Path) -> Option<PlaceCaution> {
        let lexical = requested.lexical();
        let of_place = self.warning(place).map(|warning| match place == lexical {
            true => PlaceCaution::of(place, &warning),
            false => PlaceCaution {
                text: format!(
                    "`{}` leads to `{}`, which is protected: {}",
                    told(&lexical),
                    told(place),
                    warning.reason
                ),
                ..PlaceCaution::of(place, &warning)
            },
        });
        let of_name = || {
            self.warning(&lexical)
                .map(|warning| PlaceCaution::of(&lexical, &warning))
        };
        match of_place {
            Some(caution) if caution.effect == PlaceEffect::RunsCode => Some(caution),
            Some(caution) => of_name()
                .filter(|name| name.effect == PlaceEffect::RunsCode)
                .or(Some(caution)),
            None => of_name(),
        }
    }

    /// The absolute path of a place, as rules use it.
    pub fn absolute(&self, place: &Path) -> PathBuf {
        // `join` with an empty path would add a slash at the end.
        if place.as_os_str().is_empty() {
            self.path().to_owned()
        } else {
            self.path().join(place)
        }
    }

    /// The warning for a place: by its name, or as a part of a git repository.
    pub(super) fn warning(&self, place: &Path) -> Option<PlaceWarning> {
        let named = self.warning_by_name(place);
        if named
            .as_ref()
            .is_some_and(|warning| warning.effect == PlaceEffect::RunsCode)
        {
            return named;
        }
        let changed = [self.path().join(place)];
        let repository = self
            .protection
            .changed_repository(&changed, |piece| self.has_piece(piece));
        let reason = |folder: &Path| {
            let folder = self.told_folder(folder);
            format!("git treats `{folder}` as a repository, whose hooks and settings run commands")
        };
        repository
            .map(|folder| PlaceWarning::runs_code(reason(folder)))
            .or(named)
    }

    /// The warning for a place by its name alone.
    pub(super) fn warning_by_name(&self, place: &Path) -> Option<PlaceWarning> {
        let absolute = self.path().join(place);
        let (_, relative) = self.innermost(&absolute)?;
        self.protection
            .warning(&relative)
            .or_else(|| self.protection.warning(&absolute))
    }

    /// The repository that changes at these absolute paths, together, create or change.
    pub fn repository_caution(&self, changed: &[PathBuf]) -> Option<PlaceCaution> {
        let folder = self
            .protection
            .changed_repository(changed, |piece| self.has_piece(piece))?;
        Some(PlaceCaution::of_repository(self.told(folder)))
    }

    /// Whether folders that git takes for a repository are protected.
    pub fn guards_repositories(&self) -> bool {
        self.protection.guards_repositories()
    }

    /// Whether a piece of a repository is at an absolute path. A link counts, because its target may be created later.
    fn has_piece(&self, piece: &Path) -> bool {
        let Some((root, relative)) = self.innermost(piece) else {
            return false;
        };
        let found = self.roots[root].dir.symlink_metadata(relative);
        found.is_ok_and(|found| {
            !found.is_dir() || piece.file_name().is_none_or(|name| name != CONFIG)
        })
    }

    /// The text of a folder in messages.
    fn told_folder(&self, folder: &Path) -> String {
        if folder == self.path() {
            ".".to_owned()
        } else {
            told(&self.told(folder))
        }
    }

    /// The root at `place` or beneath it. `stat` is the file at that name.
    pub fn root_within(&self, place: &Path, stat: &Stat) -> Option<&Path> {
        let absolute = self.path().join(place);
        let by_path = self
            .roots
            .iter()
            .position(|root| root.path.starts_with(&absolute));
        by_path
            .or_else(|| self.root_that_is(stat))
            .map(|root| self.roots[root].path.as_path())
    }

    /// The root at `place`.
    pub(super) fn root_at(&self, place: &Path) -> Option<&Path> {
        let absolute = self.path().join(place);
        // `join` with an empty path adds a slash at the end, which the comparison of paths ignores.
        self.roots
            .iter()
            .map(|root| root.path.as_path())
            .find(|root| *root == absolute)
    }

    /// The threads for the file tools' blocking work.
    pub(super) fn workers(&self) -> &FileWorkers {
        self.workers
            .get_or_init(|| FileWorkers::new(self.roots.clone()))
    }

    fn spellings(&self) -> Vec<RootSpelling<'_>> {
        let spellings = self.roots.iter().enumerate().flat_map(|(index, root)| {
            let base = root.path.strip_prefix(self.path()).unwrap_or(&root.path);
            [&root.path, &root.given].map(|path| RootSpelling {
                root: index,
                path,
                base,
            })
        });
        spellings.collect()
    }

    /// An absolute path as a place.
    fn told(&self, absolute: &Path) -> PathBuf {
        absolute
            .strip_prefix(self.path())
            .unwrap_or(absolute)
            .to_owned()
    }

    /// The deepest root above an absolute path without links, and the rest of the path.
    fn innermost(&self, absolute: &Path) -> Option<(usize, PathBuf)> {
        let beneath = self.roots.iter().enumerate().filter_map(|(index, root)| {
            let relative = absolute.strip_prefix(&root.path).ok()?;
            Some((index, relative.to_owned()))
        });
        beneath.min_by_key(|(_, relative)| relative.components().count())
    }

    /// The root that decides the access of an absolute path.
    fn governing(&self, absolute: &Path) -> usize {
        self.innermost(absolute).map_or(0, |(root, _)| root)
    }

    /// The root that is this directory, by device and inode.
    fn root_that_is(&self, stat: &Stat) -> Option<usize> {
        self.roots
            .iter()
            .position(|root| root.identity == (stat.st_dev, stat.st_ino))
    }

    /// The root that forbids changes at an absolute path. `stat` is the file there.
    fn forbids(&self, absolute: &Path, stat: Option<&Stat>) -> Option<PathBuf> {
        let by_stat = stat.and_then(|stat| self.root_that_is(stat));
        let roots = [Some(self.governing(absolute)), by_stat]
            .into_iter()
            .flatten()
            .map(|root| &self.roots[root]);
        roots
            .filter(|root| root.access == ResourceAccess::Read)
            .map(|root| root.path.clone())
            .next()
    }
}

fn told(place: &Path) -> String {
    names::shown_path(place)
}
