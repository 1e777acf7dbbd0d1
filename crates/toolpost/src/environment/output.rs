//! A file that a command writes: there with its last line, or not at all.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// A file on its way. Dropped before it is done, nothing of it stays.
pub(crate) struct Output {
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    path: PathBuf,
}

impl Output {
    /// Begins a file beside the place it is for. What is recorded is its owner's business.
    pub(crate) fn begin(path: &Path) -> anyhow::Result<Self> {
        let mut name = path.file_name().context("an output file needs a name")?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
        let file = file.with_context(|| format!("`{}` cannot be written", path.display()))?;
        Ok(Self { file: Some(BufWriter::new(file)), temporary, path: path.to_owned() })
    }

    /// Puts it in its place.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let placed = self.place();
        placed.with_context(|| format!("`{}` cannot be written", self.path.display()))
    }

    fn place(&mut self) -> io::Result<()> {
        let Some(writer) = self.file.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        std::fs::rename(&self.temporary, &self.path)?;
        self.temporary.clear();
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
