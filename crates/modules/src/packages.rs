//! The Python environment of a set of modules: their dependencies, installed beside the host's own Python and never
//! into it. The modules themselves are not installed; Python imports them from their own folders.

mod direct;
mod install;
mod python;
mod requirements;
mod set;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleId, ModuleKind};

use super::{
    cache::{CacheError, ModuleCache},
    fetch::MODULES,
    running::RunError,
    supply::{ModuleSupply, SetupProgressSink},
};

use python::PythonInterpreter;
use requirements::{BundlePackage, NeedsError};
use set::{EnvironmentBuild, RequirementSet};

/// The folder of environments in the cache.
const ENVIRONMENTS: &str = "environments";
/// The time limit of one step, for large packages over slow networks.
const TIME: Duration = Duration::from_secs(1800);

/// A Python module to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonModule {
    /// Its name.
    pub id: ModuleId,
    /// The kind of module, for failures.
    pub kind: ModuleKind,
    /// Its folder or its only file. `None`: it is a package.
    pub root: Option<PathBuf>,
    /// The package with the module. `None` beside a root of `None`: it must be installed already.
    pub package: Option<String>,
    /// The sharing of the module's folder with other files.
    pub sharing: FolderSharing,
}

/// Whether a module's folder contains files of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderSharing {
    /// Its own folder: a process of the module may read all of it.
    #[default]
    OwnFolder,
    /// The folder of a host's file with other files in it: only the code in it is readable for the module's process.
    BesideHostFile,
}

/// The `amplifier_core` for the modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreWish {
    /// The real one if a module depends on it or if it is installed already, else the stand-in.
    #[default]
    Auto,
    /// The real one; without it no module loads.
    Real,
    /// The stand-in of the bridge, even if the real one is installed.
    StandIn,
}

/// A Python and the paths to a set of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// The interpreter.
    pub python: PathBuf,
    /// The folders of the modules' packages, which must stand at the front of `sys.path` in this order.
    pub paths: Vec<PathBuf>,
    /// The end of `sys.path`: the packages of the modules' bundles, and those of the Python that the environment was
    /// made with, if it has one of the modules.
    pub later_paths: Vec<PathBuf>,
    /// The folders that a process must be able to read beside the system's own folders and the usual toolchains.
    pub readable: Vec<PathBuf>,
    /// The folder name of the environment. `None`: nothing had to be installed.
    pub key: Option<String>,
    /// The packages that were installed, as `name==version`.
    pub packages: Vec<String>,
}

/// An environment, and the modules that it cannot serve.
#[derive(Clone, Debug)]
pub struct PreparedEnvironment {
    /// For all modules but the failed ones.
    pub environment: PythonEnvironment,
    /// Modules whose packages could not be installed.
    pub failures: Vec<LoadFailure>,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    /// No interpreter.
    #[error(
        "`{wanted}` is not installed, and Python modules require it\n\
         hint: install Python 3.10 or newer, or set its path in `amplifier.python`"
    )]
    NoPython {
        /// The program that was looked for.
        wanted: String,
    },
    /// It does not run.
    #[error("the version of Python cannot be read: {0}")]
    Python(#[source] RunError),
    /// Its answer is not that of a Python.
    #[error("`{}` does not behave like Python: {source}", python.display())]
    Answer {
        /// The interpreter.
        python: PathBuf,
        /// The problem with its answer.
        #[source]
        source: serde_json::Error,
    },
    /// It is too old.
    #[error("`{}` is Python {version}, and modules require 3.10 or newer", python.display())]
    TooOld {
        /// The interpreter.
        python: PathBuf,
        /// Its version.
        version: String,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Makes environments and reuses them.
#[derive(Clone, Debug)]
pub struct PackageEnvironments {
    supply: Arc<ModuleSupply>,
}

struct ModuleRequirements<'a> {
    module: &'a PythonModule,
    requirements: Vec<String>,
    /// Local files in the requirements, which an installer must be able to read.
    files: Vec<PathBuf>,
    /// The package of the bundle that the module is part of.
    bundle: Option<BundlePackage>,
}

impl ModuleRequirements<'_> {
    /// The packages by name, as the subject of a sentence.
    fn subject(&self) -> String {
        let names: Vec<String> = self
            .requirements
            .iter()
            .map(|text| format!("`{text}`"))
            .collect();
        format!("its packages ({})", names.join(", "))
    }
}

impl PackageEnvironments {
    /// An instance that installs with `supply`.
    pub fn new(supply: Arc<ModuleSupply>) -> Self {
        Self { supply }
    }

