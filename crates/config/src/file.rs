//! The one place that opens a file. What is read is handed on as text: whoever keeps trust hashes the same
//! bytes that are parsed.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the module through which files come into the crate"
)]

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use crate::{error::ConfigError, yaml::MAX_BYTES};

/// What a folder's own plan may be called.
const PLAN_NAMES: [&str; 6] = [
    "bundle.md",
    "bundle.yaml",
    "bundle.yml",
    "plan.yaml",
    "plan.yml",
    "mount_plan.yaml",
];

/// The plan that a path means: itself, or the one in the folder that it is.
pub(crate) fn plan_in(path: &Path) -> PathBuf {
    let found = || {
        PLAN_NAMES
            .iter()
            .map(|name| path.join(name))
            .find(|place| place.is_file())
    };
    if path.is_dir() {
        found().unwrap_or_else(|| path.join(PLAN_NAMES[0]))
    } else {
        path.to_owned()
    }
}

/// Where a file really lies, as far as that can be told.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a path that exists lies inside of a folder, after links are followed.
pub(crate) fn is_inside(path: &Path, folder: &Path) -> bool {
    match (fs::canonicalize(path), fs::canonicalize(folder)) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// The first of several paths that exists.
pub(crate) fn first_of(places: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    places.into_iter().find(|place| place.exists())
}

/// The repository that a file on this machine belongs to, if it belongs to one.
pub(crate) fn repository_of(path: &Path) -> Option<PathBuf> {
    let real = real_path(path);
    real.ancestors()
        .skip(1)
        .find(|folder| folder.join(".git").exists())
        .map(Path::to_owned)
}

/// Reads a configuration file whole.
///
/// Only a regular file of at most 1 MiB is read. A pipe or a device could block the start of the host for
/// ever, and the path may have been chosen by a workspace nobody trusts.
pub fn read_config(path: &Path) -> Result<String, ConfigError> {
    let name = path.display().to_string();
    let unreadable = |cause| ConfigError::unreadable(&name, cause);
    // Looked at before it is opened, since opening a pipe waits for a writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(ConfigError::of_file(&name, "not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_BYTES {
        return Err(ConfigError::too_large(&name));
    }
    String::from_utf8(bytes).map_err(|_| ConfigError::of_file(&name, "the file is not UTF-8 text"))
}
