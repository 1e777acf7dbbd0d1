//! Folders that git takes for a repository, under any name.
//!
//! Git looks for `.git`, and at every level also for a folder that *is* a repository: a `HEAD`, with `objects` and
//! `refs` beside it or in the folder that `commondir` names. It then uses the `config` there, and some settings are
//! commands (`core.fsmonitor` runs at `git status`). The pieces together are therefore as dangerous as `.git/config`,
//! in whichever order they are created. Their content is not checked, because it can be completed later.

use std::{
    collections::HashSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The names that make a folder a repository, or the settings of one.
const PIECES: [&str; 5] = ["HEAD", "commondir", "objects", "refs", CONFIG];

/// Only a file. Folders of this name are common and harmless.
pub(crate) const CONFIG: &str = "config";

/// All names in a repository's folder that git reads. Other names, such as working trees beside the data, do not belong
/// to the repository.
pub(super) const NAMES: [&str; 15] = [
    "HEAD",
    "branches",
    "commondir",
    CONFIG,
    "config.worktree",
    "gitdir",
    "hooks",
    "index",
    "info",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "worktrees",
];

/// Whether a folder is a repository, or has the settings of one. `has` checks for a name in it.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    let holds_data = || has("objects") && has("refs");
    // Without `HEAD`, the `commondir` of another folder can still lead to it.
    (has("HEAD") && (has("commondir") || holds_data())) || (has(CONFIG) && holds_data())
}

/// Whether a name can make its folder a repository.
pub(crate) fn is_piece(name: &OsStr) -> bool {
    PIECES.iter().any(|piece| name == *piece)
}

/// The paths at and above `place` that would belong to a repository if their folders were repositories.
fn names_in_repositories(place: &Path) -> impl Iterator<Item = &Path> {
    let is_known = |path: &&Path| {
        path.file_name()
            .is_some_and(|name| NAMES.iter().any(|known| name == *known))
    };
    place.ancestors().filter(is_known)
}

/// The pieces that a change at `place` creates.
fn pieces(place: &Path) -> impl Iterator<Item = &Path> {
    let brings = move |path: &&Path| {
        path.file_name()
            .is_some_and(|name| is_piece(name) && (name != CONFIG || *path == place))
    };
    place.ancestors().filter(brings)
}

/// The folders that a change at `place` could make a repository.
pub fn folders_in_the_making(place: &Path) -> impl Iterator<Item = &Path> {
    pieces(place).filter_map(Path::parent)
}

/// The first folder that is a repository and changed, once all of `changed` exists. `exists` checks for existing files.
pub(super) fn changed_repository(
    changed: &[PathBuf],
    exists: impl Fn(&Path) -> bool,
) -> Option<&Path> {
    let brought: HashSet<&Path> = changed.iter().flat_map(|place| pieces(place)).collect();
    let is_one = |folder: &&Path| {
        is_repository(|name| {
            let piece = folder.join(name);
            brought.contains(piece.as_path()) || exists(&piece)
        })
    };
    let folders = changed
        .iter()
        .flat_map(|place| names_in_repositories(place))
        .filter_map(Path::parent);
    folders.into_iter().find(is_one)
}
