//! From where a plan says a module is to a folder on this machine.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleSource, PlannedModule};

use super::supply::{Progress, Supply};

/// A module that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its folder, or its only file. `None`: it is a package, which its environment brings.
    pub root: Option<PathBuf>,
    /// What exactly it is.
    pub pin: Pin,
}

/// What exactly was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pin {
    /// A commit of a repository.
    Git {
        /// Its whole id.
        commit: String,
        /// SHA-256 of all files, in hex.
        digest: String,
    },
    /// What a download held.
    Archive {
        /// SHA-256 of the bytes that came, in hex.
        archive: String,
        /// SHA-256 of all files, in hex.
        digest: String,
    },
    /// A path, used where it is, whatever it holds.
    Path,
    /// A package by name, which the environment pins.
    Package,
}

/// Fetches modules into the cache, each once.
#[derive(Clone, Debug)]
pub struct Fetcher {
    supply: Arc<Supply>,
}

impl Fetcher {
    /// Fetches with `supply`.
    pub fn new(supply: Arc<Supply>) -> Self {
        Self { supply }
    }

    /// The module's folder: from the cache where it was fetched before, which asks no network.
    pub async fn fetch(
        &self,
        module: &PlannedModule,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Fetched, LoadFailure> {
        let missing = |message: String| LoadFailure {
            module: module.id.clone(),
            kind: module.kind,
            origin: None,
            reason: LoadReason::MissingSource,
            message,
        };
        match &module.source {
            None | Some(ModuleSource::Package(_)) => Ok(Fetched { root: None, pin: Pin::Package }),
            Some(ModuleSource::Path(path)) if path.exists() => {
                Ok(Fetched { root: Some(path.clone()), pin: Pin::Path })
            }
            Some(ModuleSource::Path(path)) => Err(missing(format!("`{}` is not there", path.display()))),
            Some(ModuleSource::Git { url, .. } | ModuleSource::Archive { url, .. }) => {
                progress(Progress::Step(format!("fetching {url}")));
                Err(missing(format!("`{url}` is not in the cache `{}`", self.supply.cache.display())))
            }
        }
    }
}
