//! Files of a module in development, read before any of it runs.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::exit::UsageError;

/// The longest package description that is read.
const LONGEST: u64 = 1 << 20;

/// The real path of a module. A missing path is a mistake in the command, not in the module.
pub(crate) fn module_path(path: &Path) -> anyhow::Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!(
            "`{}` cannot be opened: {error}\nhint: give the module's folder",
            path.display()
        );
        UsageError(message).into()
    })
}

/// The `pyproject.toml` of a Python module: in its folder, or above its package.
pub(crate) fn pyproject_of(path: &Path) -> Option<String> {
    let is_package = path.join("__init__.py").is_file() || path.is_file();
    let above = path.parent().filter(|_| is_package);
    let beside_src = above
        .filter(|above| above.ends_with("src"))
        .and_then(Path::parent);
    let places = [Some(path).filter(|path| path.is_dir()), above, beside_src];
    places
        .into_iter()
        .flatten()
        .find_map(|folder| read(&folder.join("pyproject.toml")))
}

/// Whether the folder is a crate without a manifest that makes it a module.
pub(crate) fn is_crate_without_manifest(path: &Path) -> bool {
    path.join("Cargo.toml").is_file() && !path.join("amplifier.toml").is_file()
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(LONGEST)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
