//! Resolves the source of a module in a plan to a folder on this machine. Modules from elsewhere are fetched once into
//! the cache and pinned by commit and digest: later starts need no network, and files that changed on disk since are
//! refused.

mod archive;
mod git;
mod tree;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleSource, PlannedModule};

use super::{
    cache::{CacheError, ModuleCache},
    running::RunError,
    supply::{ModuleFetchPolicy, ModuleSetupProgress, ModuleSupply, SetupProgressSink},
};

use archive::ArchiveError;
use tree::TreeError;

/// The folder of fetched modules in the cache.
pub(super) const MODULES: &str = "modules";
/// The record that names the current folder of an entry.
const PIN: &str = "pin.json";
/// The folder in which an entry's next version is prepared.
const STAGING: &str = "staging";
/// The folder of files in the staging folder.
const FILES: &str = "files";

/// A module on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedModule {
    /// Its folder, or its only file. `None`: it is a package, which its environment installs.
    pub root: Option<PathBuf>,
    /// The exact version of the files.
    pub pin: FetchPin,
}

/// The exact version of a fetched module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FetchPin {
    /// A commit of a repository.
    Git {
        /// Its whole id.
        commit: String,
        /// SHA-256 of all files, in hex.
        digest: String,
    },
    /// The files of a downloaded archive.
    Archive {
        /// SHA-256 of the downloaded bytes, in hex.
        archive: String,
        /// SHA-256 of all files, in hex.
        digest: String,
    },
    /// A path, used in place. Its contents are not pinned.
    Path,
    /// A package by name, which the environment pins.
    Package,
}

impl FetchPin {
    /// SHA-256 of all files, if they are in the cache.
    pub fn digest(&self) -> Option<&str> {
        match self {
            Self::Git { digest, .. } | Self::Archive { digest, .. } => Some(digest),
            Self::Path | Self::Package => None,
        }
    }
}

/// Why a module could not be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Git(#[from] RunError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("`{}` does not exist", .0.display())]
    NoPath(PathBuf),
    #[error("{0}")]
    Unspoken(String),
    #[error("its source has no folder or file `{0}`")]
    NoSubdirectory(String),
    #[error("it is not in the cache, and fetching is off\nhint: run `toolpost modules fetch`")]
    Offline,
    #[error(
        "the copy in the cache changed since it was fetched\n\
         hint: inspect `{}`, then fetch it again with `toolpost modules update`", .0.display()
    )]
    Changed(PathBuf),
    #[error("the work was interrupted")]
    BrokenOff,
}

impl FetchError {
    fn reason(&self) -> LoadReason {
        match self {
            Self::Cache(_) | Self::Changed(_) | Self::BrokenOff => LoadReason::Unknown,
            Self::NoSubdirectory(_) | Self::Tree(_) => LoadReason::InvalidPackageLayout,
            Self::Git(_)
            | Self::Archive(_)
            | Self::NoPath(_)
            | Self::Unspoken(_)
            | Self::Offline => LoadReason::MissingSource,
        }
    }

    fn of(self, module: &PlannedModule) -> LoadFailure {
        LoadFailure {
            module: module.id.clone(),
            kind: module.kind,
            origin: module.source.as_ref().map(ToString::to_string),
            reason: self.reason(),
            message: self.to_string(),
        }
    }
}

/// How far the cache is trusted to be current.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheFreshness {
    /// Use the pinned version if there is one.
    AsPinned,
    /// Fetch the latest version.
    Latest,
}

/// The record of an entry in the cache.
#[derive(Serialize, Deserialize)]
struct PinRecord {
    /// The source, as plans write it, without its subdirectory.
    source: String,
    /// The current folder.
    folder: String,
    pin: FetchPin,
}

/// Fetches modules into the cache, each once.
#[derive(Clone, Debug)]
pub struct Fetcher {
    supply: Arc<ModuleSupply>,
}

impl Fetcher {
    /// Fetches with `supply`.
    pub fn new(supply: Arc<ModuleSupply>) -> Self {
        Self { supply }
    }

