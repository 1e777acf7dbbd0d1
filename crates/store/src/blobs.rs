//! Blobs on disk: `blobs/<first two digits>/<digest>` in the data directory, one file each.
//!
//! A blob is written under a temporary name and hashed on the way, synced, and only then renamed to its digest: a file
//! under such a name is whole even after a power cut. Equal contents share one file, the last one written. The use is
//! counted once, at the start, and kept in memory from then on, because only one process at a time writes here.

mod quota;
mod writing;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use toolpost_core::{Blob, BlobError, BlobRoom, BlobStore, BlobWriter, StoragePlace};
use toolpost_model::{BoxFuture, ContentDigest};

use crate::{
    data_dir::DataDir,
    disk::{self, contents},
};
use quota::{BlobQuota, room_of};
use writing::DiskBlobWriter;

/// The limits of size and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobOptions {
    /// The limit of all blobs together, including unfinished ones, in bytes. Each counts for at least 4 KiB.
    pub total: u64,
    /// The limit of one blob, in bytes.
    pub one: u64,
    /// The lifetime of a blob since its last write. `None`: no limit of age.
    pub age: Option<Duration>,
}

/// Why the folder of blobs cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the folder of kept results `{path}`: {source}")]
pub struct BlobsError {
    path: PathBuf,
    source: io::Error,
}

/// The blob store on disk. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct DiskBlobs(Arc<DiskBlobState>);

/// A [`DiskBlobs`] that does not keep the store open.
pub struct WeakBlobs(Weak<DiskBlobState>);

impl WeakBlobs {
    /// The store, while a [`DiskBlobs`] keeps it open.
    pub fn upgrade(&self) -> Option<DiskBlobs> {
        self.0.upgrade().map(DiskBlobs)
    }
}

struct DiskBlobState {
    files: BlobFiles,
    options: BlobOptions,
    quota: BlobQuota,
    /// Held while a file gets its final name or is removed. A writer that finds equal content under the name counts its
    /// room as given back; the removal of the same file in between would give that room back twice.
    naming: Mutex<()>,
}

impl DiskBlobs {
    /// Opens the folder in a data directory that this process holds: removes unfinished files of an earlier host,
    /// removes blobs beyond their age, and counts the rest.
    pub fn open(data_dir: &DataDir, options: BlobOptions) -> Result<Self, BlobsError> {
        let files = BlobFiles::at(data_dir);
        let path = files.root.clone();
        let prepare = || -> io::Result<u64> {
            disk::create_private_directories(&files.temporary())?;
            for left in contents::files(&files.temporary())? {
                disk::remove(&left.path)?;
            }
            let mut used = 0;
            files.each(|file| {
                if options.age.is_some_and(|age| file.age > age) {
                    disk::remove(&file.path)
                } else {
                    used += room_of(file.size);
                    Ok(())
                }
            })?;
            Ok(used)
        };
        let used = prepare().map_err(|source| BlobsError { path, source })?;
        let quota = BlobQuota::new(options.total, used);
        Ok(Self(Arc::new(DiskBlobState {
            files,
            options,
            quota,
            naming: Mutex::default(),
        })))
    }

    /// A handle that does not keep the store open, for the periodic cleanup.
    pub fn downgrade(&self) -> WeakBlobs {
        WeakBlobs(Arc::downgrade(&self.0))
    }

    /// The used bytes as the limit counts them, including unfinished blobs.
    pub fn used(&self) -> u64 {
        self.0.quota.used()
    }

    /// Removes blobs beyond their age, and returns the freed bytes.
    pub async fn clear_away(&self) -> Result<u64, BlobError> {
        let shared = Arc::clone(&self.0);
        writing::blocking(move || shared.clear_away()).await
    }
}

impl DiskBlobState {
    fn clear_away(&self) -> Result<u64, BlobError> {
        let Some(age) = self.options.age else {
            return Ok(0);
        };
        let mut freed = 0;
        let cleared = self.files.each(|file| {
            if file.age <= age {
                return Ok(());
            }
            let _turn = self.naming.lock();
            // A writer may have replaced the file after it was listed; the new file must stay.
            if disk::age(&file.path).is_some_and(|now| now > age) {
                disk::remove(&file.path)?;
                self.quota.give_back(room_of(file.size));
                freed += room_of(file.size);
            }
            Ok(())
        });
        cleared.map_err(failed)?;
        Ok(freed)
    }
}

