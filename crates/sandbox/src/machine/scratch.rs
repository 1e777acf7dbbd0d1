//! A directory for a job's temporary files where it cannot have a `/tmp` of its own, and for trying the confines.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::HostName;

/// Not asked from the environment, which libraries leave alone.
const PLACE: &str = "/tmp";

/// Removed when dropped, with everything in it.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
}

impl ScratchFolder {
    pub(crate) fn new(host: &HostName) -> io::Result<Self> {
        loop {
            let path = Path::new(PLACE).join(host.next());
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let scratch = Self { path };
                    fs::DirBuilder::new()
                        .mode(0o700)
                        .create(scratch.path.join("home"))?;
                    return Ok(scratch);
                }
                // Another launcher of this process has had the number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a file into it.
    pub(crate) fn write(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// Removes what hosts that died have left.
    pub(crate) fn sweep(host: &HostName) {
        for entry in fs::read_dir(PLACE).into_iter().flatten().flatten() {
            if entry
                .file_name()
                .to_str()
                .is_some_and(|name| host.is_of_a_dead_host(name))
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
