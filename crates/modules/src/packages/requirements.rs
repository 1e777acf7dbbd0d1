//! The dependencies of a module from its own `pyproject.toml`, and the folders that Python needs to import the module
//! itself.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File},
};

use super::{
    CoreWish, FolderSharing,
    direct::{self, RequirementError},
};

/// The distribution of Amplifier's own library.
const CORE: &str = "amplifier-core";
/// The file that describes a Python project.
const PROJECT_FILE: &str = "pyproject.toml";
/// The files that mark a folder as a bundle.
const BUNDLE_FILES: [&str; 3] = ["bundle.md", "bundle.yaml", "bundle.yml"];
/// How many folders above a module may be its bundle: `modules/x` and a little more.
const BUNDLE_LEVELS: usize = 4;
/// The permission bit for other users to write.
const OTHERS_WRITE: u32 = 0o002;
/// The most names of a bundle's folder that are read.
const MOST_NAMES: usize = 10_000;
/// The largest `pyproject.toml` that is read.
const PROJECT_BYTES: u64 = 1 << 20;
/// The most requirements of a module.
const MOST: usize = 256;

/// A problem in a module's list of dependencies.
#[derive(Debug, thiserror::Error)]
pub(super) enum NeedsError {
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is not TOML: {source}", path.display())]
    NotToml {
        path: PathBuf,
        source: Box<toml::de::Error>,
    },
    #[error("`{}`: `project.dependencies` must be a list of at most {MOST} texts", path.display())]
    NotAList { path: PathBuf },
    #[error(transparent)]
    Requirement(#[from] RequirementError),
}

/// The dependencies of one Python project, as its `pyproject.toml` lists them.
#[derive(Debug, Default)]
pub(super) struct ProjectDependencies {
    pub(super) requirements: Vec<String>,
    /// The local files among them.
    pub(super) files: Vec<PathBuf>,
}

/// The dependencies of the module in `root`. Local files among them must lie in the module's own folder or in one that
/// the operator opened.
pub(super) fn of_module(
    root: &Path,
    sharing: FolderSharing,
    core: CoreWish,
    opened: &[PathBuf],
) -> Result<ProjectDependencies, NeedsError> {
    let folder = match sharing {
        FolderSharing::OwnFolder => project_folder(root),
        FolderSharing::BesideHostFile => root,
    };
    match read_project(folder)? {
        Some(project) => dependencies_of(&project, folder, core, opened),
        // A module without the file has no dependencies; neither has a module of a single file.
        None => Ok(ProjectDependencies::default()),
    }
}

/// The package of the bundle that a module is part of.
#[derive(Debug)]
pub(super) struct BundlePackage {
    /// The folder from which Python imports the package.
    pub(super) import_path: PathBuf,
    /// The code folders that a process of the module may read; never the bundle's whole folder.
    pub(super) readable: Vec<PathBuf>,
    pub(super) dependencies: ProjectDependencies,
}

/// The package of the bundle that has the module in `root` in one of its folders. Amplifier installs that package
/// before the bundle's modules, so such modules import it without listing it as a dependency.
///
/// A folder above counts only with a bundle file and a `[project]` in its `pyproject.toml`, and only if no other user
/// can have put these there: `/tmp` is above many modules. The search for a fetched module ends at its own checkout
/// (`checkouts` holds all of them), wherever the cache lies.
pub(super) fn of_bundle(
    root: &Path,
    checkouts: &Path,
    core: CoreWish,
    opened: &[PathBuf],
) -> Result<Option<BundlePackage>, NeedsError> {
    // Both may be relative to the current folder, or lead through links.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let own = &real(project_folder(root));
    let checkouts = &real(checkouts);
    let is_fetched = own.starts_with(checkouts);
    let above = own.ancestors().skip(1).take(BUNDLE_LEVELS);
    // `entry/checkout` is the highest folder that belongs to a fetched module.
    let within = |folder: &&Path| {
        !is_fetched
            || folder
                .strip_prefix(checkouts)
                .is_ok_and(|inner| inner.components().count() >= 2)
    };
    for folder in above.take_while(within) {
        let file = BUNDLE_FILES
            .iter()
            .map(|name| folder.join(name))
            .find(|file| rustix::fs::stat(file).is_ok());
        let Some(file) = file else { continue };
        if !is_trusted(folder) || !is_trusted(&file) || !is_trusted(&folder.join(PROJECT_FILE)) {
            return Ok(None);
        }
        let Some(project) = read_project(folder)?.filter(|project| project.contains_key("project"))
        else {
            return Ok(None);
        };
        let dependencies = dependencies_of(&project, folder, core, opened)?;
        let packages =
            |folder: &Path| packages_in(folder).map_err(|source| unreadable(folder, source));
        let inner = ["src", "lib"].iter().map(|name| folder.join(name));
        for inner in inner.filter(|inner| is_own_dir(inner) && !is_package(inner)) {
            if !packages(&inner)?.is_empty() {
                return Ok(Some(BundlePackage {
                    import_path: inner.clone(),
                    readable: vec![inner],
                    dependencies,
                }));
            }
        }
        let readable = packages(folder)?;
        return Ok(Some(BundlePackage {
            import_path: folder.to_owned(),
            readable,
            dependencies,
        }));
    }
    Ok(None)
}

/// Whether only this user or root can have changed a file or folder. A file that is missing cannot be misused.
fn is_trusted(path: &Path) -> bool {
    let Ok(found) = rustix::fs::stat(path) else {
        return true;
    };
    let own = [0, rustix::process::geteuid().as_raw()];
    own.contains(&found.st_uid) && found.st_mode & OTHERS_WRITE == 0
}

/// The folder with the `pyproject.toml` of the module in `root`: a package is beside its file.
fn project_folder(root: &Path) -> &Path {
    if is_package(root) {
        root.parent().unwrap_or(root)
    } else {
        root
    }
}

fn read_project(folder: &Path) -> Result<Option<toml::Table>, NeedsError> {
    let path = folder.join(PROJECT_FILE);
    let file = match File::open_ambient(&path, ambient_authority()) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(&path, error)),
    };
    let mut text = String::new();
    file.take(PROJECT_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(&path, error))?;
    match text.parse() {
        Ok(project) => Ok(Some(project)),
        Err(source) => Err(NeedsError::NotToml {
            path,
            source: Box::new(source),
        }),
    }
}

