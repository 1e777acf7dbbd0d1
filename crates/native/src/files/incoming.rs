//! A file with content that arrives in pieces from a slow source: the HTTP tools save bodies with it.
//!
//! The place is found before the download starts, and its directory is held open from then on. No worker thread waits
//! for the next piece: between two pieces only descriptors are held.

use toolpost_model::{Effects, InputRefusal, ToolFailure};
use toolpost_processes::{LastLink, PathRefusal, StopSign, Workspace, shown};

use super::{
    PathChange, change_effects,
    writing::{
        IfMissing, IncrementalFileWrite, OldContentNeed, ReplaceCondition, WriteError, WriteTarget,
        WriteTargetRequest,
    },
};

/// A file that is being received. Dropping it leaves nothing behind.
pub(crate) struct IncomingFile(IncrementalFileWrite);

/// A saved file.
pub(crate) struct SavedFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) created: bool,
}

/// Checks a path to save to, without I/O. `at` is the path's position among the arguments.
pub(crate) fn check_incoming(
    workspace: &Workspace,
    given: &str,
    at: &str,
) -> Result<(), InputRefusal> {
    let requested = workspace.request_change(given);
    let requested = requested.map_err(|refusal: PathRefusal| refusal.into_refusal_at(at))?;
    match requested.names_directory() {
        true => {
            let message = format!(
                "`{}` names a directory; name the file to write",
                shown(given)
            );
            Err(InputRefusal::invalid(at, message))
        }
        false => Ok(()),
    }
}

/// Adds the resources of saving to a path to `effects`.
pub(crate) fn incoming_effects(
    workspace: &Workspace,
    effects: Effects,
    path: &str,
) -> Option<Effects> {
    change_effects(
        workspace,
        effects,
        PathChange::content(path).with_directories(true),
    )
}

impl IncomingFile {
    /// Finds the place, and refuses a bad one before the download. Missing directories are created, and removed again
    /// if nothing is saved.
    pub(crate) fn begin(
        workspace: &Workspace,
        given: &str,
        stop: &StopSign,
    ) -> Result<Self, ToolFailure> {
        let opening = WriteTargetRequest {
            given,
            wish: OldContentNeed::IfCheap,
            missing: IfMissing::CreateDirectories,
            last_link: LastLink::Follow,
        };
        let growing = WriteTarget::open(workspace, opening, stop).and_then(WriteTarget::grow);
        growing.map(Self).map_err(WriteError::into_failure)
    }

    /// Writes another piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), ToolFailure> {
        self.0.push(piece).map_err(after_the_exchange)
    }

    /// Gives the complete file its name.
    pub(crate) fn finish(self, stop: &StopSign) -> Result<SavedFile, ToolFailure> {
        let bytes = self.0.bytes();
        let written = self
            .0
            .finish()
            .and_then(|staged| staged.commit(ReplaceCondition::Any, stop));
        let written = written.map_err(after_the_exchange)?;
        let created = written.created();
        written.durable.map_err(after_the_exchange)?;
        Ok(SavedFile {
            path: written.target.path,
            bytes,
            sha256: written.sha256,
            created,
        })
    }
}

/// Marks a failure after the exchange: no file was changed, but the server may have changed something, which only the
/// effects of the call show.
fn after_the_exchange(error: WriteError) -> ToolFailure {
    ToolFailure {
        untouched: None,
        ..error.into_failure()
    }
}
