//! A file that somebody else may still be writing.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// A file that is read on as it grows.
pub(crate) struct GrowingFile {
    path: PathBuf,
    file: File,
    /// How much of it was read.
    at: u64,
}

impl GrowingFile {
    /// Opens it at its beginning. May wait, where it is a pipe that nobody writes to yet.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file =
            File::open(path).with_context(|| format!("`{}` cannot be opened", path.display()))?;
        if file.metadata().is_ok_and(|about| about.is_dir()) {
            anyhow::bail!("`{}` is a folder", path.display());
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            at: 0,
        })
    }

    /// Leaves out what it holds already.
    pub(crate) fn skip(&mut self) -> io::Result<()> {
        self.at = self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Begins anew where the file was cut short or another one has its name. Says whether it did.
    pub(crate) fn renew(&mut self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        if !ours.is_file() {
            return Ok(false);
        }
        // Between the old file and the new one there may be none.
        let Ok(named) = std::fs::metadata(&self.path) else {
            return Ok(false);
        };
        if (named.dev(), named.ino()) != (ours.dev(), ours.ino()) {
            let Ok(file) = File::open(&self.path) else {
                return Ok(false);
            };
            self.file = file;
        } else if ours.len() < self.at {
            self.file.seek(SeekFrom::Start(0))?;
        } else {
            return Ok(false);
        }
        self.at = 0;
        Ok(true)
    }
}

impl Read for GrowingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::GrowingFile;

    fn rest(file: &mut GrowingFile) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_that_was_replaced_or_cut_short_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        std::fs::write(&path, "one\n").unwrap();
        let mut file = GrowingFile::open(&path).unwrap();
        assert_eq!(rest(&mut file), "one\n");
        assert!(!file.renew().unwrap());
        std::fs::write(&path, "2\n").unwrap();
        assert!(file.renew().unwrap());
        assert_eq!(rest(&mut file), "2\n");
        std::fs::remove_file(&path).unwrap();
        assert!(!file.renew().unwrap());
        std::fs::write(&path, "three\n").unwrap();
        assert!(file.renew().unwrap());
        assert_eq!(rest(&mut file), "three\n");
        file.skip().unwrap();
        assert_eq!(rest(&mut file), "");
    }
}
