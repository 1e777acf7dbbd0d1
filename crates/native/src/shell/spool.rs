//! Files for output that is too large for memory. They have no name, so they disappear with the host, even if it is
//! killed.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::{
    fs::{AtFlags, MemfdFlags, Mode, OFlags, memfd_create, openat, unlinkat},
    io::Errno,
};
use toolpost_model::InvocationId;

/// The directory of these files, held open. The host chooses it: its data directory, or one for temporary files. Agents
/// cannot reach it.
#[derive(Clone, Debug)]
pub struct SpoolDirectory {
    place: SpoolStorage,
    /// Bytes in all files: many commands together must not fill the disk that the journal is on.
    used: Arc<AtomicU64>,
}

/// The most bytes of one process, and of all together.
const ON_DISK: (u64, u64) = (2 << 30, 4 << 30);
/// The same limits if the files are in memory.
const IN_MEMORY: (u64, u64) = (64 << 20, 512 << 20);

#[derive(Clone, Debug)]
enum SpoolStorage {
    Directory(Arc<OwnedFd>),
    Memory,
}

impl From<OwnedFd> for SpoolDirectory {
    fn from(directory: OwnedFd) -> Self {
        Self {
            place: SpoolStorage::Directory(Arc::new(directory)),
            used: Arc::default(),
        }
    }
}

impl SpoolDirectory {
    /// For a host that stores nothing on disk.
    pub fn in_memory() -> Self {
        Self {
            place: SpoolStorage::Memory,
            used: Arc::default(),
        }
    }

    fn bounds(&self) -> (u64, u64) {
        match self.place {
            SpoolStorage::Directory(_) => ON_DISK,
            SpoolStorage::Memory => IN_MEMORY,
        }
    }

    /// The most bytes of one process.
    pub(super) fn most_of_one(&self) -> u64 {
        self.bounds().0
    }

    /// Reserves this many bytes, or as many as there is room for.
    pub(super) fn take(&self, bytes: u64) -> u64 {
        let (_, all) = self.bounds();
        let mut taken = 0;
        let take = |used: u64| {
            taken = bytes.min(all.saturating_sub(used));
            Some(used + taken)
        };
        let _ = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken
    }

    /// Releases bytes.
    pub(super) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A new file that no other process can open.
    pub(super) fn create(&self) -> io::Result<OwnedFd> {
        let directory = match &self.place {
            SpoolStorage::Directory(directory) => directory,
            SpoolStorage::Memory => return Ok(memfd_create("spool", MemfdFlags::CLOEXEC)?),
        };
        let (mode, flags) = (Mode::RUSR | Mode::WUSR, OFlags::RDWR | OFlags::CLOEXEC);
        match openat(&**directory, ".", flags | OFlags::TMPFILE, mode) {
            // Not every file system supports files without a name; on others the file has one for a moment.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                let name = format!(".spool-{}", InvocationId::new().to_hex());
                let file = openat(
                    &**directory,
                    &name,
                    flags | OFlags::CREATE | OFlags::EXCL,
                    mode,
                )?;
                unlinkat(&**directory, &name, AtFlags::empty())?;
                Ok(file)
            }
            file => Ok(file?),
        }
    }
}

#[cfg(test)]
mod tests {
    use cap_std::{ambient_authority, fs::Dir};

    use super::SpoolDirectory;

    #[test]
    fn a_spool_file_has_no_name() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(home.path(), ambient_authority()).unwrap();
        let spool = SpoolDirectory::from(std::os::fd::OwnedFd::from(dir.try_clone().unwrap()));
        let file = spool.create().unwrap();
        rustix::io::pwrite(&file, b"abc", 0).unwrap();
        let mut read = [0; 3];
        assert_eq!(rustix::io::pread(&file, &mut read, 0).unwrap(), 3);
        assert_eq!((&read, dir.entries().unwrap().count()), (b"abc", 0));
    }
}