    /// The environment of these modules: an existing one, which needs no network, or a new one. If the packages of one
    /// module cannot be installed, the others still get theirs.
    ///
    /// # Errors
    ///
    /// There is no Python, or the cache cannot be used: no module can be served.
    pub async fn prepare(
        &self,
        modules: &[PythonModule],
        core: CoreWish,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<PreparedEnvironment, PackagesError> {
        self.get(
            modules,
            core,
            EnvironmentRebuildScope::WhatFailedLongAgo,
            progress,
        )
        .await
    }

    /// As [`Self::prepare`], but failed packages are retried at once, since the operator asked for it. A starting host
    /// retries them only after a pause.
    pub async fn fetch(
        &self,
        modules: &[PythonModule],
        core: CoreWish,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<PreparedEnvironment, PackagesError> {
        self.get(modules, core, EnvironmentRebuildScope::WhatFailed, progress)
            .await
    }

    /// As [`Self::prepare`], but everything is installed anew, to get newer packages and retry failed ones.
    pub async fn update(
        &self,
        modules: &[PythonModule],
        core: CoreWish,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<PreparedEnvironment, PackagesError> {
        self.get(modules, core, EnvironmentRebuildScope::Everything, progress)
            .await
    }

    async fn get(
        &self,
        modules: &[PythonModule],
        core: CoreWish,
        anew: EnvironmentRebuildScope,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<PreparedEnvironment, PackagesError> {
        let found = python::find(&self.supply)?;
        let mut failures = Vec::new();
        let outside = EnvironmentInputs {
            core,
            opened: install::opened(&self.supply),
            checkouts: self.supply.cache.join(MODULES),
        };
        let mut needs = needs_of(modules, &outside, &mut failures);
        let asked: Vec<(&str, &str)> = needs
            .iter()
            .filter_map(|needs| needs.module.asked())
            .collect();
        let nothing_to_install = needs.iter().all(|needs| needs.requirements.is_empty());
        if nothing_to_install && asked.is_empty() && core != CoreWish::Real {
            return Ok(PreparedEnvironment {
                environment: of_python(found, &needs),
                failures,
            });
        }
        let cache = ModuleCache::open(&self.supply.cache)?;
        let folder = cache
            .folder(ENVIRONMENTS)
            .map(|_| cache.path_of(ENVIRONMENTS))?;
        let python =
            PythonInterpreter::ask(&self.supply, &found, &folder, &asked, progress).await?;
        let own = drop_missing(&mut needs, &python, &mut failures);
        let requirements = all_requirements(&needs, core);
        if requirements.is_empty() {
            return Ok(PreparedEnvironment {
                environment: of_python(found, &needs),
                failures,
            });
        }
        let set = RequirementSet {
            supply: &self.supply,
            cache: &cache,
            python: &python,
            requirements,
        };
        let made = set.made(&needs, anew, progress).await?;
        let environment = match made {
            EnvironmentBuild::Here { record, folder } => {
                needs.retain(|needs| {
                    !record
                        .failed
                        .iter()
                        .any(|(id, _)| id == needs.module.id.as_str())
                });
                let mut environment = of_python(install::python_in(&folder), &needs);
                environment.readable.push(folder.clone());
                environment.readable.extend(python.prefixes.iter().cloned());
                environment.key = folder
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                environment.packages = record.packages;
                if own {
                    environment.later_paths.extend(python.site);
                }
                for (id, message) in record.failed {
                    let module = modules.iter().find(|module| module.id.as_str() == id);
                    failures
                        .extend(module.map(|module| module.failure(LoadReason::Unknown, message)));
                }
                environment
            }
            EnvironmentBuild::Nothing { why } => {
                let lost = needs.iter().filter(|needs| !needs.requirements.is_empty());
                let message = |needs: &ModuleRequirements<'_>| format!("{} {why}", needs.subject());
                failures.extend(
                    lost.map(|needs| needs.module.failure(LoadReason::Unknown, message(needs))),
                );
                needs.retain(|needs| needs.requirements.is_empty());
                of_python(found, &needs)
            }
        };
        Ok(PreparedEnvironment {
            environment,
            failures,
        })
    }

    /// Removes environments except those with these keys, and returns how many there were. A running host loses the
    /// environment that it uses, so call this only when none runs.
    pub async fn remove_but(&self, used: &[String]) -> Result<usize, CacheError> {
        let Some(cache) = ModuleCache::look(&self.supply.cache)? else {
            return Ok(0);
        };
        let mut names = cache.names(ENVIRONMENTS)?;
        names.retain(|name| !used.contains(name));
        for name in &names {
            let _locked = cache.lock(name, &mut |_| ()).await?;
            cache.clear(&format!("{ENVIRONMENTS}/{name}"))?;
        }
        Ok(names.len())
    }
}

/// The reason to rebuild parts of an existing environment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EnvironmentRebuildScope {
    /// Packages that failed, after the pause: the cause may have passed.
    WhatFailedLongAgo,
    /// Packages that could not be had.
    WhatFailed,
    /// All of it.
    Everything,
}

impl PythonModule {
    /// The module and its package, for the check whether the package is installed already.
    fn asked(&self) -> Option<(&str, &str)> {
        match (&self.root, &self.package) {
            (Some(_), _) => None,
            (None, package) => Some((self.id.as_str(), package.as_deref().unwrap_or_default())),
        }
    }

    fn failure(&self, reason: LoadReason, message: impl Into<String>) -> LoadFailure {
        LoadFailure {
            module: self.id.clone(),
            kind: self.kind,
            origin: self
                .root
                .as_deref()
                .map(text)
                .or_else(|| self.package.clone()),
            reason,
            message: message.into(),
        }
    }
}

fn needs_of<'a>(
    modules: &'a [PythonModule],
    outside: &EnvironmentInputs,
    failures: &mut Vec<LoadFailure>,
) -> Vec<ModuleRequirements<'a>> {
    let mut all = Vec::new();
    for module in modules {
        match needs_of_module(module, outside) {
            Ok(needs) => all.push(needs),
            Err(error) => {
                failures.push(module.failure(LoadReason::InvalidModuleMetadata, error.to_string()));
            }
        }
    }
    all
}

/// The inputs of the modules' requirements beside their own folders.
struct EnvironmentInputs {
    core: CoreWish,
    /// Folders that the operator opened.
    opened: Vec<PathBuf>,
    /// The folder of all fetched modules.
    checkouts: PathBuf,
}

fn needs_of_module<'a>(
    module: &'a PythonModule,
    outside: &EnvironmentInputs,
) -> Result<ModuleRequirements<'a>, NeedsError> {
    let EnvironmentInputs {
        core,
        opened,
        checkouts,
    } = outside;
    let mut needs = ModuleRequirements {
        module,
        requirements: Vec::new(),
        files: Vec::new(),
        bundle: None,
    };
    match (&module.root, &module.package) {
        (Some(root), _) => {
            let own = requirements::of_module(root, module.sharing, *core, opened)?;
            needs.requirements = own.requirements;
            needs.files = own.files;
            if module.sharing == FolderSharing::OwnFolder {
                needs.bundle = requirements::of_bundle(root, checkouts, *core, opened)?;
            }
            if let Some(bundle) = &needs.bundle {
                needs
                    .requirements
                    .extend(bundle.dependencies.requirements.iter().cloned());
                needs
                    .files
                    .extend(bundle.dependencies.files.iter().cloned());
            }
        }
        (None, Some(package)) => needs.requirements.push(direct::checked(package)?),
        (None, None) => {}
    }
    Ok(needs)
}