    /// The module's folder, from the cache without a network if it was fetched before.
    ///
    /// A path is used in place. A package has no folder: its environment installs it.
    pub async fn fetch(
        &self,
        module: &PlannedModule,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<FetchedModule, LoadFailure> {
        self.get(module, CacheFreshness::AsPinned, progress)
            .await
            .map_err(|error| error.of(module))
    }

    /// Fetches a module again, since a branch may have moved. If that fails, the pinned version stays.
    pub async fn update(
        &self,
        module: &PlannedModule,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<FetchedModule, LoadFailure> {
        self.get(module, CacheFreshness::Latest, progress)
            .await
            .map_err(|error| error.of(module))
    }

    /// The module on this machine without fetching anything; `None` if it would have to be fetched.
    pub async fn look(&self, module: &PlannedModule) -> Result<Option<FetchedModule>, LoadFailure> {
        let looked = async {
            let Some(source) = &module.source else {
                return Ok(Some(FetchedModule {
                    root: None,
                    pin: FetchPin::Package,
                }));
            };
            match RemoteModule::of(source) {
                None => in_place(source).map(Some),
                Some(remote) => match ModuleCache::look(&self.supply.cache)? {
                    Some(cache) => remote.pinned(&cache).await,
                    None => Ok(None),
                },
            }
        };
        looked.await.map_err(|error: FetchError| error.of(module))
    }

    /// Removes a module from the cache. Returns whether it was there.
    pub async fn remove(&self, source: &ModuleSource) -> Result<bool, CacheError> {
        let (Some(remote), Some(cache)) = (
            RemoteModule::of(source),
            ModuleCache::look(&self.supply.cache)?,
        ) else {
            return Ok(false);
        };
        remove(&cache, &remote.entry).await
    }

    /// Removes every entry that none of these sources refers to. Returns the sources of the removed entries.
    pub async fn remove_unused(&self, used: &[&ModuleSource]) -> Result<Vec<String>, CacheError> {
        let Some(cache) = ModuleCache::look(&self.supply.cache)? else {
            return Ok(Vec::new());
        };
        let used: Vec<String> = used
            .iter()
            .filter_map(|source| RemoteModule::of(source))
            .map(|remote| remote.entry)
            .collect();
        let mut removed = Vec::new();
        for entry in cache
            .names(MODULES)?
            .into_iter()
            .filter(|entry| !used.contains(entry))
        {
            let source = source_of(&cache, &entry);
            remove(&cache, &entry).await?;
            removed.push(source.unwrap_or(entry));
        }
        Ok(removed)
    }

    async fn get(
        &self,
        module: &PlannedModule,
        freshness: CacheFreshness,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<FetchedModule, FetchError> {
        let Some(source) = &module.source else {
            return Ok(FetchedModule {
                root: None,
                pin: FetchPin::Package,
            });
        };
        let Some(remote) = RemoteModule::of(source) else {
            return in_place(source);
        };
        // First without the lock: most starts find a good pin, and they should not wait for a host that fetches
        // another version of the entry. The same check runs again under the lock, so that hosts that start together
        // fetch once.
        if freshness == CacheFreshness::AsPinned
            && let Some(cache) = ModuleCache::look(&self.supply.cache)?
            && let Some(pinned) = remote.pinned(&cache).await?
        {
            return Ok(pinned);
        }
        if self.supply.reach == ModuleFetchPolicy::Offline {
            return Err(FetchError::Offline);
        }
        let cache = ModuleCache::open(&self.supply.cache)?;
        let _locked = cache.lock(&remote.entry, progress).await?;
        // Another host may have fetched it while this one waited for the lock.
        if freshness == CacheFreshness::AsPinned
            && let Some(pinned) = remote.pinned(&cache).await?
        {
            return Ok(pinned);
        }
        progress(ModuleSetupProgress::Step(format!(
            "fetching {}",
            remote.told()
        )));
        remote.fetch(&self.supply, &cache, progress).await
    }
}

/// The cached copy of a source, if its files still match the pin. Blocks on file reads, for callers that put a
/// configuration together before there is a host.
pub fn cached_module(
    cache: &Path,
    source: &ModuleSource,
) -> Result<Option<CachedModule>, CacheError> {
    let (Some(remote), Some(cache)) = (RemoteModule::of(source), ModuleCache::look(cache)?) else {
        return Ok(None);
    };
    let Some(record) = cache.record::<PinRecord>(&remote.inside(PIN))? else {
        return Ok(None);
    };
    let sound = remote.folder(&cache, &record).and_then(|dir| {
        let digest = tree::digest(&dir)?;
        remote.checked(&cache, &record, &digest)
    });
    let repository = cache.path_of(&remote.inside(&record.folder));
    Ok(sound.ok().and_then(|fetched| {
        Some(CachedModule {
            root: fetched.root?,
            repository,
        })
    }))
}

/// A module, or a bundle, in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedModule {
    /// Its folder, or its file.
    pub root: PathBuf,
    /// The folder of everything that was fetched with it.
    pub repository: PathBuf,
}

fn in_place(source: &ModuleSource) -> Result<FetchedModule, FetchError> {
    match source {
        ModuleSource::Path(path) => {
            let there = rustix::fs::stat(path).is_ok();
            let found = there.then(|| FetchedModule {
                root: Some(path.clone()),
                pin: FetchPin::Path,
            });
            found.ok_or_else(|| FetchError::NoPath(path.clone()))
        }
        ModuleSource::Unspoken { why, .. } => Err(FetchError::Unspoken(why.clone())),
        ModuleSource::Package(_) | ModuleSource::Git { .. } | ModuleSource::Archive { .. } => {
            Ok(FetchedModule {
                root: None,
                pin: FetchPin::Package,
            })
        }
    }
}

fn source_of(cache: &ModuleCache, entry: &str) -> Option<String> {
    let record = cache.record::<PinRecord>(&format!("{MODULES}/{entry}/{PIN}"));
    record.ok().flatten().map(|record| record.source)
}

async fn remove(cache: &ModuleCache, entry: &str) -> Result<bool, CacheError> {
    let folder = format!("{MODULES}/{entry}");
    if !cache.dir().exists(&folder) {
        return Ok(false);
    }
    let _locked = cache.lock(entry, &mut |_| ()).await?;
    cache.clear(&folder)?;
    Ok(true)
}

/// A source elsewhere, and its entry in the cache. Modules of one repository share an entry, also if they lie in
/// different subdirectories.
struct RemoteModule<'a> {
    source: &'a ModuleSource,
    subdirectory: Option<&'a str>,
    entry: String,
}

impl<'a> RemoteModule<'a> {
    fn of(source: &'a ModuleSource) -> Option<Self> {
        let (url, subdirectory) = match source {
            ModuleSource::Git {
                url, subdirectory, ..
            }
            | ModuleSource::Archive { url, subdirectory } => (url, subdirectory.as_deref()),
            ModuleSource::Path(_) | ModuleSource::Package(_) | ModuleSource::Unspoken { .. } => {
                return None;
            }
        };
        let mut remote = Self {
            source,
            subdirectory,
            entry: String::new(),
        };
        let digest = Sha256::digest(remote.told().as_bytes());
        let name = url
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let legal = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name
            .trim_end_matches(".git")
            .chars()
            .filter(legal)
            .take(48)
            .collect();
        remote.entry = format!(
            "{}-{}",
            name.trim_start_matches('.'),
            const_hex::encode(&digest[..8])
        );
        Some(remote)
    }

