//! The name of a file in its directory, for tools that change names and not contents: a link is the link itself.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use cap_std::fs::Dir;
use rustix::fs::{FileType, Stat};
use toolpost_model::ResourceAccess;

use super::{
    CONFIG, PathTarget, PlaceCaution, PlaceEffect, Workspace, failure::PathError, is_piece,
    is_repository, names::shown_path, open_listing, worker::StopSign,
};

/// How many names of a directory are searched for protected ones. The search runs while the call is decided, and the
/// decisions of other callers wait for it. A larger directory asks.
const LOOKED_AT: usize = 2_000;
const LEVELS: usize = 64;
/// How many files that steer agents are checked one by one.
const STEERING: usize = 32;
/// How many names are checked against rules before a directory is moved or deleted.
const ASKED_ABOUT: usize = 200_000;
/// How many directories that check holds open.
const OPEN_AT_ONCE: usize = 512;

/// An existing file, by its name in its open directory.
pub struct ExistingPathEntry {
    /// Its open directory.
    pub parent: Dir,
    /// Its name there.
    pub name: OsString,
    /// Its metadata, without following links.
    pub stat: Stat,
    /// The real path of its directory, with its name.
    pub place: PathBuf,
}

impl ExistingPathEntry {
    /// Resolves `given` to a file that may be moved or deleted. A root, or a directory that contains one, is refused.
    /// If the file is missing, names are suggested that the caller `may_see`.
    pub fn locate(
        workspace: &Workspace,
        given: &str,
        may_see: impl Fn(&Path) -> bool,
    ) -> Result<Self, PathError> {
        let text = || given.to_owned();
        let requested = workspace.request(given)?;
        let located = workspace.locate_name(&requested)?;
        match located.found {
            PathTarget::Missing { parent, rest } => Err(PathError::not_found(
                text(),
                (&parent, &located.path),
                &rest,
                may_see,
            )),
            PathTarget::Directory(_) => match workspace.root_at(&located.path) {
                Some(root) => Err(PathError::HoldsRoot {
                    given: text(),
                    root: root.to_owned(),
                    relation: "this directory",
                }),
                None => Err(PathError::NoName { given: text() }),
            },
            PathTarget::Entry { ref stat, .. } => {
                if let Some(root) = workspace.root_within(&located.path, stat) {
                    let root = root.to_owned();
                    return Err(PathError::HoldsRoot {
                        given: text(),
                        root,
                        relation: "there or beneath it",
                    });
                }
                let located = located.writable(given)?;
                let place = located.path;
                match located.found {
                    PathTarget::Entry { parent, name, stat } => Ok(Self {
                        parent,
                        name,
                        stat,
                        place,
                    }),
                    PathTarget::Directory(_) | PathTarget::Missing { .. } => {
                        Err(PathError::NoName { given: text() })
                    }
                }
            }
        }
    }

    /// The type of the entry itself, without following links.
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// False for links to directories.
    pub fn is_directory(&self) -> bool {
        self.file_type() == FileType::Directory
    }
}

/// Fails if rules forbid the call to use `named`, or anything in it, as `places` describes: each is a present or future
/// path of the file, with the access there.
pub fn require_all(
    workspace: &Workspace,
    (given, named): (&str, &ExistingPathEntry),
    places: &[(&Path, ResourceAccess)],
    stop: &StopSign,
) -> Result<(), PathError> {
    places
        .iter()
        .try_for_each(|(place, access)| stop.require(workspace, (given, place), *access))?;
    if !named.is_directory()
        || !places
            .iter()
            .any(|(place, _)| stop.may_meet_kept(workspace, place))
    {
        return Ok(());
    }
    let failed = |source: io::Error| PathError::Io {
        given: given.to_owned(),
        source,
    };
    let mut looked_at = 0_usize;
    let top = open_listing(&named.parent, &named.name).map_err(|error| failed(error.into()))?;
    let mut pending = vec![(top, PathBuf::new())];
    while let Some((dir, beneath)) = pending.pop() {
        for entry in dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            looked_at += 1;
            if looked_at > ASKED_ABOUT || pending.len() > OPEN_AT_ONCE || stop.check().is_err() {
                return Err(PathError::TooManyToAsk {
                    given: given.to_owned(),
                });
            }
            let name = entry.file_name();
            let beneath = beneath.join(&name);
            if places
                .iter()
                .any(|(place, access)| !stop.may(workspace, &place.join(&beneath), *access))
            {
                return Err(PathError::HoldsKept {
                    given: given.to_owned(),
                });
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                let inner = open_listing(&dir, &name).map_err(|error| failed(error.into()))?;
                pending.push((inner, beneath));
            }
        }
    }
    Ok(())
}

