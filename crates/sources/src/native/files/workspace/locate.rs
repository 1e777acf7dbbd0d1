//! Finds what a path names, beneath the root and nowhere else.
//!
//! The walk goes one name at a time, each looked up in a directory that is held open, and never lets the kernel
//! follow a link: links are read and their steps put in front of the rest. `..` goes back to the directory the
//! walk came through. So the walk can stand only in directories it reached downwards from the root, however
//! names are swapped meanwhile. `openat2` with `RESOLVE_BENEATH` holds the same promise in one system call, but
//! gives back neither the real path, which scheduling and permission need, nor the parent and the missing rest,
//! which writing needs; and a second resolution for those could lead elsewhere than the first.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use cap_std::fs::Dir;
use rustix::{
    fs::{AtFlags, FileType, Stat, statat},
    io::Errno,
};

use super::{
    open::{open_directory, read_link},
    path::{MAX_DEPTH, RequestedPath, Step, beneath, names_directory, steps_of},
};
use crate::native::files::failure::{FollowedLink, PathError};

/// As many links as the kernel would follow in one lookup.
const MAX_LINKS: usize = 40;

/// What a path named at the moment it was looked at.
pub(crate) struct Located {
    /// The real path of what exists, relative to the root and without links or `..`.
    pub(crate) path: PathBuf,
    /// What is there.
    pub(crate) found: Found,
}

/// What is at the end of a path.
pub(crate) enum Found {
    /// A directory, open.
    Directory(Dir),
    /// Something else, by its name in its open directory.
    Entry { parent: Dir, name: OsString, stat: Stat },
    /// Nothing: the deepest directory that exists, and the names that do not, at least one.
    Missing { parent: Dir, rest: Vec<OsString> },
}

impl Located {
    /// The real path including names that do not exist yet.
    pub(crate) fn whole_path(&self) -> PathBuf {
        match &self.found {
            Found::Directory(_) | Found::Entry { .. } => self.path.clone(),
            Found::Missing { rest, .. } => rest.iter().fold(self.path.clone(), |path, name| path.join(name)),
        }
    }
}

pub(super) fn locate(root: &Dir, roots: &[&Path], requested: &RequestedPath) -> Result<Located, PathError> {
    let mut pending = requested.steps().to_vec();
    pending.reverse();
    let walk = Walk {
        root,
        roots,
        given: requested.given(),
        came_through: Vec::new(),
        path: PathBuf::new(),
        pending,
        wants_directory: requested.names_directory(),
        links: 0,
        last_link: None,
    };
    walk.run()
}

struct Walk<'w> {
    root: &'w Dir,
    roots: &'w [&'w Path],
    given: &'w str,
    /// The directories beneath the root down to where the walk stands, one per name in `path`.
    came_through: Vec<Dir>,
    path: PathBuf,
    /// Steps still to go, the next one last.
    pending: Vec<Step>,
    wants_directory: bool,
    links: usize,
    /// For the message when the walk is led out.
    last_link: Option<FollowedLink>,
}

impl Walk<'_> {
    fn run(mut self) -> Result<Located, PathError> {
        while let Some(step) = self.pending.pop() {
            let name = match step {
                Step::Down(name) => name,
                Step::Up => {
                    self.up()?;
                    continue;
                }
            };
            let stat = match statat(self.here(), &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return self.missing(name),
                Err(error) => return Err(self.failed(error)),
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.descend(name)?,
                FileType::Symlink => self.follow(name)?,
                _ if self.pending.is_empty() && !self.wants_directory => return self.entry(name, stat),
                _ => {
                    return Err(PathError::NotADirectory { given: self.given(), at: self.path.join(name) });
                }
            }
        }
        let found = Found::Directory(self.take_here()?);
        Ok(Located { path: self.path, found })
    }

    fn here(&self) -> &Dir {
        self.came_through.last().unwrap_or(self.root)
    }

    fn take_here(&mut self) -> Result<Dir, PathError> {
        match self.came_through.pop() {
            Some(dir) => Ok(dir),
            None => self.root.try_clone().map_err(|source| PathError::Io { given: self.given(), source }),
        }
    }

    fn given(&self) -> String {
        self.given.to_owned()
    }

    fn failed(&self, error: Errno) -> PathError {
        PathError::Io { given: self.given(), source: error.into() }
    }

    fn up(&mut self) -> Result<(), PathError> {
        if self.came_through.pop().is_none() {
            return Err(PathError::Leaves { given: self.given(), link: self.last_link.take() });
        }
        self.path.pop();
        Ok(())
    }

    fn descend(&mut self, name: OsString) -> Result<(), PathError> {
        if self.came_through.len() == MAX_DEPTH {
            return Err(PathError::TooManySteps { given: self.given() });
        }
        match open_directory(self.here(), &name) {
            Ok(dir) => {
                self.came_through.push(dir);
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
        let link = FollowedLink { link: self.path.join(&name), target: PathBuf::from(&target) };
        let Some(relative) = beneath(Path::new(&target), self.roots) else {
            return Err(PathError::Leaves { given: self.given(), link: Some(link) });
        };
        if Path::new(&target).has_root() {
            // An absolute link that names a place inside: start over at the root that is held, not at whatever
            // has the root's name by now.
            self.came_through.clear();
            self.path.clear();
        }
        if self.pending.is_empty() {
            self.wants_directory |= names_directory(&target.to_string_lossy());
        }
        self.pending.extend(steps_of(relative).into_iter().rev());
        self.last_link = Some(link);
        Ok(())
    }

    /// The name was swapped between looking at it and opening it: look at it again. Counted as a link, so that
    /// nobody can keep the walk busy for ever.
    fn look_again(&mut self, name: OsString, error: Errno) -> Result<(), PathError> {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL => {
                self.count_link()?;
                self.pending.push(Step::Down(name));
                Ok(())
            }
            other => Err(self.failed(other)),
        }
    }

    fn count_link(&mut self) -> Result<(), PathError> {
        self.links += 1;
        match self.links > MAX_LINKS {
            true => Err(PathError::TooManySteps { given: self.given() }),
            false => Ok(()),
        }
    }

    fn entry(mut self, name: OsString, stat: Stat) -> Result<Located, PathError> {
        let parent = self.take_here()?;
        self.path.push(&name);
        Ok(Located { path: self.path, found: Found::Entry { parent, name, stat } })
    }

    fn missing(mut self, name: OsString) -> Result<Located, PathError> {
        let mut rest = vec![name];
        while let Some(step) = self.pending.pop() {
            match step {
                Step::Down(name) => rest.push(name),
                // The parent of what does not exist does not exist either.
                Step::Up => {
                    rest.push("..".into());
                    return Err(PathError::not_found(self.given(), self.here(), &self.path, &rest));
                }
            }
        }
        let parent = self.take_here()?;
        Ok(Located { path: self.path, found: Found::Missing { parent, rest } })
    }
}
