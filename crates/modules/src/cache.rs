//! The cache folder of fetched modules and environments. Several hosts may share it, so its contents never change:
//! entries are added under a lock and published by a record file that is renamed into place.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};
use rustix::{
    fs::{FlockOperation, Mode, flock},
    io::Errno,
};
use serde::{Serialize, de::DeserializeOwned};

use super::supply::{ModuleSetupProgress, SetupProgressSink};

/// The pause between two attempts to take a lock that another host holds.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// The largest record of the cache's own that is read.
const RECORD_BYTES: u64 = 1 << 20;

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A file operation failed.
    #[error("the cache `{path}` cannot be used: {source}")]
    Io {
        /// The cache.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another user could write modules into the folder.
    #[error("the cache `{path}` belongs to another user\nhint: choose another with `--cache-dir`")]
    NotOurs {
        /// The cache.
        path: PathBuf,
    },
    /// A record of the cache cannot be read.
    #[error("`{path}` cannot be read: {source}\nhint: delete it with `toolpost modules remove`")]
    Record {
        /// The record.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

pub(super) struct ModuleCache {
    path: PathBuf,
    dir: Dir,
}

/// A held lock of the cache. Dropping it releases the lock.
pub(super) struct ModuleCacheLock {
    _file: File,
}

impl ModuleCache {
    /// Opens the cache. A missing one is created, with access for its user alone.
    pub(super) fn open(path: &Path) -> Result<Self, CacheError> {
        let failed = |source| CacheError::Io {
            path: path.to_owned(),
            source,
        };
        let authority = ambient_authority();
        Dir::create_ambient_dir_all(path, authority).map_err(failed)?;
        let path = std::path::absolute(path).map_err(failed)?;
        let dir = Dir::open_ambient_dir(&path, authority).map_err(failed)?;
        let status = rustix::fs::fstat(&dir).map_err(|errno| failed(errno.into()))?;
        if status.st_uid != rustix::process::geteuid().as_raw() {
            return Err(CacheError::NotOurs { path });
        }
        if status.st_mode & 0o077 != 0 {
            // By its path, since the folder was opened without the right to change it.
            rustix::fs::chmod(&path, Mode::RWXU).map_err(|errno| failed(errno.into()))?;
        }
        Ok(Self { path, dir })
    }

    /// As [`Self::open`], but a missing cache is not created.
    pub(super) fn look(path: &Path) -> Result<Option<Self>, CacheError> {
        let there = found(Dir::open_ambient_dir(path, ambient_authority()));
        let there = there.map_err(|source| CacheError::Io {
            path: path.to_owned(),
            source,
        })?;
        there.map(|_| Self::open(path)).transpose()
    }

    pub(super) fn failed(&self, source: io::Error) -> CacheError {
        CacheError::Io {
            path: self.path.clone(),
            source,
        }
    }

    /// The whole path of something in the cache.
    pub(super) fn path_of(&self, inside: &str) -> PathBuf {
        self.path.join(inside)
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// A folder in the cache; a missing one is created.
    pub(super) fn folder(&self, inside: &str) -> Result<Dir, CacheError> {
        self.dir
            .create_dir_all(inside)
            .and_then(|()| self.dir.open_dir(inside))
            .map_err(|error| self.failed(error))
    }

    /// Waits for the exclusive right to change the entry of this name.
    pub(super) async fn lock(
        &self,
        name: &str,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<ModuleCacheLock, CacheError> {
        let locks = self.folder("locks")?;
        let options = || OpenOptions::new().write(true).create(true).clone();
        let file = locks
            .open_with(format!("{name}.lock"), &options())
            .map_err(|error| self.failed(error))?;
        // The kernel holds the lock for the open file, so it ends with its process: a killed host leaves no stale
        // lock. The lock is polled because a blocking `flock` would occupy a runtime thread for as long as another
        // host downloads, and the future could not be dropped meanwhile.
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(ModuleCacheLock { _file: file }),
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(self.failed(errno.into())),
            }
            if !told {
                progress(ModuleSetupProgress::Step(
                    "waiting for another host to finish the same work".to_owned(),
                ));
                told = true;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Reads a record; `None` if there is none.
    pub(super) fn record<T: DeserializeOwned>(
        &self,
        inside: &str,
    ) -> Result<Option<T>, CacheError> {
        let file = found(self.dir.open(inside)).map_err(|error| self.failed(error))?;
        let Some(file) = file else { return Ok(None) };
        let mut text = String::new();
        file.take(RECORD_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| self.failed(error))?;
        let record = serde_json::from_str(&text);
        record.map(Some).map_err(|source| CacheError::Record {
            path: self.path_of(inside),
            source,
        })
    }

    /// Puts a record in its place by a rename, so that it is never there in part.
    pub(super) fn keep_record(
        &self,
        inside: &str,
        record: &impl Serialize,
    ) -> Result<(), CacheError> {
        let kept = || -> io::Result<()> {
            let text = serde_json::to_vec_pretty(record)?;
            let temporary = format!("{inside}.new");
            let mut file = self.dir.create(&temporary)?;
            file.write_all(&text)?;
            file.sync_all()?;
            self.dir.rename(&temporary, &self.dir, inside)
        };
        kept().map_err(|error| self.failed(error))
    }

    /// The age of a record. `None`: there is no record, or its time is in the future.
    pub(super) fn age(&self, inside: &str) -> Option<Duration> {
        let kept = self
            .dir
            .metadata(inside)
            .and_then(|found| found.modified())
            .ok()?;
        kept.into_std().elapsed().ok()
    }

    /// Removes a record, if it exists.
    pub(super) fn forget(&self, inside: &str) -> Result<(), CacheError> {
        let removed = found(self.dir.remove_file(inside));
        removed.map(|_| ()).map_err(|error| self.failed(error))
    }

    /// Removes a folder of the cache, if it exists.
    pub(super) fn clear(&self, inside: &str) -> Result<(), CacheError> {
        let removed = found(self.dir.remove_dir_all(inside));
        removed.map(|_| ()).map_err(|error| self.failed(error))
    }

    /// The names in a folder of the cache, in their order.
    pub(super) fn names(&self, inside: &str) -> Result<Vec<String>, CacheError> {
        let read = || -> io::Result<Vec<String>> {
            let entries = found(self.dir.read_dir(inside))?.into_iter().flatten();
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let mut names = names.collect::<io::Result<Vec<String>>>()?;
            names.sort();
            Ok(names)
        };
        read().map_err(|error| self.failed(error))
    }
}

/// `None` if the name does not exist.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
