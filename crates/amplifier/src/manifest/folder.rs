//! The transport of a module without a manifest, from the names in its folder.

use super::MANIFEST_FILE;

/// The names in a folder, as the caller listed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderNames {
    /// Its files.
    pub files: Vec<String>,
    /// Folders in it, or in its folder `src`, that have an `__init__.py`.
    pub packages: Vec<String>,
}

impl FolderNames {
    fn has(&self, wanted: &str) -> bool {
        self.files.iter().any(|name| name == wanted)
    }

    /// Whether the folder has Python code to import or to install.
    pub fn has_python(&self) -> bool {
        self.has("__init__.py") || !self.packages.is_empty() || self.has("pyproject.toml")
    }

    /// The components, sorted by name: the same folder gives the same module on every machine.
    pub fn components(&self) -> Vec<String> {
        let is_component = |name: &&String| name.ends_with(".wasm") && !name.starts_with('.');
        let mut found: Vec<String> = self.files.iter().filter(is_component).cloned().collect();
        found.sort();
        found
    }
}

/// The contents of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundIn {
    /// A manifest, which has all further facts.
    Manifest,
    /// A component.
    Wasm {
        /// The first by name.
        artifact: String,
        /// Other components in the folder, which are not used.
        passed_over: Vec<String>,
    },
    /// A Python package.
    Python,
}

/// A folder without any part of a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the folder has no module: no `amplifier.toml`, no `.wasm` file, and no Python package (a folder with \
     `__init__.py`, or a `pyproject.toml`)"
)]
pub struct FolderError;

/// Determines the contents of a folder. The order is Amplifier's: a manifest before a component before a package.
pub fn detect(names: &FolderNames) -> Result<FoundIn, FolderError> {
    if names.has(MANIFEST_FILE) {
        return Ok(FoundIn::Manifest);
    }
    let mut components = names.components();
    if !components.is_empty() {
        let artifact = components.remove(0);
        return Ok(FoundIn::Wasm {
            artifact,
            passed_over: components,
        });
    }
    if names.has_python() {
        Ok(FoundIn::Python)
    } else {
        Err(FolderError)
    }
}