fn dependencies_of(
    project: &toml::Table,
    folder: &Path,
    core: CoreWish,
    opened: &[PathBuf],
) -> Result<ProjectDependencies, NeedsError> {
    let listed = project
        .get("project")
        .and_then(|project| project.get("dependencies"));
    let Some(listed) = listed else {
        return Ok(ProjectDependencies::default());
    };
    let texts: Option<Vec<&str>> = listed
        .as_array()
        .and_then(|list| list.iter().map(toml::Value::as_str).collect());
    let texts = texts
        .filter(|texts| texts.len() <= MOST)
        .ok_or_else(|| NeedsError::NotAList {
            path: folder.join(PROJECT_FILE),
        })?;
    let roots = [&[folder.to_owned()], opened].concat();
    let mut dependencies = ProjectDependencies::default();
    for text in texts {
        let needed = direct::checked(text)?;
        match core {
            CoreWish::StandIn if name_of(&needed) == CORE => {}
            CoreWish::StandIn | CoreWish::Auto | CoreWish::Real => {
                dependencies
                    .files
                    .extend(direct::local_file(&needed, &roots)?);
                dependencies.requirements.push(needed);
            }
        }
    }
    Ok(dependencies)
}

fn unreadable(path: &Path, source: io::Error) -> NeedsError {
    NeedsError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// The Python packages in a bundle's folder. Links are left out: they could lead to code outside of the bundle.
fn packages_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = Dir::open_ambient_dir(folder, ambient_authority())?;
    let mut packages = Vec::new();
    for entry in dir.entries()?.take(MOST_NAMES) {
        let path = folder.join(entry?.file_name());
        if is_own_dir(&path) && is_package(&path) {
            packages.push(path);
        }
    }
    packages.sort();
    Ok(packages)
}

/// Adds Amplifier's own library to the dependencies, unless one of them names it already.
pub(super) fn with_core(needs: &mut Vec<String>) {
    if !needs.iter().any(|need| name_of(need) == CORE) {
        needs.push(CORE.to_owned());
    }
}

/// The normalized name of the package.
fn name_of(requirement: &str) -> String {
    let end = requirement
        .find(|c: char| !direct::is_of_name(c))
        .unwrap_or(requirement.len());
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

/// The folder from which Python imports the module in `root`.
pub(super) fn import_path(root: &Path) -> PathBuf {
    let above = || root.parent().unwrap_or(root).to_owned();
    if is_package(root) || !is_dir(root) {
        return above();
    }
    // The package may be in the folder itself or under `src`; both layouts are common.
    let inner = root.join("src");
    if is_dir(&inner) && !is_package(&inner) {
        inner
    } else {
        root.to_owned()
    }
}

fn is_package(root: &Path) -> bool {
    rustix::fs::stat(root.join("__init__.py")).is_ok()
}

fn is_dir(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(is_folder)
}

/// Whether the path is a folder and not a link to one.
fn is_own_dir(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(is_folder)
}

fn is_folder(found: rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Directory
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests make the folders that they look at"
)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn make_bundle(folder: &Path) {
        fs::create_dir_all(folder.join("src/words")).unwrap();
        fs::write(folder.join("bundle.md"), "").unwrap();
        fs::write(folder.join("pyproject.toml"), "[project]\nname = 'words'\n").unwrap();
        fs::write(folder.join("src/words/__init__.py"), "").unwrap();
    }

    fn import_path_of(root: &Path, checkouts: &Path) -> Option<PathBuf> {
        fs::create_dir_all(root).unwrap();
        let found = of_bundle(root, checkouts, CoreWish::Auto, &[]).unwrap();
        found.map(|bundle| bundle.import_path)
    }

    #[test]
    fn a_fetched_module_finds_no_bundle_outside_of_its_checkout() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        make_bundle(&project);
        let checkouts = project.join("cache/modules");
        let checkout = checkouts.join("entry/hash");
        assert_eq!(import_path_of(&checkout, &checkouts), None);
        assert_eq!(
            import_path_of(&checkout.join("modules/tool"), &checkouts),
            None
        );
        make_bundle(&checkout);
        assert_eq!(
            import_path_of(&checkout.join("modules/tool"), &checkouts),
            Some(checkout.join("src"))
        );
        assert_eq!(
            import_path_of(&project.join("modules/tool"), &checkouts),
            Some(project.join("src"))
        );
    }

    #[test]
    fn a_folder_that_everybody_can_write_into_is_nobodys_bundle() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        make_bundle(&project);
        let module = project.join("modules/tool");
        assert_eq!(
            import_path_of(&module, Path::new("/nowhere")),
            Some(project.join("src"))
        );
        fs::set_permissions(&project, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(import_path_of(&module, Path::new("/nowhere")), None);
    }

    #[test]
    fn a_folder_without_packages_is_not_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        make_bundle(&project);
        fs::rename(project.join("src/words"), project.join("words")).unwrap();
        assert_eq!(
            import_path_of(&project.join("modules/tool"), Path::new("/nowhere")),
            Some(project)
        );
    }

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
