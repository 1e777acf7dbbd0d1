//! What modules and their packages are fetched with, and where they are kept. [`Fetcher`](super::Fetcher) and
//! [`PackageEnvironments`](super::Packages) share one.

use std::{collections::BTreeMap, path::PathBuf};

use toolpost_processes::{ChildEnvironment, NetworkSettings};
use toolpost_sandbox::Launcher;

/// Variables that steer how packages are fetched: where the index and the proxies are, and which certificates count.
/// Whoever gathers the host's environment looks these up for [`ModuleSupply::variables`]; modules never get them by this.
pub const SUPPLY_VARIABLES: [&str; 24] = [
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_DEFAULT_INDEX",
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_NO_INDEX",
    "all_proxy",
    "https_proxy",
    "http_proxy",
];

/// Those of the [`SUPPLY_VARIABLES`] that name files or folders with certificates.
const CERTIFICATE_VARIABLES: [&str; 6] = [
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// What modules are fetched with, and where they are kept.
#[derive(Clone, Debug)]
pub struct ModuleSupply {
    /// The cache: a folder that only its user can look into, made where it is missing. Several hosts may share one.
    pub cache: PathBuf,
    /// Starts git, Python and the installers. Without one, only paths and archives can be had.
    pub launcher: Option<Launcher>,
    /// What those find in their environment.
    pub environment: ChildEnvironment,
    /// Further variables for them alone, such as [`SUPPLY_VARIABLES`].
    pub variables: BTreeMap<String, String>,
    /// Variables for git alone: what opens repositories must not be seen by the code that builds packages.
    pub fetch_variables: BTreeMap<String, String>,
    /// What they may read beside the system's own folders and the usual toolchains.
    pub readable: Vec<PathBuf>,
    /// Which private addresses archives may come from.
    pub network: NetworkSettings,
    /// Whether anything may be fetched at all.
    pub reach: ModuleFetchPolicy,
    /// The Python that environments are made with; `None`: `python3` on the `PATH` of `environment`.
    pub python: Option<PathBuf>,
    /// Refuse to start anything whose confines are not complete.
    pub required: bool,
}

impl ModuleSupply {
    /// The certificates that the variables name, wherever the operator keeps them: a program that is told of a file must
    /// be able to read it.
    pub(super) fn certificates(&self) -> impl Iterator<Item = PathBuf> {
        let named = CERTIFICATE_VARIABLES
            .iter()
            .filter_map(|name| self.variables.get(*name));
        named.map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// What git is started with: its own variables, and the sockets and files that they name.
    pub(super) fn for_git(&self) -> Self {
        let mut supply = self.clone();
        let named = self
            .fetch_variables
            .values()
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        supply.readable.extend(named);
        supply.variables.extend(self.fetch_variables.clone());
        supply
    }
}

/// Whether anything may be fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleFetchPolicy {
    /// What the cache does not have is fetched.
    #[default]
    Online,
    /// Only what the cache has is there.
    Offline,
}

/// Takes the progress of the work on modules.
pub type SetupProgressSink<'a> = dyn FnMut(ModuleSetupProgress) + Send + 'a;

/// What is going on, for whoever waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSetupProgress {
    /// Something began: `fetching https://…`.
    Step(String),
    /// A line of a program that is at work.
    Line(String),
    /// So many bytes have come, of so many where that is known.
    Bytes {
        /// Here.
        done: u64,
        /// In all.
        total: Option<u64>,
    },
}
