//! The result of `apply_patch`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::ToolOutput;
use toolpost_processes::shown;

use super::plan::{AppliedPatch, FileChange, FileChangeKind};
use crate::files::diff;

/// The most bytes of all diffs together.
const DIFF_BYTES: usize = 48 * 1024;

/// The files of the patch.
#[derive(Serialize, JsonSchema)]
pub(super) struct PatchResult {
    /// In the order of the patch.
    files: Vec<ChangedFile>,
}

#[derive(Serialize, JsonSchema)]
struct ChangedFile {
    /// The file, relative to the workspace and without links.
    path: String,
    /// What happened to it.
    change: FileChangeKind,
    /// Where it was before it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// SHA-256 of its content now.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// SHA-256 of its content before.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_sha256: Option<String>,
    /// Lines added.
    #[serde(skip_serializing_if = "Option::is_none")]
    added_lines: Option<u64>,
    /// Lines removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_lines: Option<u64>,
}

/// The output of the call.
pub(super) fn output(applied: AppliedPatch) -> Result<ToolOutput, serde_json::Error> {
    let AppliedPatch { changes, stuck } = applied;
    let mut list = String::new();
    let mut diffs = String::new();
    let mut files = Vec::new();
    for change in changes {
        let stays = stuck.as_ref().is_none_or(|stuck| stuck.touches(&change));
        let old = change.old.as_deref();
        let new = change.new.as_deref();
        let whole = change.kind == FileChangeKind::Added;
        let diff = diff::unified(&change.path, if whole { None } else { old }, new);
        let counts = diff.as_ref().map_or(String::new(), |diff| {
            format!(" (+{} -{})", diff.added, diff.removed)
        });
        // Writing to a `String` cannot fail.
        let _ = match (stays, &change.from) {
            (false, _) => writeln!(list, "not changed: {}", shown(&change.path)),
            (true, None) => writeln!(
                list,
                "{} {}{counts}",
                change.kind.as_str(),
                shown(&change.path)
            ),
            (true, Some(from)) => {
                writeln!(
                    list,
                    "moved {} to {}{counts}",
                    shown(from),
                    shown(&change.path)
                )
            }
        };
        // For a new or deleted file a diff would only repeat the patch.
        let shows = matches!(change.kind, FileChangeKind::Updated | FileChangeKind::Moved) && stays;
        if let Some(diff) = diff.as_ref().filter(|_| shows) {
            match diffs.len() + diff.text.len() > DIFF_BYTES {
                true => {
                    let _ = writeln!(diffs, "… [diff of {} not shown]", shown(&change.path));
                }
                false => diffs.push_str(&diff.text),
            }
        }
        files.push(changed_file(change, stays, diff));
    }
    let count = files.len();
    let summary = match &stuck {
        None => format!(
            "patched {count} {}",
            if count == 1 { "file" } else { "files" }
        ),
        Some(stuck) => format!(
            "patched in part: {}; {} could not be restored",
            stuck.reason,
            stuck
                .changed
                .iter()
                .map(|path| format!("`{}`", shown(path)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    let text = if stuck.is_some() {
        format!("{summary}\n{list}{diffs}")
    } else {
        format!("{list}{diffs}")
    };
    let structured = serde_json::to_value(PatchResult { files })?;
    let output = ToolOutput::text(text)
        .with_summary(summary)
        .with_structured(structured);
    Ok(ToolOutput {
        partial: stuck.is_some(),
        ..output
    })
}

fn changed_file(change: FileChange, stays: bool, diff: Option<diff::Diff>) -> ChangedFile {
    let kind = match stays {
        true => change.kind,
        false => FileChangeKind::Unchanged,
    };
    let diff = diff.filter(|_| stays);
    ChangedFile {
        path: change.path,
        change: kind,
        from: change.from,
        sha256: change.sha256.filter(|_| stays),
        previous_sha256: change.previous_sha256,
        added_lines: diff.as_ref().map(|diff| diff.added),
        removed_lines: diff.map(|diff| diff.removed),
    }
}

impl FileChangeKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Moved => "moved",
            Self::Deleted => "deleted",
            Self::Unchanged => "unchanged",
        }
    }
}

impl super::plan::PartialPatch {
    fn touches(&self, change: &FileChange) -> bool {
        self.changed
            .iter()
            .any(|path| *path == change.path || Some(path) == change.from.as_ref())
    }
}