/// The cautions before the directory `name` in `parent` is moved or deleted: all files in it that steer agents, or the
/// first one that runs code. `places` are its present and future paths: a file that is harmless at one may be protected
/// at the other.
pub fn cautions_beneath(
    workspace: &Workspace,
    (parent, name): (&Dir, &OsStr),
    places: &[&Path],
) -> Vec<PlaceCaution> {
    let mut looking = DirectorySearch {
        workspace,
        places,
        looked_at: 0,
        found: Vec::new(),
    };
    let Ok(top) = open_listing(parent, name) else {
        return Vec::new();
    };
    let mut pending = vec![(top, PathBuf::new(), 0)];
    while let Some((dir, beneath, level)) = pending.pop() {
        match looking.directory(&dir, &beneath, level) {
            Ok(inner) => {
                let open = |name: OsString| {
                    let path = beneath.join(&name);
                    open_listing(&dir, &name)
                        .ok()
                        .map(|inner| (inner, path, level + 1))
                };
                pending.extend(inner.into_iter().filter_map(open));
            }
            Err(caution) => return vec![caution],
        }
    }
    looking.found
}

/// A search through a directory.
struct DirectorySearch<'l> {
    workspace: &'l Workspace,
    places: &'l [&'l Path],
    looked_at: usize,
    /// The files that steer agents.
    found: Vec<PlaceCaution>,
}

impl DirectorySearch<'_> {
    /// Searches one level and returns its directories. `Err`: a caution that ends the search.
    fn directory(
        &mut self,
        dir: &Dir,
        beneath: &Path,
        level: usize,
    ) -> Result<Vec<OsString>, PlaceCaution> {
        let mut inner = Vec::new();
        let mut pieces = Vec::new();
        for entry in dir.entries().into_iter().flatten().flatten() {
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT || level > LEVELS || self.found.len() > STEERING {
                return Err(self.too_many());
            }
            let name = entry.file_name();
            let is_directory = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            self.name(&beneath.join(&name))?;
            if is_piece(&name) && (name != CONFIG || !is_directory) {
                pieces.push(name.clone());
            }
            if is_directory {
                inner.push(name);
            }
        }
        let is_one = is_repository(|piece| pieces.iter().any(|name| name == piece));
        match is_one && self.workspace.guards_repositories() {
            true => Err(self.repository(beneath)),
            false => Ok(inner),
        }
    }

    fn name(&mut self, beneath: &Path) -> Result<(), PlaceCaution> {
        for place in self.places.iter().map(|place| place.join(beneath)) {
            let Some(warning) = self.workspace.warning_by_name(&place) else {
                continue;
            };
            let caution = PlaceCaution::of(&place, &warning);
            match caution.effect {
                PlaceEffect::RunsCode => return Err(caution),
                PlaceEffect::SteersAgents => self.found.push(caution),
            }
        }
        Ok(())
    }

    fn repository(&self, beneath: &Path) -> PlaceCaution {
        let place = self.places.first().copied().unwrap_or(Path::new(""));
        // `join` with an empty path would add a slash at the end.
        let place = if beneath.as_os_str().is_empty() {
            place.to_owned()
        } else {
            place.join(beneath)
        };
        PlaceCaution::of_repository(place)
    }

    fn too_many(&self) -> PlaceCaution {
        let place = self
            .places
            .first()
            .copied()
            .unwrap_or(Path::new(""))
            .to_owned();
        let text = format!(
            "`{}` contains more than {LOOKED_AT} names, {LEVELS} levels or {STEERING} files for agents, too many to \
             check for protected ones",
            shown_path(&place)
        );
        PlaceCaution {
            effect: PlaceEffect::RunsCode,
            place,
            text,
        }
    }
}
