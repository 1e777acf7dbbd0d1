//! Inspects a module's folder to find out how the module runs. `toolpost_amplifier` interprets the names and the
//! manifest; this file opens them.
#![expect(
    clippy::disallowed_methods,
    reason = "a module's folder is anywhere on the machine, and only looked at"
)]

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use toolpost_amplifier::{
    DeclaredTransport, FolderNames, FoundIn, LoadFailure, LoadReason, MANIFEST_FILE, ModuleKind,
    ModuleManifest, ModuleManifestError, ModuleTransport, ModuleType, PlannedModule, detect,
};

/// The longest manifest that is read. Real ones are a page.
const LONGEST_MANIFEST: u64 = 64 * 1024;
/// The most names of a folder that are read. Module folders are written by hand and stay far below it.
const MOST_NAMES: usize = 10_000;

/// A module's folder with the findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedModule {
    /// The folder. For a module that is one Python file, that file.
    pub root: PathBuf,
    /// How it runs.
    pub transport: ModuleTransport,
    /// The type in its manifest, if it has one.
    pub module_type: Option<ModuleType>,
    /// Oddities of the module, for operators.
    pub notes: Vec<String>,
}

/// Why a folder is no module.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The path does not exist.
    #[error("`{}` does not exist", path.display())]
    PathNotFound {
        /// The expected path.
        path: PathBuf,
    },
    /// The folder has nothing to run, or lacks the file in the manifest.
    #[error("`{}`: {message}", path.display())]
    NoArtifact {
        /// The folder.
        path: PathBuf,
        /// The missing file, and a hint.
        message: String,
    },
    /// The manifest is invalid.
    #[error("`{}`: {error}", path.display())]
    Manifest {
        /// The folder.
        path: PathBuf,
        /// The problem.
        error: ModuleManifestError,
    },
    /// The type in the plan differs from the type in the manifest.
    #[error("its manifest declares a {found} module, but the plan mounts it as a {wanted}")]
    WrongType {
        /// The type in the manifest.
        found: ModuleType,
        /// The type in the plan.
        wanted: &'static str,
    },
    /// The folder cannot be read.
    #[error("`{}` cannot be read: {error}", path.display())]
    Io {
        /// The path that could not be read.
        path: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
}

impl ResolveError {
    /// The kind of failure, as records name it.
    pub fn reason(&self) -> LoadReason {
        match self {
            Self::PathNotFound { .. } => LoadReason::MissingSource,
            Self::NoArtifact { .. } => LoadReason::InvalidPackageLayout,
            Self::Manifest { .. } | Self::WrongType { .. } => LoadReason::InvalidModuleMetadata,
            Self::Io { .. } => LoadReason::Unknown,
        }
    }
}

/// Determines how a module of a plan runs. Its folder, or its single file, is at `path`.
pub fn resolve(module: &PlannedModule, path: &Path) -> Result<ResolvedModule, LoadFailure> {
    resolve_folder(path)
        .and_then(|resolved| fits(module.kind, resolved))
        .map_err(|error| LoadFailure {
            module: module.id.clone(),
            kind: module.kind,
            origin: Some(path.display().to_string()),
            reason: error.reason(),
            message: error.to_string(),
        })
}

/// The plan decides the kind of a module. A Python package can be of any kind; other modules are built for one.
fn fits(kind: ModuleKind, mut resolved: ResolvedModule) -> Result<ResolvedModule, ResolveError> {
    let (wanted, word) = match kind {
        ModuleKind::Tool => (ModuleType::Tool, "tool"),
        ModuleKind::Hook => (ModuleType::Hook, "hook"),
    };
    let Some(found) = resolved.module_type.filter(|found| *found != wanted) else {
        return Ok(resolved);
    };
    match resolved.transport {
        ModuleTransport::Python => {
            let note = format!(
                "its manifest declares a {found} module, but the plan mounts it as a {word}"
            );
            resolved.notes.push(note);
            Ok(resolved)
        }
        ModuleTransport::Wasm { .. }
        | ModuleTransport::Grpc { .. }
        | ModuleTransport::Rust { .. } => Err(ResolveError::WrongType {
            found,
            wanted: word,
        }),
    }
}

