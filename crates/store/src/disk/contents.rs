//! The files of blobs: written under a temporary name, then renamed to their digest.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{create_private_directories, found, open_existing, remove, sync_parent};

/// An unfinished blob. The file is removed if this is dropped before it has its final name.
pub(crate) struct TemporaryBlobFile {
    file: File,
    /// `None` after the rename.
    path: Option<PathBuf>,
}

impl TemporaryBlobFile {
    /// Begins a private file in `folder`.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!("{:016x}", getrandom::u64()?));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            file,
            path: Some(path),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Syncs the bytes, so that they survive a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Renames the file to its final name, and syncs the name.
    pub(crate) fn name(mut self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            create_private_directories(folder)?;
        }
        if let Some(temporary) = &self.path {
            fs::rename(temporary, path)?;
            self.path = None;
        }
        sync_parent(path)
    }
}

impl Drop for TemporaryBlobFile {
    fn drop(&mut self) {
        // A file that stays behind is removed when the next host starts.
        if let Some(path) = &self.path {
            let _ = remove(path);
        }
    }
}

pub(crate) struct ContentFile {
    file: File,
    size: u64,
}

impl ContentFile {
    /// `None` if there is no such file. Fails on a link.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(file) = open_existing(path)? else {
            return Ok(None);
        };
        let size = file.metadata()?.len();
        Ok(Some(Self { file, size }))
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Up to `limit` bytes from `offset` on; fewer only at its end.
    pub(crate) fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        let there = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; limit.min(there)];
        let mut filled = 0;
        while filled < bytes.len() {
            match self
                .file
                .read_at(&mut bytes[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// A file in a folder: the facts for counting and cleanup.
pub(crate) struct FolderFile {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// The time since the last write; zero if that lies in the future.
    pub(crate) age: Duration,
}

/// The folders in a folder; none if the folder is missing.
pub(crate) fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The files in a folder. A file that disappears during the listing is left out.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<FolderFile>> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        let entry = entry?;
        let Some(metadata) = super::found(entry.metadata())? else {
            continue;
        };
        if metadata.is_file() {
            let age = metadata.modified()?.elapsed().unwrap_or_default();
            found.push(FolderFile {
                path: entry.path(),
                size: metadata.len(),
                age,
            });
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    Ok(found(fs::read_dir(folder))?.into_iter().flatten())
}
