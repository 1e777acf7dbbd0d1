//! The Python environment of a set of modules: their dependencies, installed beside the host's own Python and never
//! into it.

use std::{path::PathBuf, sync::Arc};

use toolpost_amplifier::{LoadFailure, ModuleId, ModuleKind};

use super::supply::{Progress, Supply};

/// A Python module that wants to be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonModule {
    /// Its name.
    pub id: ModuleId,
    /// What it is, for failures.
    pub kind: ModuleKind,
    /// Its folder. `None`: it is a package.
    pub root: Option<PathBuf>,
    /// The package that it is. `None` beside a root of `None`: it must be installed already.
    pub package: Option<String>,
}

/// Which `amplifier_core` the modules are to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreWish {
    /// The real one only where a module depends on it, or where it is installed already.
    #[default]
    Auto,
    /// The real one.
    Real,
    /// None: the bridge brings its stand-in.
    StandIn,
}

/// How to start Python so that it finds a set of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// The interpreter.
    pub python: PathBuf,
    /// What must stand at the front of `sys.path`, in this order: folders that the modules' packages lie in.
    pub paths: Vec<PathBuf>,
    /// What a process must be able to read beside the system's own folders and the usual toolchains.
    pub readable: Vec<PathBuf>,
    /// What was installed, by the name of the folder it is in. `None`: nothing had to be.
    pub key: Option<String>,
}

/// An environment, and the modules that it cannot serve.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// For all modules but the failed ones.
    pub environment: PythonEnvironment,
    /// Modules whose packages cannot be had.
    pub failures: Vec<LoadFailure>,
}

/// Makes environments, each once.
#[derive(Clone, Debug)]
pub struct Packages {
    supply: Arc<Supply>,
}

impl Packages {
    /// Makes them with `supply`.
    pub fn new(supply: Arc<Supply>) -> Self {
        Self { supply }
    }

    /// The environment of these modules: one that was made before, which asks no network, or a new one. Where some
    /// module's packages cannot be had, the others get theirs.
    ///
    /// # Errors
    ///
    /// There is no Python, or the cache cannot be used: no module can be served.
    pub async fn prepare(
        &self,
        modules: &[PythonModule],
        core: CoreWish,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Prepared, PackagesError> {
        let _ = (modules, core, progress, &self.supply);
        Err(PackagesError::NoPython { wanted: "python3".to_owned() })
    }
}

/// Why there can be no environment at all.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    /// No interpreter.
    #[error(
        "`{wanted}` is not there, and Python modules need it\nhint: install Python 3.10 or newer, or say where it is under `amplifier.python`"
    )]
    NoPython {
        /// What was looked for.
        wanted: String,
    },
}
