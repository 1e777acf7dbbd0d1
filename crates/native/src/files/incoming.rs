//! A file whose content comes in pieces, from somewhere slow: the HTTP tools save bodies with it.
//!
//! The place is found before anything is fetched, and its directory held from then on. No worker thread waits for
//! the next piece: between two pieces nothing is held but descriptors.

use toolpost_model::{Effects, InputRefusal, ToolFailure};
use toolpost_processes::{LastLink, PathRefusal, StopSign, Workspace, shown};

use super::{
    PathChange, change_effects,
    writing::{
        IfMissing, IncrementalFileWrite, OldContentNeed, ReplaceCondition, WriteError, WriteTarget,
        WriteTargetRequest,
    },
};

/// A file that is coming in. Dropped, it leaves nothing behind.
pub(crate) struct IncomingFile(IncrementalFileWrite);

/// A file that was saved.
pub(crate) struct SavedFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) created: bool,
}

/// Looks at a path to save to, without I/O. `at` is where the path stands among the arguments.
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

/// Adds to `effects` what saving to a path touches.
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
    /// Finds the place, and refuses it before anything was fetched for it. Missing directories are made, and taken
    /// back if nothing is saved.
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

    /// Takes another piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), ToolFailure> {
        self.0.push(piece).map_err(after_the_exchange)
    }

    /// All pieces have come: gives the file its name.
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

/// No file was changed, but the other side may have been: only the call's effects tell.
fn after_the_exchange(error: WriteError) -> ToolFailure {
    ToolFailure {
        untouched: None,
        ..error.into_failure()
    }
}
