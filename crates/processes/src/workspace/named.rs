//! The name of a thing in its directory, for tools that change names and not contents: a link is the link itself.

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

/// How much of a directory is looked through for protected names, which happens where calls are decided: all callers
/// wait behind it. What has more asks.
const LOOKED_AT: usize = 2_000;
const LEVELS: usize = 64;
/// How many files that steer agents rules are asked about one by one.
const STEERING: usize = 32;
/// How many names rules are asked about before a directory is moved or deleted.
const ASKED_ABOUT: usize = 200_000;
/// How many directories are held open for that.
const OPEN_AT_ONCE: usize = 512;

/// Something that exists, by its name in its open directory.
pub struct ExistingPathEntry {
    /// The directory it lies in, open.
    pub parent: Dir,
    /// Its name there.
    pub name: OsString,
    /// What the system says of it, links not followed.
    pub stat: Stat,
    /// The real path of its directory and its name.
    pub place: PathBuf,
}

impl ExistingPathEntry {
    /// Finds what `given` names and may be moved or deleted. Roots may not, nor what holds one. Where there is nothing,
    /// names are suggested that the caller `may_see`.
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

    /// The type as found.
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Links to directories are none.
    pub fn is_directory(&self) -> bool {
        self.file_type() == FileType::Directory
    }
}

/// Fails where rules keep the call from doing with `named`, and with anything in it, what `places` say: a place it has
/// or will have, and how that is used there.
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

/// Why somebody should look before the directory `name` in `parent` is moved or deleted with all that is in it: all that
/// steers agents, or the first place that runs code. `places` are the paths it has and will have: what is harmless here
/// may be protected there.
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

/// A look through a directory.
struct DirectorySearch<'l> {
    workspace: &'l Workspace,
    places: &'l [&'l Path],
    looked_at: usize,
    /// What steers agents.
    found: Vec<PlaceCaution>,
}

impl DirectorySearch<'_> {
    /// Looks at one level, and says which directories are in it. `Err`: reason enough to look no further.
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
        // `join` of nothing would leave a slash at the end.
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
            "`{}` holds more than {LOOKED_AT} names, {LEVELS} levels or {STEERING} files for agents, too many to look for \
             protected ones",
            shown_path(&place)
        );
        PlaceCaution {
            effect: PlaceEffect::RunsCode,
            place,
            text,
        }
    }
}
