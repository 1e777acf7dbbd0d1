//! The start of a search: an open directory beneath a root of the workspace, or one file in it.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::fs::Dir;
use toolpost_processes::{PathError, PathTarget, ReadableTarget, StopSign, Workspace, special};

use super::walk::{IgnoreRules, open_directory};

pub(super) struct SearchStart {
    /// The directory.
    pub(super) dir: Dir,
    /// Its path in the workspace, empty for the root.
    pub(super) place: PathBuf,
    /// The file to search, if the call named a file.
    pub(super) file: Option<OsString>,
    /// The ignore rules of the directories above.
    pub(super) rules: Option<Arc<IgnoreRules>>,
}

impl SearchStart {
    /// Resolves `path`, if the call may read it.
    pub(super) fn find(
        workspace: &Workspace,
        path: &str,
        stop: &StopSign,
    ) -> Result<Self, PathError> {
        let (place, found) = stop.locate_readable(workspace, path)?;
        match found {
            ReadableTarget::Directory(dir) => {
                let rules = rules_above(workspace, &place);
                Ok(Self {
                    dir,
                    place,
                    file: None,
                    rules,
                })
            }
            ReadableTarget::Entry { parent, name, stat } => {
                let file_type = rustix::fs::FileType::from_raw_mode(stat.st_mode);
                if file_type != rustix::fs::FileType::RegularFile {
                    return Err(special(path, file_type));
                }
                Ok(Self {
                    dir: parent,
                    place: place.parent().map(Path::to_owned).unwrap_or_default(),
                    file: Some(name),
                    rules: None,
                })
            }
        }
    }

    /// The position in a place's path where names in this directory begin.
    pub(super) fn names_begin_at(&self) -> usize {
        match self.place.as_os_str().as_bytes().len() {
            0 => 0,
            length => length + 1,
        }
    }

    /// A place's path relative to the start.
    pub(super) fn path_to<'p>(&self, place: &'p Path) -> &'p Path {
        place.strip_prefix(&self.place).unwrap_or(place)
    }
}

/// The rules of the directories above `place`, from the root down. A directory whose name is not text, or that does not
/// exist any more, has none.
fn rules_above(workspace: &Workspace, place: &Path) -> Option<Arc<IgnoreRules>> {
    let mut above: Vec<&Path> = place.ancestors().skip(1).collect();
    above.reverse();
    let mut rules = None;
    for place in above {
        let text = if place.as_os_str().is_empty() {
            Some(".")
        } else {
            place.to_str()
        };
        let located = text.and_then(|text| workspace.locate(&workspace.request(text).ok()?).ok());
        let Some(PathTarget::Directory(dir)) = located.map(|located| located.found) else {
            continue;
        };
        if let Ok(dir) = open_directory(&dir, Path::new("")) {
            use rustix::fd::AsFd as _;
            rules = IgnoreRules::in_directory(
                dir.as_fd(),
                place.as_os_str().as_bytes(),
                rules.as_ref(),
            );
        }
    }
    rules
}