impl BlobStore for DiskBlobs {
    fn create(&self) -> BoxFuture<'_, Result<Box<dyn BlobWriter>, BlobError>> {
        let writer = DiskBlobWriter::new(Arc::clone(&self.0));
        Box::pin(std::future::ready(Ok(
            Box::new(writer) as Box<dyn BlobWriter>
        )))
    }

    fn room(&self) -> Option<BlobRoom> {
        Some(BlobRoom {
            used: self.used(),
            limit: self.0.options.total,
        })
    }

    fn place(&self) -> StoragePlace {
        self.0.files.place()
    }

    fn open(&self, digest: ContentDigest) -> BoxFuture<'_, Result<Arc<dyn Blob>, BlobError>> {
        let path = self.0.files.path_of(&digest);
        Box::pin(async move {
            let opened =
                writing::blocking(move || contents::ContentFile::open(&path).map_err(failed))
                    .await?;
            let file = opened.ok_or(BlobError::Missing)?;
            Ok(Arc::new(OnDisk(Arc::new(file))) as Arc<dyn Blob>)
        })
    }
}

struct OnDisk(Arc<contents::ContentFile>);

impl Blob for OnDisk {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, limit: usize) -> BoxFuture<'_, Result<Vec<u8>, BlobError>> {
        let file = Arc::clone(&self.0);
        Box::pin(writing::blocking(move || {
            file.read(offset, limit).map_err(failed)
        }))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn failed(error: io::Error) -> BlobError {
    BlobError::Storage(error.to_string())
}

/// The blobs of a data directory, for commands that work on them without a host.
pub struct BlobFiles {
    root: PathBuf,
}

/// The number and size of removed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedFiles {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One blob, open for reading.
pub struct BlobFile(contents::ContentFile);

impl BlobFiles {
    /// The blobs of a data directory.
    pub fn at(data_dir: &DataDir) -> Self {
        Self::beside(&data_dir.journal_path())
    }

    /// The blobs of the data directory at a path, which need not exist yet.
    pub fn of_folder(data_dir: &Path) -> Self {
        Self {
            root: data_dir.join("blobs"),
        }
    }

    /// The blobs beside a journal.
    pub fn beside(journal: &Path) -> Self {
        Self {
            root: journal.with_file_name("blobs"),
        }
    }

    /// The file of a blob. `None`: it does not exist.
    pub fn open(&self, digest: &ContentDigest) -> io::Result<Option<BlobFile>> {
        Ok(contents::ContentFile::open(&self.path_of(digest))?.map(BlobFile))
    }

    /// Removes blobs that were last written longer ago than `age`. Requires the lock of the data directory: a running
    /// host would still count the removed files.
    pub fn remove_older(&self, age: Duration) -> Result<RemovedFiles, BlobsError> {
        let mut removed = RemovedFiles::default();
        let done = self.each(|file| {
            if file.age > age {
                disk::remove(&file.path)?;
                removed.files += 1;
                removed.bytes += file.size;
            }
            Ok(())
        });
        done.map(|()| removed).map_err(|source| BlobsError {
            path: self.root.clone(),
            source,
        })
    }

    fn path_of(&self, digest: &ContentDigest) -> PathBuf {
        let hex = digest.to_hex();
        self.root.join(&hex[..2]).join(hex)
    }

    fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The place of the blobs, for operators.
    pub fn place(&self) -> StoragePlace {
        StoragePlace::Folder(self.root.display().to_string())
    }

    fn each(
        &self,
        mut visit: impl FnMut(&contents::FolderFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let temporary = self.temporary();
        for folder in contents::folders(&self.root)?
            .into_iter()
            .filter(|folder| *folder != temporary)
        {
            contents::files(&folder)?.iter().try_for_each(&mut visit)?;
        }
        Ok(())
    }
}

impl BlobFile {
    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Up to `limit` bytes from `offset` on; fewer only at its end.
    pub fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, limit)
    }
}