/// Determines how the module at `path` runs, a folder or a single file of any kind.
pub fn resolve_folder(path: &Path) -> Result<ResolvedModule, ResolveError> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ResolveError::PathNotFound {
            path: path.to_owned(),
        },
        _ => unreadable(path, error),
    })?;
    if metadata.is_file() {
        return single_file(path);
    }
    let names = names_in(path)?;
    let found = detect(&names).map_err(|error| ResolveError::NoArtifact {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    match found {
        FoundIn::Manifest => from_manifest(path, &names),
        FoundIn::Python => Ok(plain(path, ModuleTransport::Python)),
        FoundIn::Wasm {
            artifact,
            passed_over,
        } => {
            let artifact = inside(path, &path.join(artifact))?;
            let mut resolved = plain(
                path,
                ModuleTransport::Wasm {
                    artifact,
                    sha256: None,
                },
            );
            if !passed_over.is_empty() {
                resolved.notes.push(format!(
                    "of several components, the first by name is used; ignored: `{}` (an \
                     `{MANIFEST_FILE}` can name another one)",
                    passed_over.join("`, `")
                ));
            }
            Ok(resolved)
        }
    }
}

fn plain(root: &Path, transport: ModuleTransport) -> ResolvedModule {
    ResolvedModule {
        root: root.to_owned(),
        transport,
        module_type: None,
        notes: Vec::new(),
    }
}

fn single_file(path: &Path) -> Result<ResolvedModule, ResolveError> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if path.file_name().is_some_and(|name| name == MANIFEST_FILE) {
        let folder = path.parent().unwrap_or(Path::new("."));
        return resolve_folder(if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        });
    }
    match extension {
        Some("wasm") => {
            let root = path.parent().unwrap_or(Path::new("/"));
            Ok(plain(
                root,
                ModuleTransport::Wasm {
                    artifact: path.to_owned(),
                    sha256: None,
                },
            ))
        }
        Some("py") => Ok(plain(path, ModuleTransport::Python)),
        _ => Err(ResolveError::NoArtifact {
            path: path.to_owned(),
            message: "it is neither a folder, a `.wasm` component nor a `.py` module".to_owned(),
        }),
    }
}

fn from_manifest(root: &Path, names: &FolderNames) -> Result<ResolvedModule, ResolveError> {
    let text = manifest_text(&root.join(MANIFEST_FILE))?;
    let manifest = ModuleManifest::read(&text).map_err(|error| ResolveError::Manifest {
        path: root.to_owned(),
        error,
    })?;
    let missing = |message: String| ResolveError::NoArtifact {
        path: root.to_owned(),
        message,
    };
    let transport = match manifest.transport {
        DeclaredTransport::Python { .. } if names.has_python() => ModuleTransport::Python,
        DeclaredTransport::Python { unknown_word: None } => {
            return Err(missing(
                "its manifest declares a Python module, but the folder has no Python package"
                    .to_owned(),
            ));
        }
        DeclaredTransport::Python {
            unknown_word: Some(word),
        } => {
            return Err(missing(format!(
                "`transport = \"{word}\"` in `{MANIFEST_FILE}` is not `python`, `wasm`, `grpc` or `rust`, and \
                 the folder has no Python package"
            )));
        }
        DeclaredTransport::Wasm { artifact, sha256 } => {
            if !names.files.contains(&artifact) {
                return Err(missing(no_component(root, names, &artifact)));
            }
            ModuleTransport::Wasm {
                artifact: inside(root, &root.join(artifact))?,
                sha256,
            }
        }
        DeclaredTransport::Grpc { endpoint } => ModuleTransport::Grpc { endpoint },
        DeclaredTransport::Rust { name } => {
            sidecar_program(root, &name)?;
            ModuleTransport::Rust { name }
        }
    };
    Ok(ResolvedModule {
        root: root.to_owned(),
        transport,
        module_type: Some(manifest.module_type),
        notes: manifest.notes,
    })
}

