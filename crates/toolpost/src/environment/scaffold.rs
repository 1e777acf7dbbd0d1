//! New files for the user. Existing ones are never overwritten.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::exit::UsageError;

/// Creates a folder with files in it. A folder with contents is left as it is.
pub(crate) fn write_new_folder(folder: &Path, files: &[(PathBuf, String)]) -> anyhow::Result<()> {
    let taken = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    if taken {
        let message = format!(
            "`{}` already exists\nhint: choose another folder with `--path DIR`",
            folder.display()
        );
        return Err(UsageError(message).into());
    }
    for (path, text) in files {
        write_new_file(&folder.join(path), text)?;
    }
    Ok(())
}

/// Writes a file if it does not exist.
pub(crate) fn write_new_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let told = || format!("`{}` cannot be written", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(told)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).with_context(told),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message = format!("`{}` already exists\nhint: remove it first", path.display());
            Err(UsageError(message).into())
        }
        Err(error) => Err(error).with_context(told),
    }
}