/// Removes modules that are installed already, and modules that should be installed and are not. Returns whether
/// Python's own packages are needed.
fn drop_missing(
    needs: &mut Vec<ModuleRequirements<'_>>,
    python: &PythonInterpreter,
    failures: &mut Vec<LoadFailure>,
) -> bool {
    let mut installed = python.installed.iter();
    let mut own = false;
    needs.retain_mut(|needs| {
        let Some((id, package)) = needs.module.asked() else { return true };
        match (installed.next(), package) {
            (Some(true), _) => {
                own = true;
                needs.requirements.clear();
                true
            }
            (_, "") => {
                let message = format!(
                    "it has no `source`, and `{}` has no package of this name installed\n\
                     hint: give `{id}` a `source`, or set `amplifier.python` to a Python that has it",
                    python.executable.display()
                );
                failures.push(needs.module.failure(LoadReason::MissingSource, message));
                false
            }
            (_, _) => true,
        }
    });
    own
}

/// Every requirement once, sorted.
fn all_requirements(needs: &[ModuleRequirements<'_>], core: CoreWish) -> Vec<String> {
    let mut all: Vec<String> = needs
        .iter()
        .flat_map(|needs| needs.requirements.iter().cloned())
        .collect();
    if core == CoreWish::Real {
        requirements::with_core(&mut all);
    }
    all.sort();
    all.dedup();
    all
}

/// The interpreter without an environment, with the folders of the modules.
fn of_python(python: PathBuf, needs: &[ModuleRequirements<'_>]) -> PythonEnvironment {
    let own = needs
        .iter()
        .filter(|needs| needs.module.sharing == FolderSharing::OwnFolder);
    let own: Vec<&Path> = own
        .filter_map(|needs| needs.module.root.as_deref())
        .collect();
    let found_by = own.iter().map(|root| requirements::import_path(root));
    let roots = own.iter().map(|root| (*root).to_owned());
    let mut readable: Vec<PathBuf> = roots
        .chain(found_by)
        .chain(python::prefixes_of(&python))
        .collect();
    let mut later_paths = Vec::new();
    for bundle in needs.iter().filter_map(|needs| needs.bundle.as_ref()) {
        readable.extend(bundle.readable.iter().cloned());
        if !later_paths.contains(&bundle.import_path) {
            later_paths.push(bundle.import_path.clone());
        }
    }
    readable.sort();
    readable.dedup();
    PythonEnvironment {
        python,
        paths: paths(needs),
        later_paths,
        readable,
        key: None,
        packages: Vec::new(),
    }
}

fn paths(needs: &[ModuleRequirements<'_>]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for needs in needs {
        let Some(root) = needs.module.root.as_deref() else {
            continue;
        };
        let found_in = match needs.module.sharing {
            FolderSharing::OwnFolder => vec![requirements::import_path(root)],
            // Never the folder above: it may hold the operator's other files.
            FolderSharing::BesideHostFile => vec![root.to_owned(), root.join("src")],
        };
        for path in found_in {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
