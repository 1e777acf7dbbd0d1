//! The only module that opens configuration files. It returns the content as text, so that the digest for trust is
//! made from the same bytes that are parsed.
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

/// The names of a folder's own plan.
const PLAN_NAMES: [&str; 6] = [
    "bundle.md",
    "bundle.yaml",
    "bundle.yml",
    "plan.yaml",
    "plan.yml",
    "mount_plan.yaml",
];

/// The plan at a path: the file itself, or the plan in a folder.
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

/// The real path of a file, as far as it can be resolved.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether an existing path lies in a folder, after links are resolved.
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

/// The repository of a local file, if there is one.
pub(crate) fn repository_of(path: &Path) -> Option<PathBuf> {
    let real = real_path(path);
    real.ancestors()
        .skip(1)
        .find(|folder| folder.join(".git").exists())
        .map(Path::to_owned)
}

/// Reads a configuration file whole.
///
/// Only a regular file of at most 1 MiB is read. A pipe or a device could block the start of the host for ever, and an
/// untrusted workspace may have chosen the path.
pub fn read_config(path: &Path) -> Result<String, ConfigError> {
    let name = path.display().to_string();
    let unreadable = |cause| ConfigError::unreadable(&name, cause);
    // Checked before the file is opened, since opening a pipe waits for a writer.
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
