//! The name of a thing in its directory, for tools that change names and not contents: a link is the link itself.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use cap_std::fs::Dir;
use rustix::fs::{FileType, Stat};
use toolpost_model::Access;

use super::{
    failure::PathError,
    names::shown_path,
    worker::StopSign,
    workspace::{Found, Workspace, open_listing},
};

/// How much of a directory is looked through for protected names, which happens where calls are decided: all callers
/// wait behind it. What has more asks.
const LOOKED_AT: usize = 2_000;
const LEVELS: usize = 64;
/// How many names rules are asked about before a directory is moved or deleted.
const ASKED_ABOUT: usize = 200_000;
/// How many directories are held open for that.
const OPEN_AT_ONCE: usize = 512;

/// Something that exists, by its name in its open directory.
pub(crate) struct Named {
    pub(crate) parent: Dir,
    pub(crate) name: OsString,
    pub(crate) stat: Stat,
    /// The real path of its directory and its name.
    pub(crate) place: PathBuf,
}

impl Named {
    /// Finds what `given` names and may be moved or deleted. Roots may not, nor what holds one. Where there is nothing,
    /// names are suggested that the caller `may_see`.
    pub(crate) fn locate(
        workspace: &Workspace,
        given: &str,
        may_see: impl Fn(&Path) -> bool,
    ) -> Result<Self, PathError> {
        let text = || given.to_owned();
        let requested = workspace.request(given)?;
        let located = workspace.locate_name(&requested)?;
        match located.found {
            Found::Missing { parent, rest } => {
                Err(PathError::not_found(text(), (&parent, &located.path), &rest, may_see))
            }
            Found::Directory(_) => match workspace.root_at(&located.path) {
                Some(root) => Err(PathError::HoldsRoot {
                    given: text(),
                    root: root.to_owned(),
                    relation: "this directory",
                }),
                None => Err(PathError::NoName { given: text() }),
            },
            Found::Entry { ref stat, .. } => {
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
                    Found::Entry { parent, name, stat } => Ok(Self { parent, name, stat, place }),
                    Found::Directory(_) | Found::Missing { .. } => Err(PathError::NoName { given: text() }),
                }
            }
        }
    }

    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.file_type() == FileType::Directory
    }
}

/// Fails where rules keep the call from doing with `named`, and with anything in it, what `places` say: a place it has
/// or will have, and how that is used there.
pub(crate) fn require_all(
    workspace: &Workspace,
    (given, named): (&str, &Named),
    places: &[(&Path, Access)],
    stop: &StopSign,
) -> Result<(), PathError> {
    places.iter().try_for_each(|(place, access)| stop.require(workspace, (given, place), *access))?;
    if !named.is_directory() || !places.iter().any(|(place, _)| stop.may_meet_kept(workspace, place)) {
        return Ok(());
    }
    let failed = |source: io::Error| PathError::Io { given: given.to_owned(), source };
    let mut looked_at = 0_usize;
    let top = open_listing(&named.parent, &named.name).map_err(|error| failed(error.into()))?;
    let mut pending = vec![(top, PathBuf::new())];
    while let Some((dir, beneath)) = pending.pop() {
        for entry in dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            looked_at += 1;
            if looked_at > ASKED_ABOUT || pending.len() > OPEN_AT_ONCE || stop.check().is_err() {
                return Err(PathError::TooManyToAsk { given: given.to_owned() });
            }
            let name = entry.file_name();
            let beneath = beneath.join(&name);
            if places.iter().any(|(place, access)| !stop.may(workspace, &place.join(&beneath), *access)) {
                return Err(PathError::HoldsKept { given: given.to_owned() });
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                let inner = open_listing(&dir, &name).map_err(|error| failed(error.into()))?;
                pending.push((inner, beneath));
            }
        }
    }
    Ok(())
}

/// Why somebody should look before the directory `name` in `parent` is moved or deleted with all that is in it.
/// `places` are the paths it has and will have: what is harmless here may be protected there.
pub(crate) fn caution_beneath(
    workspace: &Workspace,
    (parent, name): (&Dir, &OsStr),
    places: &[&Path],
) -> Option<String> {
    let mut looked_at = 0_usize;
    let mut pending = vec![(open_listing(parent, name).ok()?, PathBuf::new(), 0)];
    while let Some((dir, beneath, level)) = pending.pop() {
        for entry in dir.entries().ok()?.flatten() {
            looked_at += 1;
            if looked_at > LOOKED_AT || level > LEVELS {
                let place = places.first().map(|place| shown_path(place)).unwrap_or_default();
                return Some(format!(
                    "`{place}` holds more than {LOOKED_AT} names or {LEVELS} levels, too many to look for protected ones"
                ));
            }
            let name = entry.file_name();
            let beneath = beneath.join(&name);
            for place in places.iter().map(|place| place.join(&beneath)) {
                if let Some(reason) = workspace.protected_because(&place) {
                    return Some(format!("`{}` is protected: {reason}", shown_path(&place)));
                }
            }
            if entry.file_type().is_ok_and(|file_type| file_type.is_dir()) {
                pending.extend(open_listing(&dir, &name).ok().map(|inner| (inner, beneath, level + 1)));
            }
        }
    }
    None
}