    /// The source as plans write it, without its subdirectory.
    fn told(&self) -> String {
        let text = self.source.to_string();
        text.split("#subdirectory=")
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    fn inside(&self, name: &str) -> String {
        format!("{MODULES}/{}/{name}", self.entry)
    }

    /// The pinned version, if its files still match the pin.
    async fn pinned(&self, cache: &ModuleCache) -> Result<Option<FetchedModule>, FetchError> {
        let Some(record) = cache.record::<PinRecord>(&self.inside(PIN))? else {
            return Ok(None);
        };
        let dir = self.folder(cache, &record)?;
        let changed = |_| FetchError::Changed(cache.path_of(&self.inside(&record.folder)));
        let digest = tree_digest(dir).await.map_err(changed)?;
        self.checked(cache, &record, &digest).map(Some)
    }

    /// The folder that a record names. The name is checked, since another process could have edited the record.
    fn folder(&self, cache: &ModuleCache, record: &PinRecord) -> Result<Dir, FetchError> {
        let plain =
            record.folder.len() == 32 && record.folder.bytes().all(|byte| byte.is_ascii_hexdigit());
        let inside = self.inside(&record.folder);
        let dir = cache.dir().open_dir(&inside).ok().filter(|_| plain);
        dir.ok_or_else(|| FetchError::Changed(cache.path_of(&inside)))
    }

    fn checked(
        &self,
        cache: &ModuleCache,
        record: &PinRecord,
        digest: &str,
    ) -> Result<FetchedModule, FetchError> {
        if record.pin.digest() != Some(digest) || record.source != self.told() {
            return Err(FetchError::Changed(
                cache.path_of(&self.inside(&record.folder)),
            ));
        }
        self.found(cache, record)
    }

    /// The folder that the plan refers to, in a checked entry.
    fn found(&self, cache: &ModuleCache, record: &PinRecord) -> Result<FetchedModule, FetchError> {
        let inside = self.inside(&record.folder);
        let dir = cache
            .dir()
            .open_dir(&inside)
            .map_err(|error| cache.failed(error))?;
        let root = root_in(&dir, &cache.path_of(&inside), self.subdirectory)?;
        Ok(FetchedModule {
            root: Some(root),
            pin: record.pin.clone(),
        })
    }

    async fn fetch(
        &self,
        supply: &ModuleSupply,
        cache: &ModuleCache,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<FetchedModule, FetchError> {
        let failed = |error| FetchError::from(cache.failed(error));
        let before = cache.record::<PinRecord>(&self.inside(PIN)).ok().flatten();
        // A host that was killed may have left files there.
        cache.clear(&self.inside(STAGING))?;
        let staging = cache.folder(&self.inside(STAGING))?;
        staging.create_dir(FILES).map_err(failed)?;
        let files = cache.path_of(&self.inside(STAGING)).join(FILES);
        let pin = self.fetch_into(supply, (&staging, &files), progress).await;
        let pin = match pin {
            Ok(pin) => pin,
            Err(error) => {
                cache.clear(&self.inside(STAGING))?;
                return Err(error);
            }
        };
        let digest = pin.digest().unwrap_or_default();
        let folder = digest.get(..32).unwrap_or(digest).to_owned();
        let record = PinRecord {
            source: self.told(),
            folder,
            pin,
        };
        // A new version takes effect in one step: its files are complete before the rename to their final folder, and
        // the pin record, which is itself replaced by a rename, comes after it. Until then the old record refers to
        // the old folder. The final folder is cleared first: a host that was killed before it wrote the record may
        // have left one with the same digest, and a rename onto a folder with files fails.
        cache.clear(&self.inside(&record.folder))?;
        let place = self.inside(&record.folder);
        staging.rename(FILES, cache.dir(), &place).map_err(failed)?;
        cache.clear(&self.inside(STAGING))?;
        // Checked before the record is published, so that no other module of the entry is pinned to a version that
        // lacks this one.
        let found = self.found(cache, &record)?;
        cache.keep_record(&self.inside(PIN), &record)?;
        self.clear_older(cache, &record, before.as_ref())?;
        Ok(found)
    }

    async fn fetch_into(
        &self,
        supply: &ModuleSupply,
        (staging, files): (&Dir, &Path),
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<FetchPin, FetchError> {
        let digest = |staging: &Dir| staging.open_dir(FILES).map_err(TreeError::from);
        match self.source {
            ModuleSource::Git { url, reference, .. } => {
                let commit =
                    git::checkout(supply, (url, reference.as_deref()), files, progress).await?;
                let dir = digest(staging)?;
                // Only the files count. Without `.git` no program takes the folder for a repository.
                dir.remove_dir_all(".git").map_err(TreeError::from)?;
                Ok(FetchPin::Git {
                    commit,
                    digest: tree_digest(dir).await?,
                })
            }
            ModuleSource::Archive { url, .. } => {
                let archive = archive::fetch(supply, url, (staging, FILES), progress).await?;
                Ok(FetchPin::Archive {
                    archive,
                    digest: tree_digest(digest(staging)?).await?,
                })
            }
            ModuleSource::Path(_) | ModuleSource::Package(_) | ModuleSource::Unspoken { .. } => {
                Err(FetchError::BrokenOff)
            }
        }
    }

    /// Removes older versions. This version and the one before it stay, since a running host may use the latter.
    fn clear_older(
        &self,
        cache: &ModuleCache,
        now: &PinRecord,
        before: Option<&PinRecord>,
    ) -> Result<(), CacheError> {
        let entry = format!("{MODULES}/{}", self.entry);
        for name in cache.names(&entry)? {
            let kept = name == now.folder || before.is_some_and(|before| before.folder == name);
            if !kept && name.len() == 32 {
                cache.clear(&format!("{entry}/{name}"))?;
            }
        }
        Ok(())
    }
}

async fn tree_digest(dir: Dir) -> Result<String, FetchError> {
    let work = tokio::task::spawn_blocking(move || tree::digest(&dir));
    Ok(work.await.map_err(|_| FetchError::BrokenOff)??)
}

/// The folder, or the file, of the module or the bundle. Archives often hold a single folder with everything in it,
/// which is entered.
fn root_in(dir: &Dir, path: &Path, subdirectory: Option<&str>) -> Result<PathBuf, FetchError> {
    let names = dir
        .entries()
        .map_err(TreeError::from)?
        .map(|entry| Ok(entry?.file_name()));
    let names = names
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(TreeError::from)?;
    let only = match names.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    let is_dir = |name: &Path| dir.metadata(name).is_ok_and(|metadata| metadata.is_dir());
    let only_folder = only.filter(|only| is_dir(Path::new(only)));
    if let Some(inner) = subdirectory {
        let within = only_folder.map(|only| Path::new(only).join(inner));
        let places = [Some(PathBuf::from(inner)), within];
        // Bundles are named by their files. A tree in the cache has neither links nor devices.
        let found = places
            .into_iter()
            .flatten()
            .find(|place| dir.metadata(place).is_ok());
        return found
            .map(|found| path.join(found))
            .ok_or_else(|| FetchError::NoSubdirectory(inner.to_owned()));
    }
    match (only_folder, only) {
        // A single folder that is a Python package is a part of the module, so it is not entered.
        (Some(folder), _) if !dir.exists(Path::new(folder).join("__init__.py")) => {
            Ok(path.join(folder))
        }
        (None, Some(file)) => Ok(path.join(file)),
        (Some(_), _) | (None, None) => Ok(path.to_owned()),
    }
}
