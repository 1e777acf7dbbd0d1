//! The programs and settings for fetching modules and packages, and the folder of the cache.
//! [`Fetcher`](super::Fetcher) and [`PackageEnvironments`](super::Packages) share one.

use std::{collections::BTreeMap, path::PathBuf};

use toolpost_processes::{ChildEnvironment, NetworkSettings};
use toolpost_sandbox::Launcher;

/// Variables that steer how packages are fetched: the index, the proxies and the certificates. The caller that reads
/// the host's environment looks these up for [`ModuleSupply::variables`]; they never reach the modules.
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

/// The [`SUPPLY_VARIABLES`] with paths of certificates.
const CERTIFICATE_VARIABLES: [&str; 6] = [
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// The programs and settings for fetching modules, and the folder of the cache.
#[derive(Clone, Debug)]
pub struct ModuleSupply {
    /// The cache: a folder with access for its user alone, created if it is missing. Several hosts may share it.
    pub cache: PathBuf,
    /// Starts git, Python and the installers. Without it, only paths and archives are available.
    pub launcher: Option<Launcher>,
    /// The environment of those programs.
    pub environment: ChildEnvironment,
    /// Further variables for those programs alone, such as [`SUPPLY_VARIABLES`].
    pub variables: BTreeMap<String, String>,
    /// Variables for git alone: the build code of packages must not see the keys to repositories.
    pub fetch_variables: BTreeMap<String, String>,
    /// The folders that they may read beside the system's own folders and the usual toolchains.
    pub readable: Vec<PathBuf>,
    /// The private addresses that archives may come from.
    pub network: NetworkSettings,
    /// Whether fetching is allowed.
    pub reach: ModuleFetchPolicy,
    /// The Python for environments; `None`: `python3` on the `PATH` of `environment`.
    pub python: Option<PathBuf>,
    /// Refuses to start a program whose confines are not complete.
    pub required: bool,
}

impl ModuleSupply {
    /// The certificate files in the variables. They may lie anywhere, and the programs must be able to read them.
    pub(super) fn certificates(&self) -> impl Iterator<Item = PathBuf> {
        let named = CERTIFICATE_VARIABLES
            .iter()
            .filter_map(|name| self.variables.get(*name));
        named.map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The supply for git: with its own variables, and the sockets and files in them.
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

/// Whether fetching is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleFetchPolicy {
    /// Missing modules are fetched.
    #[default]
    Online,
    /// Only the cache is used.
    Offline,
}

/// Receives the progress of the setup.
pub type SetupProgressSink<'a> = dyn FnMut(ModuleSetupProgress) + Send + 'a;

/// A step of the setup, for progress output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSetupProgress {
    /// A step began: `fetching https://…`.
    Step(String),
    /// A line of a running program's output.
    Line(String),
    /// The progress of a download, with the total if it is known.
    Bytes {
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: Option<u64>,
    },
}
