//! Applies a patch: reads and checks everything, then writes everything, and undoes the written changes if a later one
//! fails.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::ToolFailure;
use toolpost_processes::{
    CallStopError, LastLink, PathError, PathTarget, StopSign, Workspace, shown,
};

use super::{
    hunks::{self, HunkError, HunkMisfit, MOST_LINES},
    patch::{FilePatch, FilePatchAction, Patch},
};
use crate::files::writing::{
    CONTENT_BYTES, FileRemoval, IfMissing, NewMode, OldContentNeed, RemovedFile, ReplaceCondition,
    StagedFile, WriteError, WriteTarget, WriteTargetRequest, WrittenFile,
};

/// The most content that one patch holds in memory.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// Why a patch was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Stopped(#[from] CallStopError),
    #[error("the hunk at line {} of the patch does not fit `{}`: {}", .misfit.patch_line, shown(.path), .misfit.kind)]
    Misfit { path: String, misfit: HunkMisfit },
    #[error("`{}` already exists", shown(.path))]
    Exists { path: String },
    #[error("the patch changes `{}` twice", shown(.path))]
    Twice { path: String },
    #[error("the patch deletes `{}`, but removes only a part of its lines", shown(.path))]
    NotAll { path: String },
    #[error("the patch changes nothing in `{}`", shown(.path))]
    Nothing { path: String },
    #[error("`{}` has more than {MOST_LINES} lines", shown(.path))]
    TooManyLines { path: String },
    #[error(
        "the files of the patch have more than {HELD_BYTES} bytes together, or one more than {CONTENT_BYTES}"
    )]
    TooLarge,
}

impl PatchError {
    pub(super) fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string()).untouched();
        match self {
            Self::Write(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::Misfit { misfit, .. } => {
                let hint = "nothing was changed; read the file again and copy its lines exactly";
                failure.code(misfit.kind.code()).hint(hint)
            }
            Self::Exists { .. } => failure
                .code("exists")
                .hint("update the file, or delete it in another patch first"),
            Self::Twice { .. } => failure
                .code("changed_twice")
                .hint("put all its hunks into one part"),
            Self::NotAll { .. } => failure.code("no_match"),
            Self::Nothing { .. } => failure.code("no_change"),
            Self::TooManyLines { .. } => failure.code("too_large").hint("use `edit_file`"),
            Self::TooLarge => failure.code("too_large").hint("split the patch"),
        }
    }
}

/// One file that was changed, or should have been.
pub(super) struct FileChange {
    pub(super) path: String,
    /// The path before a move.
    pub(super) from: Option<String>,
    /// The old content; `None` if the file did not exist or is not text.
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) kind: FileChangeKind,
    pub(super) sha256: Option<String>,
    pub(super) previous_sha256: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kind")]
pub(super) enum FileChangeKind {
    Added,
    Updated,
    Moved,
    Deleted,
    /// It was not changed, or was put back.
    Unchanged,
}

/// The result of a patch.
pub(super) struct AppliedPatch {
    pub(super) changes: Vec<FileChange>,
    /// The changes that could not be undone after another one failed.
    pub(super) stuck: Option<PartialPatch>,
}

/// A patch that was applied in part.
pub(super) struct PartialPatch {
    pub(super) reason: WriteError,
    /// Paths with a change that could not be undone.
    pub(super) changed: Vec<String>,
}

/// Applies the whole patch or nothing.
pub(super) fn apply(
    workspace: &Workspace,
    patch: &Patch<'_>,
    stop: &StopSign,
) -> Result<AppliedPatch, PatchError> {
    let mut planner = PatchPlanner {
        workspace,
        stop,
        places: HashSet::new(),
        held: 0,
    };
    let planned: Vec<PlannedFileChange<'_>> = patch
        .files
        .iter()
        .map(|file| planner.plan(file))
        .collect::<Result<_, _>>()?;
    let mut steps = Vec::new();
    let mut changes = Vec::new();
    for planned in planned {
        planned.stage(workspace, stop, &mut steps, &mut changes)?;
    }
    let stuck = commit(steps, stop)?;
    Ok(AppliedPatch { changes, stuck })
}

/// A change that is computed and not written yet.
struct PlannedFileChange<'p> {
    /// The file that is read; `None` for a new file.
    source: Option<WriteTarget>,
    /// The path of the result, if it is not the source.
    target: Option<&'p str>,
    /// `None` to delete the file.
    content: Option<String>,
    mode: NewMode,
}

