//! Directories that are created on the way to a new file.

use std::{ffi::OsString, io, path::Path};

use cap_std::fs::Dir;
use toolpost_processes::{open_directory, sync_directory};

use super::error::WriteError;

/// Directories created for a file, removed again unless the file was written.
#[derive(Default)]
pub(in crate::files) struct MadeDirectories {
    /// Each by its name in its parent, topmost first.
    made: Vec<(Dir, OsString)>,
    kept: bool,
}

impl MadeDirectories {
    /// Creates all of `rest` except the last, which is the file's name.
    pub(in crate::files) fn make(
        &mut self,
        mut parent: Dir,
        mut rest: Vec<OsString>,
        path: &str,
    ) -> Result<(Dir, OsString), WriteError> {
        let failed = |source: io::Error| WriteError::Io {
            path: path.to_owned(),
            source,
        };
        let name = rest.pop().unwrap_or_default();
        for directory in rest {
            match parent.create_dir(Path::new(&directory)) {
                Ok(()) => self
                    .made
                    .push((parent.try_clone().map_err(failed)?, directory.clone())),
                // Another program created it a moment ago, so it is not removed here.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            parent = open_directory(&parent, &directory).map_err(|error| failed(error.into()))?;
        }
        Ok((parent, name))
    }

    /// Keeps the directories of a file that was written, and makes their names durable.
    pub(in crate::files) fn keep(&mut self) -> io::Result<()> {
        self.kept = true;
        self.made
            .iter()
            .try_for_each(|(parent, _)| sync_directory(parent))
    }

    /// Removes the directories of a file that was removed again.
    pub(super) fn take_back(mut self) {
        self.kept = false;
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        // Deepest first. A directory that another program uses by now is not empty and stays.
        for (parent, name) in self.made.drain(..).rev().filter(|_| !self.kept) {
            let _ = parent.remove_dir(name);
        }
    }
}
