//! A file that a command writes: there whole, or as it was before.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use tempfile::NamedTempFile;

/// A file that is being written under another name. Dropped before its end, nothing of it stays.
pub(crate) struct Saving {
    file: NamedTempFile,
    path: PathBuf,
}

impl Saving {
    pub(crate) fn begin(path: &Path) -> anyhow::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder)
            .with_context(|| format!("`{}` cannot be written", path.display()))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Puts it in its place.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let failed = || format!("`{}` cannot be written", self.path.display());
        self.file.as_file().sync_all().with_context(failed)?;
        self.file
            .persist(&self.path)
            .with_context(|| format!("`{}` cannot be written", self.path.display()))?;
        Ok(())
    }
}

impl Write for Saving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