/// Examples ship their component beside the folder and under another name, so the message mentions it to users who
/// copy one.
fn no_component(root: &Path, names: &FolderNames, artifact: &str) -> String {
    let missing =
        format!("its manifest names the component `{artifact}`, which is not in the folder");
    let here = names.components();
    if !here.is_empty() {
        return format!(
            "{missing}; the folder has `{}` (set `artifact` to it)",
            here.join("`, `")
        );
    }
    let above = root
        .canonicalize()
        .ok()
        .and_then(|root| names_in(root.parent()?).ok());
    match above
        .map(|above| above.components())
        .filter(|above| !above.is_empty())
    {
        Some(above) => format!(
            "{missing}; the folder above has `{}`: put the right one into the module's own folder as \
             `{artifact}`, or set `artifact` to its name",
            above.join("`, `")
        ),
        None => format!("{missing}; build it first"),
    }
}

/// The program of a module with `transport = "rust"`: the binary with the name of the crate, in the folder or in the
/// output folder of `cargo build --release`.
pub(crate) fn sidecar_program(root: &Path, name: &str) -> Result<PathBuf, ResolveError> {
    let places = [
        root.join(name),
        root.join("target").join("release").join(name),
    ];
    let Some(found) = places.iter().find(|place| place.is_file()) else {
        return Err(ResolveError::NoArtifact {
            path: root.to_owned(),
            message: format!(
                "its program `{name}` is neither in the folder nor in `target/release`; build it with `cargo build \
                 --release`"
            ),
        });
    };
    let program = inside(root, found)?;
    let mode = fs::metadata(&program)
        .map_err(|error| unreadable(&program, error))?
        .permissions()
        .mode();
    if mode & 0o111 == 0 {
        let message = format!("its program `{}` is not executable", program.display());
        return Err(ResolveError::NoArtifact {
            path: root.to_owned(),
            message,
        });
    }
    Ok(program)
}

/// The file's real path, which must be in the folder: a link out of it could lead to any file of the machine.
fn inside(root: &Path, file: &Path) -> Result<PathBuf, ResolveError> {
    let real_root = root
        .canonicalize()
        .map_err(|error| unreadable(root, error))?;
    let real = file
        .canonicalize()
        .map_err(|error| unreadable(file, error))?;
    if real.starts_with(&real_root) {
        return Ok(real);
    }
    let message = format!(
        "`{}` links to a file outside the module's folder",
        file.display()
    );
    Err(ResolveError::NoArtifact {
        path: root.to_owned(),
        message,
    })
}

fn names_in(folder: &Path) -> Result<FolderNames, ResolveError> {
    let mut names = FolderNames::default();
    for entry in fs::read_dir(folder)
        .map_err(|error| unreadable(folder, error))?
        .take(MOST_NAMES)
    {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        let Some(name) = path
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
        else {
            continue;
        };
        if path.is_file() {
            names.files.push(name);
        } else if path.join("__init__.py").is_file() {
            names.packages.push(name);
        } else if name == "src" {
            names.packages.extend(packages_in(&path));
        }
    }
    Ok(names)
}

fn packages_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .take(MOST_NAMES)
        .flatten();
    let packages = entries.filter(|entry| entry.path().join("__init__.py").is_file());
    packages
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn manifest_text(path: &Path) -> Result<String, ResolveError> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(LONGEST_MANIFEST + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 <= LONGEST_MANIFEST => Ok(text),
        Ok(_) => {
            let message = format!("it is longer than {} KiB", LONGEST_MANIFEST / 1024);
            Err(unreadable(
                path,
                io::Error::new(io::ErrorKind::InvalidData, message),
            ))
        }
        Err(error) => Err(unreadable(path, error)),
    }
}

fn unreadable(path: &Path, error: io::Error) -> ResolveError {
    ResolveError::Io {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests;
