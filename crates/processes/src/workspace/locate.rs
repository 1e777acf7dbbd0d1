//! Finds what a path names, beneath the roots and nowhere else.
//!
//! The walk goes one name at a time, each looked up in a directory that is held open, and never lets the kernel
//! follow a link: links are read and their steps put in front of the rest. `..` goes back to the directory the
//! walk came through. So the walk can stand only in directories it reached downwards from a root, however names
//! are swapped meanwhile. It changes from one root to another only by starting over at the other's descriptor. `openat2` with `RESOLVE_BENEATH` holds the same promise in one system call, but
//! gives back neither the real path, which scheduling and permission need, nor the parent and the missing rest,
//! which writing needs; and a second resolution for those could lead elsewhere than the first.

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

/// As many links as the kernel would follow in one lookup.
const MAX_LINKS: usize = 40;

/// What a path named at the moment it was looked at.
pub struct LocatedPath {
    /// The real path of what exists, without links or `..`: relative to the primary root where it lies beneath
    /// that, else absolute.
    pub path: PathBuf,
    /// What is there.
    pub found: PathTarget,
    /// The root that forbids changes here.
    read_only: Option<PathBuf>,
}

/// What to do with a link that is the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// The path means what the link leads to.
    Follow,
    /// The path means the name itself, be it a link, a directory or anything else.
    Keep,
}

/// What is at the end of a path.
pub enum PathTarget {
    /// A directory, open.
    Directory(Dir),
    /// Something else, by its name in its open directory. With [`LastLink::Keep`] also a link or a directory.
    Entry {
        /// The open directory.
        parent: Dir,
        /// The name in it.
        name: OsString,
        /// What the system says of it, links not followed.
        stat: Stat,
    },
    /// Nothing: the deepest directory that exists, and the names that do not, at least one.
    Missing {
        /// The deepest directory.
        parent: Dir,
        /// The names, the first directly in it.
        rest: Vec<OsString>,
    },
}

/// Something that exists at the end of a path.
pub enum ReadableTarget {
    /// A directory, open.
    Directory(Dir),
    /// Something else, as in [`PathTarget::Entry`].
    Entry {
        /// The open directory.
        parent: Dir,
        /// The name in it.
        name: OsString,
        /// What the system says of it, links not followed.
        stat: Stat,
    },
}

impl LocatedPath {
    /// The real path including names that do not exist yet.
    pub fn whole_path(&self) -> PathBuf {
        match &self.found {
            PathTarget::Directory(_) | PathTarget::Entry { .. } => self.path.clone(),
            PathTarget::Missing { rest, .. } => rest
                .iter()
                .fold(self.path.clone(), |path, name| path.join(name)),
        }
    }

    /// Goes on only where changes are allowed.
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
    /// Where the walk began, or began again.
    root: usize,
    /// The directories beneath that root down to where the walk stands.
    came_through: Vec<PathLookupLevel>,
    /// Where the walk stands, absolute.
    path: PathBuf,
    /// Steps still to go, the next one last.
    pending: Vec<PathStep>,
    wants_directory: bool,
    last_link: LastLink,
    links: usize,
    /// For the message when the walk is led out.
    followed: Option<FollowedLink>,
}

struct PathLookupLevel {
    dir: Dir,
    /// The directory is itself one of the roots, whatever name led here.
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

    /// `found` makes the find out of the directory the walk stands in.
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

    /// The root that forbids changes where the walk stands. The root is judged by the path and by the directories
    /// the walk came through, so that neither a renamed root nor one that stands beneath two names is written.
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
        // Out of this root, but perhaps into one around it.
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
            // An absolute link that names a place inside: start over at the root that is held, not at whatever
            // has the root's name by now.
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

    /// The name was swapped between looking at it and opening it: look at it again. Counted as a link, so that
    /// nobody can keep the walk busy for ever.
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
        // A directory that is kept by its name can be a root itself.
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
                // The parent of what does not exist does not exist either.
                PathStep::Up => {
                    rest.push("..".into());
                    let at = self.workspace.told(&self.path);
                    // Nobody means a name that is to be left again at once.
                    return Err(PathError::not_found(
                        self.given(),
                        (self.here(), &at),
                        &rest,
                        |_| false,
                    ));
                }
            }
        }
        // A root whose name is gone stays what it was, also for whoever makes the name anew.
        let path = rest
            .iter()
            .fold(self.path.clone(), |path, name| path.join(name));
        let read_only = self.workspace.forbids(&path, None);
        let mut located = self.done(|parent| PathTarget::Missing { parent, rest })?;
        located.read_only = read_only.or(located.read_only);
        Ok(located)
    }
}
