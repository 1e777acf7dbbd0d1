//! One environment in the cache: made once, checked at every start, and completed later if a package failed.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    cache::{CacheError, ModuleCache},
    supply::{ModuleFetchPolicy, ModuleSupply, SetupProgressSink},
};

use super::{
    ENVIRONMENTS, EnvironmentRebuildScope, ModuleRequirements,
    install::{self, InstallFailures, Installer},
    python::PythonInterpreter,
};

/// The record that marks an environment as complete.
const RECORD: &str = "environment.json";
/// How long later starts wait before they retry a failed package, so that a host that restarts often does not wait for
/// a broken index each time.
const PAUSE: Duration = Duration::from_secs(600);

/// The cache's record of a complete environment.
#[derive(Serialize, Deserialize)]
pub(super) struct PackageEnvironmentManifest {
    python: String,
    requirements: Vec<String>,
    /// The installed packages.
    pub(super) packages: Vec<String>,
    /// Modules that failed, with the installer's message.
    pub(super) failed: InstallFailures,
    /// The fingerprint of the files.
    look: String,
}

/// The result of making an environment.
pub(super) enum EnvironmentBuild {
    Here {
        record: PackageEnvironmentManifest,
        folder: PathBuf,
    },
    /// No module's packages are available.
    Nothing {
        /// The end of a sentence that begins with the modules' names.
        why: String,
    },
}

/// One set of requirements for one Python.
pub(super) struct RequirementSet<'a> {
    pub(super) supply: &'a ModuleSupply,
    pub(super) cache: &'a ModuleCache,
    pub(super) python: &'a PythonInterpreter,
    pub(super) requirements: Vec<String>,
}

