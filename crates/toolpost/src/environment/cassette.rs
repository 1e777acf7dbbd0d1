//! Cassette files.

use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use toolpost_core::Cassette;

/// Whether a word on the command line names a file.
pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

pub(crate) fn read_cassette(path: &Path) -> anyhow::Result<Cassette> {
    let said = || format!("`{}` cannot be replayed", path.display());
    let text = std::fs::read_to_string(path).with_context(said)?;
    Cassette::read(&text).with_context(said)
}

/// Writes the file whole or not at all.
pub(crate) fn write_cassette(path: &Path, cassette: &Cassette) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
    let write = || -> std::io::Result<()> {
        // It goes where sources go, so it is readable like them, as far as the user's mask says.
        let readable = std::fs::Permissions::from_mode(0o666);
        let mut file =
            tempfile::Builder::new().prefix(".cassette-").permissions(readable).tempfile_in(&folder)?;
        file.write_all(cassette.to_text().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("the cassette `{}` cannot be written", path.display()))
}

/// A data directory for one recording, gone when it is dropped.
pub(crate) fn record_for_now() -> anyhow::Result<tempfile::TempDir> {
    let private = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("toolpost-").permissions(private).tempdir();
    folder.context("a temporary folder for the record")
}
