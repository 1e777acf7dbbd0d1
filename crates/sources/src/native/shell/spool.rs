//! Files for output that is too large for memory. They have no name, so they are gone with the host, however it ends.

use std::{io, os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{AtFlags, MemfdFlags, Mode, OFlags, memfd_create, openat, unlinkat},
    io::Errno,
};
use toolpost_model::InvocationId;

/// The directory in which such files are made, held open. The host chooses it: its data directory, or one for
/// temporary files. Agents cannot reach it.
#[derive(Clone, Debug)]
pub struct SpoolDirectory(Place);

#[derive(Clone, Debug)]
enum Place {
    Directory(Arc<OwnedFd>),
    Memory,
}

impl From<OwnedFd> for SpoolDirectory {
    fn from(directory: OwnedFd) -> Self {
        Self(Place::Directory(Arc::new(directory)))
    }
}

impl SpoolDirectory {
    /// For a host that keeps nothing on disk.
    pub fn in_memory() -> Self {
        Self(Place::Memory)
    }

    /// A new file that nobody else can open.
    pub(super) fn create(&self) -> io::Result<OwnedFd> {
        let directory = match &self.0 {
            Place::Directory(directory) => directory,
            Place::Memory => return Ok(memfd_create("spool", MemfdFlags::CLOEXEC)?),
        };
        let (mode, flags) = (Mode::RUSR | Mode::WUSR, OFlags::RDWR | OFlags::CLOEXEC);
        match openat(&**directory, ".", flags | OFlags::TMPFILE, mode) {
            // Not every file system has files without a name; there one has a name for a moment.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                let name = format!(".spool-{}", InvocationId::new().to_hex());
                let file = openat(&**directory, &name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
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