impl RequirementSet<'_> {
    /// The name of its folder, a digest of the inputs.
    pub(super) fn key(&self) -> String {
        let mut hasher = Sha256::new();
        for text in [self.python.identity()].iter().chain(&self.requirements) {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        const_hex::encode(&hasher.finalize()[..16])
    }

    pub(super) async fn made(
        &self,
        needs: &[ModuleRequirements<'_>],
        anew: EnvironmentRebuildScope,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<EnvironmentBuild, CacheError> {
        let inside = format!("{ENVIRONMENTS}/{}", self.key());
        let before = self.made_before(&inside, anew);
        if let EarlierEnvironment::Good(made) = before {
            return Ok(made);
        }
        if self.supply.reach == ModuleFetchPolicy::Offline {
            return Ok(match before {
                EarlierEnvironment::Good(made) | EarlierEnvironment::WithFailures(made) => made,
                EarlierEnvironment::Nothing => EnvironmentBuild::Nothing {
                    why: "are not installed, and fetching is off\n\
                          hint: run `toolpost modules fetch`"
                        .to_owned(),
                },
            });
        }
        let _locked = self.cache.lock(&self.key(), progress).await?;
        // Another host may have made it while this one waited for the lock.
        match self.made_before(&inside, anew) {
            EarlierEnvironment::Good(made) => Ok(made),
            EarlierEnvironment::WithFailures(EnvironmentBuild::Here { record, folder }) => {
                self.retried(needs, (&inside, folder), record, progress)
                    .await
            }
            EarlierEnvironment::WithFailures(made) => Ok(made),
            EarlierEnvironment::Nothing => self.make(needs, &inside, progress).await,
        }
    }

    async fn make(
        &self,
        needs: &[ModuleRequirements<'_>],
        inside: &str,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<EnvironmentBuild, CacheError> {
        // An incomplete environment has no record and is never used.
        self.cache.clear(inside)?;
        self.cache.folder(inside)?;
        let folder = self.cache.path_of(inside);
        let installer = Installer::new(self.supply, self.python, folder.clone(), needs);
        match installer.install(&self.requirements, needs, progress).await {
            Ok((packages, failed)) => self.kept(inside, folder, packages, failed),
            Err(error) => {
                self.cache.clear(inside)?;
                Ok(EnvironmentBuild::Nothing {
                    why: format!("cannot be installed: {error}"),
                })
            }
        }
    }

    /// Retries the modules that failed. The installed packages stay: an installer takes all of a list or nothing.
    async fn retried(
        &self,
        needs: &[ModuleRequirements<'_>],
        (inside, folder): (&str, PathBuf),
        record: PackageEnvironmentManifest,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<EnvironmentBuild, CacheError> {
        let had = |needs: &&ModuleRequirements<'_>| {
            record
                .failed
                .iter()
                .all(|(id, _)| id != needs.module.id.as_str())
        };
        let wanting: Vec<&ModuleRequirements<'_>> =
            needs.iter().filter(|needs| !had(needs)).collect();
        let only_of_failed = |text: &String| {
            wanting
                .iter()
                .any(|needs| needs.requirements.contains(text))
                && !needs
                    .iter()
                    .filter(had)
                    .any(|needs| needs.requirements.contains(text))
        };
        let mut taken: Vec<String> = self
            .requirements
            .iter()
            .filter(|text| !only_of_failed(text))
            .cloned()
            .collect();
        // Without a record the environment counts as incomplete, so a host that is killed here leaves nothing that is
        // used.
        self.cache.forget(&format!("{inside}/{RECORD}"))?;
        let installer = Installer::new(self.supply, self.python, folder.clone(), needs);
        let failed = installer.one_by_one(&mut taken, &wanting, progress).await;
        match installer.packages(progress).await {
            Ok(packages) => self.kept(inside, folder, packages, failed),
            Err(_) => self.kept(inside, folder, record.packages, failed),
        }
    }

    fn kept(
        &self,
        inside: &str,
        folder: PathBuf,
        packages: Vec<String>,
        failed: InstallFailures,
    ) -> Result<EnvironmentBuild, CacheError> {
        let look =
            install::look(self.cache.dir(), inside).map_err(|error| self.cache.failed(error))?;
        let python = self.python.identity();
        let requirements = self.requirements.clone();
        let record = PackageEnvironmentManifest {
            python,
            requirements,
            packages,
            failed,
            look,
        };
        self.cache
            .keep_record(&format!("{inside}/{RECORD}"), &record)?;
        Ok(EnvironmentBuild::Here { record, folder })
    }

    /// The existing environment. A damaged one affects only the modules that need it.
    fn made_before(&self, inside: &str, anew: EnvironmentRebuildScope) -> EarlierEnvironment {
        let name = format!("{inside}/{RECORD}");
        if anew == EnvironmentRebuildScope::Everything {
            return EarlierEnvironment::Nothing;
        }
        let folder = self.cache.path_of(inside);
        let record = match self.cache.record::<PackageEnvironmentManifest>(&name) {
            Ok(Some(record)) => record,
            Ok(None) => return EarlierEnvironment::Nothing,
            Err(_) => {
                return EarlierEnvironment::Good(EnvironmentBuild::Nothing {
                    why: changed(&folder),
                });
            }
        };
        let sound = install::look(self.cache.dir(), inside).is_ok_and(|look| look == record.look);
        if !sound || record.requirements != self.requirements {
            return EarlierEnvironment::Good(EnvironmentBuild::Nothing {
                why: changed(&folder),
            });
        }
        let again = match anew {
            EnvironmentRebuildScope::WhatFailedLongAgo => {
                self.cache.age(&name).is_none_or(|age| age >= PAUSE)
            }
            EnvironmentRebuildScope::WhatFailed | EnvironmentRebuildScope::Everything => true,
        };
        let failed = !record.failed.is_empty();
        let made = EnvironmentBuild::Here { record, folder };
        if failed && again {
            EarlierEnvironment::WithFailures(made)
        } else {
            EarlierEnvironment::Good(made)
        }
    }
}

/// The environment that an earlier start left.
enum EarlierEnvironment {
    /// Use it.
    Good(EnvironmentBuild),
    /// It is usable, and the missing packages may be available by now.
    WithFailures(EnvironmentBuild),
    Nothing,
}

fn changed(folder: &Path) -> String {
    format!(
        "the environment of its packages, `{}`, changed since it was installed\n\
         hint: rebuild it with `toolpost modules update`",
        folder.display()
    )
}
