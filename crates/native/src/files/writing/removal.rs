//! Removes a file that was read before, and can restore it.

use std::io;

use rustix::fs::{AtFlags, unlinkat};
use toolpost_processes::sync_directory;

use super::{StopSign, WriteError, WriteTarget};

/// A file that will be removed.
pub(in crate::files) struct FileRemoval(pub(in crate::files) WriteTarget);

impl FileRemoval {
    /// Removes the file if it is still the one that was read.
    pub(in crate::files) fn commit(self, stop: &StopSign) -> Result<RemovedFile, WriteError> {
        stop.check()?;
        let target = self.0;
        target.require_unchanged()?;
        unlinkat(&*target.parent, &target.name, AtFlags::empty())
            .map_err(|error| target.failed(error))?;
        let synced = sync_directory(&target.parent);
        let durable = synced.map_err(|source| WriteError::NotDurable {
            path: target.path.clone(),
            source,
        });
        Ok(RemovedFile { target, durable })
    }
}

/// A removed file.
pub(in crate::files) struct RemovedFile {
    target: WriteTarget,
    pub(in crate::files) durable: Result<(), WriteError>,
}

impl RemovedFile {
    pub(in crate::files) fn path(&self) -> &str {
        &self.target.path
    }

    /// Restores the file, unless its name was taken since.
    pub(in crate::files) fn undo(mut self) -> Result<(), WriteError> {
        let content = self.target.old.as_mut().and_then(|old| old.content.take());
        let path = self.target.path.clone();
        let Some(content) = content else {
            return Err(WriteError::ChangedMeanwhile { path });
        };
        let mut staged = self.target.stage_now(&content)?;
        let name = staged.target.name.clone();
        let failed = |source: io::Error| WriteError::Io {
            path: path.clone(),
            source,
        };
        staged
            .temporary
            .take_new(&name)
            .map_err(|error| failed(error.into()))?;
        sync_directory(&staged.target.parent).map_err(failed)
    }
}