struct PatchPlanner<'w> {
    workspace: &'w Workspace,
    stop: &'w StopSign,
    /// The real places that the patch has named so far.
    places: HashSet<String>,
    held: usize,
}

impl PatchPlanner<'_> {
    fn plan<'p>(&mut self, file: &FilePatch<'p>) -> Result<PlannedFileChange<'p>, PatchError> {
        self.stop.check()?;
        match &file.change {
            FilePatchAction::Add {
                content,
                executable,
            } => {
                self.free(file.path)?;
                self.hold(content.len())?;
                let mode = if *executable {
                    NewMode::Executable
                } else {
                    NewMode::Plain
                };
                Ok(PlannedFileChange {
                    source: None,
                    target: Some(file.path),
                    content: Some(content.clone()),
                    mode,
                })
            }
            FilePatchAction::Delete { hunks } => {
                let source = self.existing(file.path, LastLink::Keep)?;
                if !hunks.is_empty() && !self.hunks_applied(&source, hunks)?.is_empty() {
                    return Err(PatchError::NotAll { path: source.path });
                }
                Ok(PlannedFileChange {
                    source: Some(source),
                    target: None,
                    content: None,
                    mode: NewMode::Plain,
                })
            }
            FilePatchAction::Update { hunks, move_to } => {
                let link = if move_to.is_some() {
                    LastLink::Keep
                } else {
                    LastLink::Follow
                };
                let source = self.existing(file.path, link)?;
                let content = self.hunks_applied(&source, hunks)?;
                let unchanged =
                    source.old.as_ref().and_then(|old| old.text()) == Some(content.as_str());
                if unchanged && move_to.is_none() {
                    return Err(PatchError::Nothing { path: source.path });
                }
                self.hold(content.len())?;
                if let Some(target) = move_to {
                    self.free(target)?;
                }
                Ok(PlannedFileChange {
                    source: Some(source),
                    target: *move_to,
                    content: Some(content),
                    mode: NewMode::Plain,
                })
            }
        }
    }

    /// A file to change or delete.
    fn existing(&mut self, given: &str, last_link: LastLink) -> Result<WriteTarget, PatchError> {
        let opening = WriteTargetRequest {
            given,
            wish: OldContentNeed::Content,
            missing: IfMissing::Fail,
            last_link,
        };
        let target = WriteTarget::open(self.workspace, opening, self.stop)?;
        self.once(target.path.clone())?;
        self.hold(
            target
                .old
                .as_ref()
                .and_then(|old| old.content.as_ref())
                .map_or(0, Vec::len),
        )?;
        Ok(target)
    }

    /// Checks that no file has this name.
    fn free(&mut self, given: &str) -> Result<(), PatchError> {
        let path_error = |error| PatchError::Write(WriteError::Path(error));
        let requested = self
            .workspace
            .request(given)
            .map_err(|refusal| path_error(PathError::from(refusal)))?;
        let located = self
            .workspace
            .locate(&requested)
            .and_then(|located| located.writable(given));
        let located = located.map_err(path_error)?;
        let path = located.whole_path().to_string_lossy().into_owned();
        match located.found {
            PathTarget::Missing { .. } => self.once(path),
            PathTarget::Directory(_) | PathTarget::Entry { .. } => Err(PatchError::Exists { path }),
        }
    }

    fn once(&mut self, path: String) -> Result<(), PatchError> {
        match self.places.insert(path.clone()) {
            true => Ok(()),
            false => Err(PatchError::Twice { path }),
        }
    }

    fn hunks_applied(
        &self,
        source: &WriteTarget,
        hunks: &[super::patch::Hunk<'_>],
    ) -> Result<String, PatchError> {
        let path = || source.path.clone();
        let text = source.old.as_ref().and_then(|old| old.text());
        let text = text.ok_or_else(|| WriteError::NotText { path: path() })?;
        hunks::apply(text, hunks, &|| self.stop.check()).map_err(|error| match error {
            HunkError::Misfit(misfit) => PatchError::Misfit {
                path: path(),
                misfit,
            },
            HunkError::TooManyLines => PatchError::TooManyLines { path: path() },
            HunkError::Stopped(stopped) => PatchError::Stopped(stopped),
        })
    }

    fn hold(&mut self, bytes: usize) -> Result<(), PatchError> {
        self.held += bytes;
        match bytes > CONTENT_BYTES || self.held > HELD_BYTES {
            true => Err(PatchError::TooLarge),
            false => Ok(()),
        }
    }
}

