//! Resolves paths beneath the roots.
//!
//! The walk takes one name at a time, looks it up in a directory that is held open, and never lets the kernel follow a
//! link: it reads links itself and puts their steps before the rest. `..` returns to the directory that the walk came
//! from. The walk can therefore only be in directories that it reached downwards from a root, however names are swapped
//! in the meantime. It changes to another root only by starting over at that root's descriptor.
//!
//! `openat2` with `RESOLVE_BENEATH` makes the same promise in one system call. But it returns neither the real path,
//! which scheduling and permission need, nor the parent and the missing names, which writing needs. A second resolution
//! for those could lead to another place than the first.

use std::{ffi::OsString, path::PathBuf};

use cap_std::fs::Dir;
use rustix::{
    fs::{AtFlags, FileType, Stat, fstat, statat},
    io::Errno,
};

use toolpost_model::ResourceAccess;

use super::{
    Workspace,
    open::{open_directory, read_link},
    path::{MAX_DEPTH, PathStep, RequestedPath, beneath, names_directory, steps_of},
};
use crate::workspace::{
    PathRefusal,
    failure::{FollowedLink, PathError},
};

/// The kernel's own limit on links in one lookup.
const MAX_LINKS: usize = 40;

/// The result of resolving a path.
pub struct LocatedPath {
    /// The real path of the existing part, without links or `..`: relative to the primary root if it is beneath it,
    /// otherwise absolute.
    pub path: PathBuf,
    /// The target.
    pub found: PathTarget,
    /// The root that forbids changes here.
    read_only: Option<PathBuf>,
}

/// The treatment of a link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// The path means the target of the link.
    Follow,
    /// The path means the name itself: a link, a directory or any other file.
    Keep,
}

/// The target of a path.
pub enum PathTarget {
    /// A directory, open.
    Directory(Dir),
    /// Any other file, by its name in its open directory. With [`LastLink::Keep`] also a link or a directory.
    Entry {
        /// The open directory.
        parent: Dir,
        /// The name in it.
        name: OsString,
        /// The file's metadata, without following links.
        stat: Stat,
    },
    /// Missing: the deepest existing directory, and the missing names, at least one.
    Missing {
        /// The deepest directory.
        parent: Dir,
        /// The missing names, the first one directly in it.
        rest: Vec<OsString>,
    },
}

/// An existing target.
pub enum ReadableTarget {
    /// A directory, open.
    Directory(Dir),
    /// Any other file, as in [`PathTarget::Entry`].
    Entry {
        /// The open directory.
        parent: Dir,
        /// The name in it.
        name: OsString,
        /// The file's metadata, without following links.
        stat: Stat,
    },
}

impl LocatedPath {
    /// The real path with the names that do not exist yet.
    pub fn whole_path(&self) -> PathBuf {
        match &self.found {
            PathTarget::Directory(_) | PathTarget::Entry { .. } => self.path.clone(),
            PathTarget::Missing { rest, .. } => rest
                .iter()
                .fold(self.path.clone(), |path, name| path.join(name)),
        }
    }

    /// Fails if changes are not allowed.
    pub fn writable(self, given: &str) -> Result<Self, PathError> {
        match self.read_only {
            Some(root) => Err(PathRefusal::ReadOnlyRoot {
                given: given.to_owned(),
                root,
            }
            .into()),
            None => Ok(self),
        }
    }
}

pub(super) fn locate(
    workspace: &Workspace,
    requested: &RequestedPath,
    last_link: LastLink,
) -> Result<LocatedPath, PathError> {
    let mut pending = requested.steps().to_vec();
    pending.reverse();
    let root = requested.root();
    let walk = PathWalk {
        workspace,
        given: requested.given(),
        root,
        came_through: Vec::new(),
        path: workspace.roots[root].path.clone(),
        pending,
        wants_directory: requested.names_directory(),
        last_link,
        links: 0,
        followed: None,
    };
    walk.run()
}

