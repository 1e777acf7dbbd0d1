//! A directory for temporary files of a job without a private `/tmp`, and for the self-test.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::HostName;

/// Fixed, because this library does not read environment variables.
const PLACE: &str = "/tmp";

/// Deleted on drop, with everything in it.
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
                // Another launcher of this process has used the number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// Removes the directories of hosts that died.
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