impl PlannedFileChange<'_> {
    /// Writes the new content beside the old one, and adds the remaining steps.
    fn stage(
        self,
        workspace: &Workspace,
        stop: &StopSign,
        steps: &mut Vec<PatchStep>,
        changes: &mut Vec<FileChange>,
    ) -> Result<(), PatchError> {
        let old = self.source.as_ref().and_then(|source| source.old.as_ref());
        let mut change = FileChange {
            path: self
                .source
                .as_ref()
                .map(|source| source.path.clone())
                .unwrap_or_default(),
            from: None,
            old: old.and_then(|old| old.text()).map(str::to_owned),
            previous_sha256: old.and_then(|old| old.sha256.clone()),
            new: self.content,
            kind: FileChangeKind::Deleted,
            sha256: None,
        };
        let mut target = None;
        if let Some(given) = self.target {
            let missing = IfMissing::CreateDirectories;
            let last_link = LastLink::Follow;
            let opening = WriteTargetRequest {
                given,
                wish: OldContentNeed::IfCheap,
                missing,
                last_link,
            };
            let mut new = WriteTarget::open(workspace, opening, stop)?;
            if new.old.is_some() {
                return Err(PatchError::Exists { path: new.path });
            }
            new.new_mode = self.mode;
            // A moved file keeps its mode and owner.
            new.like = old.map(|old| old.stat);
            target = Some(new);
        }
        match (target, self.source, &change.new) {
            (Some(target), source, Some(content)) => {
                change.kind = if source.is_some() {
                    FileChangeKind::Moved
                } else {
                    FileChangeKind::Added
                };
                change.from = source.is_some().then(|| std::mem::take(&mut change.path));
                change.path.clone_from(&target.path);
                let staged = target.stage(content.as_bytes(), stop)?;
                change.sha256 = Some(staged.sha256.clone());
                steps.push(PatchStep::Write(staged));
                steps.extend(source.map(|source| PatchStep::Remove(FileRemoval(source))));
            }
            (None, Some(source), Some(content)) => {
                change.kind = FileChangeKind::Updated;
                let staged = source.stage(content.as_bytes(), stop)?;
                change.sha256 = Some(staged.sha256.clone());
                steps.push(PatchStep::Write(staged));
            }
            (None, Some(source), None) => steps.push(PatchStep::Remove(FileRemoval(source))),
            (Some(_), _, None) | (None, None, _) => {}
        }
        changes.push(change);
        Ok(())
    }
}

enum PatchStep {
    Write(StagedFile),
    Remove(FileRemoval),
}

enum CompletedPatchStep {
    Written(WrittenFile),
    Removed(RemovedFile),
}

impl CompletedPatchStep {
    fn path(&self) -> String {
        match self {
            Self::Written(written) => written.target.path.clone(),
            Self::Removed(removed) => removed.path().to_owned(),
        }
    }

    fn durable(self) -> Result<(), WriteError> {
        match self {
            Self::Written(written) => written.durable,
            Self::Removed(removed) => removed.durable,
        }
    }

    fn undo(self) -> Result<(), WriteError> {
        match self {
            Self::Written(written) => written.undo(),
            Self::Removed(removed) => removed.undo(),
        }
    }
}

/// Makes all changes visible, one right after the other. If one fails, the earlier ones are undone in reverse order.
///
/// A file system has no transaction over several files, so a reader can see the change of one file before the next. All
/// content is already written beside the old files, and each step is a rename or a removal, so the interval is short. A
/// file that another program changed in between is not undone, since that would overwrite the other change; the result
/// lists such files.
fn commit(steps: Vec<PatchStep>, stop: &StopSign) -> Result<Option<PartialPatch>, WriteError> {
    let mut done = Vec::with_capacity(steps.len());
    for step in steps {
        let result = match step {
            PatchStep::Write(staged) => staged
                .commit(ReplaceCondition::Unchanged, stop)
                .map(CompletedPatchStep::Written),
            PatchStep::Remove(removal) => removal.commit(stop).map(CompletedPatchStep::Removed),
        };
        match result {
            Ok(step) => done.push(step),
            Err(reason) => {
                let undone = done
                    .into_iter()
                    .rev()
                    .map(|step| (step.path(), step.undo()));
                let changed: Vec<_> = undone
                    .filter(|(_, undone)| undone.is_err())
                    .map(|(path, _)| path)
                    .collect();
                return match changed.is_empty() {
                    true => Err(reason),
                    false => Ok(Some(PartialPatch { reason, changed })),
                };
            }
        }
    }
    done.into_iter().try_for_each(CompletedPatchStep::durable)?;
    Ok(None)
}
