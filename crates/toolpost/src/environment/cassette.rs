//! Cassette files.

use std::{io::Write, os::unix::fs::PermissionsExt, path::Path};

use anyhow::Context;
use toolpost_core::Cassette;

use super::{AtomicFileWriter, FileReadAccess};

/// Whether a word of the command line is the name of a file.
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
    let mut file = AtomicFileWriter::begin(path, FileReadAccess::AsUsual)?;
    file.write_all(cassette.to_text().as_bytes())?;
    file.end()
}

/// A data directory for one recording. Dropping it removes the folder.
pub(crate) fn create_temporary_data_dir() -> anyhow::Result<tempfile::TempDir> {
    let private = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new()
        .prefix("toolpost-")
        .permissions(private)
        .tempdir();
    folder.context("a temporary folder for the record cannot be created")
}
