//! `files.edit_file`: replaces an exact text in a file.

mod replacement;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, ToolFailure, ToolOutput,
};
use toolpost_processes::{LastLink, StopSign, Workspace, shown};

use self::replacement::{
    EditMismatch, EditedText, ExchangeError, ReplacedOccurrences, TextReplacement,
};
use super::{
    PathChange, change_effects, check_digest, declare, diff,
    writing::{
        CONTENT_BYTES, IfMissing, OldContentNeed, ReplaceCondition, WriteError, WriteTarget,
        WriteTargetRequest, WrittenFile,
    },
};
use crate::workspace_tool::WorkspaceTool;

pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// Path of the file, relative to the workspace.
    path: &'a str,
    /// The text to replace, exactly as it stands in the file and without line numbers. It must occur once, unless
    /// `replace_all` is set: take enough lines around the place to make it unique.
    old_string: &'a str,
    /// What stands there afterwards.
    new_string: &'a str,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
    /// Edit only if the file's content still has this SHA-256 (64 hexadecimal digits), as `read_file` told it.
    #[serde(default)]
    expected_sha256: Option<&'a str>,
}

/// What was changed.
#[derive(Serialize, JsonSchema)]
struct EditResult {
    /// The file, relative to the workspace and without links.
    path: String,
    /// How often the text was replaced.
    replacements: u64,
    /// The lines where the replaced texts began, at most 100.
    lines: Vec<u64>,
    /// Size of the new content.
    bytes: u64,
    /// SHA-256 of the new content.
    sha256: String,
    /// SHA-256 of the content before.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_sha256: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum EditError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("`old_string` {mismatch} in `{}`", shown(.path))]
    Mismatch {
        path: String,
        mismatch: EditMismatch,
    },
    #[error("`{}` would have {bytes} bytes, the limit is {CONTENT_BYTES}", shown(.path))]
    Grows { path: String, bytes: u64 },
}

impl EditError {
    fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string()).untouched();
        match self {
            Self::Write(error) => error.into_failure(),
            Self::Mismatch { mismatch, .. } => failure.code(mismatch.code()).hint(mismatch.hint()),
            Self::Grows { .. } => failure.code("too_large"),
        }
    }
}

impl WorkspaceTool for EditFile {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, EditResult>(
            "edit_file",
            "Replaces `old_string` by `new_string` in a text file and shows the change as a diff. `old_string` must \
             match exactly, blanks included, and occur only once, or `replace_all` must be set; otherwise nothing is \
             changed and the error tells the lines in question. Read the file first and leave out the line numbers. \
             Line endings, mode and encoding of the file are kept, so write plain newlines.",
            ResourceAccess::Write,
        );
        declaration.title = Some("Edit file".to_owned());
        declaration.search_hint =
            "change modify replace substitute str_replace update rename".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "src/main.rs", "old_string": "let limit = 10;", "new_string": "let limit = 20;" }),
            json!({ "path": "README.md", "old_string": "colour", "new_string": "color", "replace_all": true }),
        ];
        declaration.interface.safety.destructive = true;
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        let requested = workspace.check_change(arguments.path)?;
        if requested.names_directory() {
            let message = format!(
                "`{}` names a directory; name the file to edit",
                shown(arguments.path)
            );
            return Err(InputRefusal::invalid("/path", message));
        }
        if arguments.old_string.is_empty() {
            let message = "the text to replace is empty; `write_file` makes a new file";
            return Err(InputRefusal::invalid("/old_string", message));
        }
        if arguments.old_string == arguments.new_string {
            let message = "the new text is the same as the old one, so there is nothing to edit";
            return Err(InputRefusal::invalid("/new_string", message));
        }
        check_digest(arguments.expected_sha256)
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        change_effects(
            workspace,
            Effects::of(EffectClass::Write),
            PathChange::content(arguments.path).revealing(),
        )
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        let (written, edited) =
            edit(workspace, arguments, stop).map_err(EditError::into_failure)?;
        Ok(output(written, edited)?)
    }
}

fn edit(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<(WrittenFile, EditedText), EditError> {
    let opening = WriteTargetRequest {
        given: arguments.path,
        wish: OldContentNeed::Content,
        missing: IfMissing::Fail,
        last_link: LastLink::Follow,
    };
    let target = WriteTarget::open(workspace, opening, stop)?;
    target.require(arguments.expected_sha256)?;
    let path = target.path.clone();
    let text = target.old.as_ref().and_then(|old| old.text());
    let text = text.ok_or_else(|| WriteError::NotText { path: path.clone() })?;
    let which = if arguments.replace_all {
        ReplacedOccurrences::All
    } else {
        ReplacedOccurrences::Only
    };
    let exchange = TextReplacement {
        old: arguments.old_string,
        new: arguments.new_string,
        which,
        most: CONTENT_BYTES,
    };
    let edited =
        replacement::replace(text, &exchange, &|| stop.check()).map_err(|error| match error {
            ExchangeError::Mismatch(mismatch) => EditError::Mismatch { path, mismatch },
            ExchangeError::Grows { bytes } => EditError::Grows { path, bytes },
            ExchangeError::Stopped(stopped) => EditError::Write(WriteError::Stopped(stopped)),
        })?;
    let mut written = target
        .stage(edited.text.as_bytes(), stop)?
        .commit(ReplaceCondition::Unchanged, stop)?;
    std::mem::replace(&mut written.durable, Ok(()))?;
    Ok((written, edited))
}

fn output(written: WrittenFile, edited: EditedText) -> Result<ToolOutput, serde_json::Error> {
    let path = written.target.path;
    let count = edited.count;
    let summary = match edited.lines.as_slice() {
        [line] if count == 1 => format!("edited {} at line {line}", shown(&path)),
        _ => format!("edited {} in {count} places", shown(&path)),
    };
    let old = written.target.old.as_ref().and_then(|old| old.text());
    let diff = old.and_then(|old| diff::unified(&path, Some(old), Some(&edited.text)));
    let text = match diff {
        Some(diff) => format!("{summary}\n{}", diff.text),
        None => summary.clone(),
    };
    let result = EditResult {
        path,
        replacements: count,
        lines: edited.lines,
        bytes: edited.text.len() as u64,
        sha256: written.sha256,
        previous_sha256: written.target.old.and_then(|old| old.sha256),
    };
    Ok(ToolOutput::text(text)
        .with_summary(summary)
        .with_structured(serde_json::to_value(&result)?))
}
