//! A file that a command writes: complete, or unchanged.

use std::{
    fs::{File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tempfile::NamedTempFile;

/// The permitted readers of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileReadAccess {
    /// Its owner alone, since recordings may hold private data.
    Owner,
    /// Readers by the user's umask, as for source files.
    AsUsual,
}

/// A file that is being written under another name. If it is dropped before its end, no part of it stays.
pub(crate) struct AtomicFileWriter {
    writer: BufWriter<NamedTempFile<File>>,
    path: PathBuf,
}

impl AtomicFileWriter {
    pub(crate) fn begin(path: &Path, readers: FileReadAccess) -> anyhow::Result<Self> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mode = match readers {
            FileReadAccess::Owner => 0o600,
            FileReadAccess::AsUsual => 0o666,
        };
        let file = tempfile::Builder::new()
            .prefix(".toolpost-")
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)
            .with_context(|| format!("`{}` cannot be written", path.display()))?;
        Ok(Self {
            writer: BufWriter::new(file),
            path: path.to_owned(),
        })
    }

    /// Moves it into place.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let Self { writer, path } = self;
        let place = || -> io::Result<()> {
            let file = writer
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        place().with_context(|| format!("`{}` cannot be written", path.display()))
    }
}

impl Write for AtomicFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
