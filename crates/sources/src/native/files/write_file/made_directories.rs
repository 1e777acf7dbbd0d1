//! Directories made on the way to a new file.

use std::{ffi::OsString, io, path::Path};

use cap_std::fs::Dir;

use super::error::WriteError;
use crate::native::files::workspace::{open_directory, sync_directory};

/// Directories made for a file, removed again unless the file was written.
#[derive(Default)]
pub(super) struct MadeDirectories(Vec<(Dir, OsString)>);

impl MadeDirectories {
    /// Makes all of `rest` but the last, which is the file's name.
    pub(super) fn make(
        &mut self,
        mut parent: Dir,
        mut rest: Vec<OsString>,
        path: &str,
    ) -> Result<(Dir, OsString), WriteError> {
        let failed = |source: io::Error| WriteError::Io { path: path.to_owned(), source };
        let name = rest.pop().unwrap_or_default();
        for directory in rest {
            match parent.create_dir(Path::new(&directory)) {
                Ok(()) => self.0.push((parent.try_clone().map_err(failed)?, directory.clone())),
                // Somebody else made it a moment ago, so it is not ours to remove.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            parent = open_directory(&parent, &directory).map_err(|error| failed(error.into()))?;
        }
        Ok((parent, name))
    }

    /// The file was written: the directories stay, and their names are made durable too.
    pub(super) fn keep(&mut self, path: &str) -> Result<(), WriteError> {
        for (parent, _) in std::mem::take(&mut self.0) {
            sync_directory(&parent)
                .map_err(|source| WriteError::NotDurable { path: path.to_owned(), source })?;
        }
        Ok(())
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        // Deepest first. One that somebody else uses by now is not empty and stays.
        for (parent, name) in self.0.drain(..).rev() {
            let _ = parent.remove_dir(name);
        }
    }
}
