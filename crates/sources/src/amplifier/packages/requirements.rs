//! What a module needs, from its own `pyproject.toml`, and where Python must look for the module itself.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::File};

use super::{
    CoreWish, FolderSharing,
    direct::{self, RequirementError},
};

/// The distribution of Amplifier's own library.
const CORE: &str = "amplifier-core";
/// The largest `pyproject.toml` that is read.
const PROJECT_BYTES: u64 = 1 << 20;
/// More than this no module needs.
const MOST: usize = 256;

/// What is wrong with what a module says it needs.
#[derive(Debug, thiserror::Error)]
pub(super) enum NeedsError {
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}` is not TOML: {source}", path.display())]
    NotToml { path: PathBuf, source: Box<toml::de::Error> },
    #[error("`{}`: `project.dependencies` must be a list of at most {MOST} texts", path.display())]
    NotAList { path: PathBuf },
    #[error(transparent)]
    Requirement(#[from] RequirementError),
}

/// The dependencies of the module in `root`, as it writes them, and the files of this machine among them. Those must lie
/// in its own folder or in one that the operator opened.
pub(super) fn of_module(
    root: &Path,
    sharing: FolderSharing,
    core: CoreWish,
    opened: &[PathBuf],
) -> Result<(Vec<String>, Vec<PathBuf>), NeedsError> {
    let folder = match sharing {
        FolderSharing::OwnFolder if is_package(root) => root.parent().unwrap_or(root),
        FolderSharing::OwnFolder | FolderSharing::BesideHostFile => root,
    };
    let path = folder.join("pyproject.toml");
    let unreadable = |source| NeedsError::Unreadable { path: path.clone(), source };
    let file = match File::open_ambient(&path, ambient_authority()) {
        Ok(file) => file,
        // A module without the file needs nothing; so does one that is a single file.
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok((Vec::new(), Vec::new()));
        }
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    file.take(PROJECT_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    let project: toml::Table = text
        .parse()
        .map_err(|source| NeedsError::NotToml { path: path.clone(), source: Box::new(source) })?;
    let listed = project.get("project").and_then(|project| project.get("dependencies"));
    let Some(listed) = listed else { return Ok((Vec::new(), Vec::new())) };
    let texts: Option<Vec<&str>> =
        listed.as_array().and_then(|list| list.iter().map(toml::Value::as_str).collect());
    let texts = texts.filter(|texts| texts.len() <= MOST).ok_or(NeedsError::NotAList { path })?;
    let roots = [&[folder.to_owned()], opened].concat();
    let (mut needs, mut files) = (Vec::new(), Vec::new());
    for text in texts {
        let needed = direct::checked(text)?;
        match core {
            CoreWish::StandIn if name_of(&needed) == CORE => {}
            CoreWish::StandIn | CoreWish::Auto | CoreWish::Real => {
                files.extend(direct::local_file(&needed, &roots)?);
                needs.push(needed);
            }
        }
    }
    Ok((needs, files))
}

/// Adds Amplifier's own library to what is needed, unless something names it already.
pub(super) fn with_core(needs: &mut Vec<String>) {
    if !needs.iter().any(|need| name_of(need) == CORE) {
        needs.push(CORE.to_owned());
    }
}

/// The name of the package, in the one form that all its spellings have.
fn name_of(requirement: &str) -> String {
    let end = requirement.find(|c: char| !direct::is_of_name(c)).unwrap_or(requirement.len());
    if !requirement.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return String::new();
    }
    let mut name = String::new();
    for c in requirement[..end].chars() {
        match c {
            '-' | '_' | '.' if name.ends_with('-') => {}
            '-' | '_' | '.' => name.push('-'),
            other => name.push(other.to_ascii_lowercase()),
        }
    }
    name
}

/// Where Python must look to find the module in `root`.
pub(super) fn import_path(root: &Path) -> PathBuf {
    let above = || root.parent().unwrap_or(root).to_owned();
    let is_dir = |path: &Path| rustix::fs::stat(path).is_ok_and(|found| is_folder(&found));
    if is_package(root) || !is_dir(root) {
        return above();
    }
    // The layout with the package under `src` is as common as the one without.
    let inner = root.join("src");
    if is_dir(&inner) && !is_package(&inner) { inner } else { root.to_owned() }
}

fn is_package(root: &Path) -> bool {
    rustix::fs::stat(root.join("__init__.py")).is_ok()
}

fn is_folder(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Directory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_one_form() {
        for (requirement, name) in [
            ("Amplifier_Core>=2", "amplifier-core"),
            ("amplifier.core @ git+https://x", "amplifier-core"),
            ("a--b[c]", "a-b"),
            ("-e .", ""),
            ("./x", ""),
            ("", ""),
        ] {
            assert_eq!(name_of(requirement), name, "{requirement}");
        }
    }
}