struct PathWalk<'w> {
    workspace: &'w Workspace,
    given: &'w str,
    /// The root that the walk began at, or began again at.
    root: usize,
    /// The directories from that root down to the present one.
    came_through: Vec<PathLookupLevel>,
    /// The present directory, absolute.
    path: PathBuf,
    /// The remaining steps, the next one last.
    pending: Vec<PathStep>,
    wants_directory: bool,
    last_link: LastLink,
    links: usize,
    /// For the message if the walk leads out.
    followed: Option<FollowedLink>,
}

struct PathLookupLevel {
    dir: Dir,
    /// The root that this directory is, even if it was reached by another name.
    root: Option<usize>,
}

impl PathWalk<'_> {
    fn run(mut self) -> Result<LocatedPath, PathError> {
        while let Some(step) = self.pending.pop() {
            let name = match step {
                PathStep::Down(name) => name,
                PathStep::Up => {
                    self.up()?;
                    continue;
                }
            };
            let stat = match statat(self.here(), &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return self.missing(name),
                Err(error) => return Err(self.failed(error)),
            };
            let keep = self.last_link == LastLink::Keep && self.pending.is_empty();
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if keep => return self.entry(name, stat),
                FileType::Symlink if keep && !self.wants_directory => {
                    return self.entry(name, stat);
                }
                FileType::Directory => self.descend(name)?,
                FileType::Symlink if !keep => self.follow(name)?,
                _ if self.pending.is_empty() && !self.wants_directory => {
                    return self.entry(name, stat);
                }
                _ => {
                    let at = self.workspace.told(&self.path.join(name));
                    return Err(PathError::NotADirectory {
                        given: self.given(),
                        at,
                    });
                }
            }
        }
        self.done(PathTarget::Directory)
    }

    /// Ends the walk. `found` builds the target from the present directory.
    fn done(mut self, found: impl FnOnce(Dir) -> PathTarget) -> Result<LocatedPath, PathError> {
        let read_only = self.read_only();
        let here = match self.came_through.pop() {
            Some(level) => level.dir,
            None => {
                let root = &self.workspace.roots[self.root].dir;
                root.try_clone().map_err(|source| PathError::Io {
                    given: self.given(),
                    source,
                })?
            }
        };
        Ok(LocatedPath {
            path: self.workspace.told(&self.path),
            found: found(here),
            read_only,
        })
    }

    /// The root that forbids changes at the present directory. Both the path and the directories of the walk count: a
    /// root that was renamed, or that has two names, must not become writable by its other name.
    fn read_only(&self) -> Option<PathBuf> {
        let roots = &self.workspace.roots;
        let by_path = self.workspace.governing(&self.path);
        let by_descriptor = self
            .came_through
            .iter()
            .rev()
            .find_map(|level| level.root)
            .unwrap_or(self.root);
        let reads = [by_path, by_descriptor]
            .into_iter()
            .map(|root| &roots[root]);
        reads
            .filter(|root| root.access == ResourceAccess::Read)
            .map(|root| root.path.clone())
            .next()
    }

    fn here(&self) -> &Dir {
        self.came_through
            .last()
            .map_or(&self.workspace.roots[self.root].dir, |level| &level.dir)
    }

    fn given(&self) -> String {
        self.given.to_owned()
    }

    fn failed(&self, error: Errno) -> PathError {
        PathError::Io {
            given: self.given(),
            source: error.into(),
        }
    }

    fn up(&mut self) -> Result<(), PathError> {
        if self.came_through.pop().is_some() {
            self.path.pop();
            return Ok(());
        }
        // Leaves this root, and may enter a root around it.
        let around = self
            .path
            .parent()
            .and_then(|parent| self.workspace.innermost(parent));
        match around {
            Some((root, relative)) => {
                self.count_link()?;
                self.pending.extend(steps_of(&relative).into_iter().rev());
                self.start_over(root);
                Ok(())
            }
            None => Err(PathError::Leaves {
                given: self.given(),
                link: self.followed.take(),
            }),
        }
    }

    fn start_over(&mut self, root: usize) {
        self.root = root;
        self.came_through.clear();
        self.path.clone_from(&self.workspace.roots[root].path);
    }

    fn descend(&mut self, name: OsString) -> Result<(), PathError> {
        if self.came_through.len() == MAX_DEPTH {
            return Err(PathError::TooManySteps {
                given: self.given(),
            });
        }
        match open_directory(self.here(), &name) {
            Ok(dir) => {
                let root = match self.workspace.roots.len() {
                    1 => None,
                    _ => fstat(&dir)
                        .ok()
                        .and_then(|stat| self.workspace.root_that_is(&stat)),
                };
                self.came_through.push(PathLookupLevel { dir, root });
                self.path.push(name);
                Ok(())
            }
            Err(error) => self.look_again(name, error),
        }
    }

    fn follow(&mut self, name: OsString) -> Result<(), PathError> {
        self.count_link()?;
        let target = match read_link(self.here(), &name) {
            Ok(target) => target,
            Err(error) => return self.look_again(name, error),
        };
        let at = self.workspace.told(&self.path.join(&name));
        let target = PathBuf::from(target);
        if self.pending.is_empty() {
            self.wants_directory |= names_directory(&target.to_string_lossy());
        }
        if target.has_root() {
            // An absolute link to a place inside: start over at the root that is held open, and not at the directory
            // that has the root's name now.
            let spellings = self.workspace.spellings();
            let Some((spelling, relative)) = beneath(&target, &spellings).next() else {
                let link = Some(FollowedLink { link: at, target });
                return Err(PathError::Leaves {
                    given: self.given(),
                    link,
                });
            };
            self.pending.extend(steps_of(relative).into_iter().rev());
            self.start_over(spelling.root);
        } else {
            self.pending.extend(steps_of(&target).into_iter().rev());
        }
        self.followed = Some(FollowedLink { link: at, target });
        Ok(())
    }

    /// Looks at a name again that was swapped between look and open. It counts as a link, so that a process that keeps
    /// swapping names cannot keep the walk busy for ever.
    fn look_again(&mut self, name: OsString, error: Errno) -> Result<(), PathError> {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL => {
                self.count_link()?;
                self.pending.push(PathStep::Down(name));
                Ok(())
            }
            other => Err(self.failed(other)),
        }
    }

    fn count_link(&mut self) -> Result<(), PathError> {
        self.links += 1;
        match self.links > MAX_LINKS {
            true => Err(PathError::TooManySteps {
                given: self.given(),
            }),
            false => Ok(()),
        }
    }

    fn entry(self, name: OsString, stat: Stat) -> Result<LocatedPath, PathError> {
        let path = self.path.join(&name);
        // A directory at the end of the path can be a root itself.
        let read_only = self.workspace.forbids(&path, Some(&stat));
        let place = self.workspace.told(&path);
        let located = self.done(|parent| PathTarget::Entry { parent, name, stat })?;
        Ok(LocatedPath {
            path: place,
            read_only: read_only.or(located.read_only),
            found: located.found,
        })
    }

    fn missing(mut self, name: OsString) -> Result<LocatedPath, PathError> {
        let mut rest = vec![name];
        while let Some(step) = self.pending.pop() {
            match step {
                PathStep::Down(name) => rest.push(name),
                // The parent of a missing directory does not exist either.
                PathStep::Up => {
                    rest.push("..".into());
                    let at = self.workspace.told(&self.path);
                    // A name that the path leaves again at once needs no suggestions.
                    return Err(PathError::not_found(
                        self.given(),
                        (self.here(), &at),
                        &rest,
                        |_| false,
                    ));
                }
            }
        }
        // A root stays a root if its name is removed, also for a call that creates the name again.
        let path = rest
            .iter()
            .fold(self.path.clone(), |path, name| path.join(name));
        let read_only = self.workspace.forbids(&path, None);
        let mut located = self.done(|parent| PathTarget::Missing { parent, rest })?;
        located.read_only = read_only.or(located.read_only);
        Ok(located)
    }
}
