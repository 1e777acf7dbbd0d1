//! `files.write_file`: replaces a file, or creates one, in one step that readers see as a whole or not at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, ToolFailure, ToolOutput,
};
use toolpost_processes::{LastLink, StopSign, Workspace, shown};

use super::{
    PathChange, change_effects, check_digest, declare, diff,
    writing::{
        CONTENT_BYTES, IfMissing, OldContentNeed, ReplaceCondition, WriteError, WriteTarget,
        WriteTargetRequest, WrittenFile,
    },
};
use crate::workspace_tool::WorkspaceTool;

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// Path of the file, relative to the workspace.
    path: &'a str,
    /// The whole new content.
    content: &'a str,
    /// Make the directories above the file where they are missing.
    #[serde(default)]
    create_directories: bool,
    /// Write only if the file's content still has this SHA-256 (64 hexadecimal digits).
    #[serde(default)]
    expected_sha256: Option<&'a str>,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WriteResult")]
struct WriteFileResult {
    /// The file, relative to the workspace and without links.
    path: String,
    /// Size of the new content.
    bytes: u64,
    /// The file did not exist before.
    created: bool,
    /// SHA-256 of the new content.
    sha256: String,
    /// SHA-256 of the content that was replaced, where it was worth reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_sha256: Option<String>,
    /// Lines added, where old and new were text small enough to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    added_lines: Option<u64>,
    /// Lines removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_lines: Option<u64>,
}

impl WorkspaceTool for WriteFile {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, WriteFileResult>(
            "write_file",
            "Writes a text file, replacing it whole if it exists; for a change in a file use `edit_file`. Missing \
             directories are made with `create_directories`. Give the `sha256` that `read_file` told as \
             `expected_sha256` to write only over the content you have read. Of a file that existed the answer shows \
             what changed, as a diff.",
            ResourceAccess::Write,
        );
        declaration.title = Some("Write file".to_owned());
        declaration.search_hint = "create save store overwrite replace".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "notes.md", "content": "# Notes\n" }),
            json!({ "path": "src/new/mod.rs", "content": "", "create_directories": true }),
        ];
        // The old content is lost.
        declaration.interface.safety.destructive = true;
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        let requested = workspace.check_change(arguments.path)?;
        if requested.names_directory() {
            let message = format!(
                "`{}` names a directory; name the file to write",
                shown(arguments.path)
            );
            return Err(InputRefusal::invalid("/path", message));
        }
        if arguments.content.len() > CONTENT_BYTES {
            let message = format!(
                "the content has {} bytes, the limit is {CONTENT_BYTES}",
                arguments.content.len()
            );
            return Err(InputRefusal::invalid("/content", message));
        }
        check_digest(arguments.expected_sha256)
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        let touch =
            PathChange::content(arguments.path).with_directories(arguments.create_directories);
        // A digest that matches reveals the old content.
        let touch = if arguments.expected_sha256.is_some() {
            touch.revealing()
        } else {
            touch
        };
        let effects = change_effects(workspace, Effects::of(EffectClass::Write), touch)?;
        // A second run with `expected_sha256` finds its own content and fails.
        Some(if arguments.expected_sha256.is_none() {
            effects.idempotent()
        } else {
            effects
        })
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        let written = write(workspace, arguments, stop).map_err(WriteError::into_failure)?;
        Ok(output(written, arguments.content)?)
    }
}

/// Writes the file. Nothing is visible until the content takes the name; new directories are removed on failure.
fn write(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<WrittenFile, WriteError> {
    let (wish, taking) = match arguments.expected_sha256 {
        Some(_) => (OldContentNeed::Digest, ReplaceCondition::Unchanged),
        None => (OldContentNeed::IfCheap, ReplaceCondition::Any),
    };
    let missing = match arguments.create_directories {
        true => IfMissing::CreateDirectories,
        false => IfMissing::Create,
    };
    let opening = WriteTargetRequest {
        given: arguments.path,
        wish,
        missing,
        last_link: LastLink::Follow,
    };
    let target = WriteTarget::open(workspace, opening, stop)?;
    target.require(arguments.expected_sha256)?;
    let mut written = target
        .stage(arguments.content.as_bytes(), stop)?
        .commit(taking, stop)?;
    std::mem::replace(&mut written.durable, Ok(()))?;
    Ok(written)
}

fn output(written: WrittenFile, content: &str) -> Result<ToolOutput, serde_json::Error> {
    let created = written.created();
    let path = written.target.path;
    let bytes = content.len() as u64;
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    let new = if created { " (new)" } else { "" };
    let summary = format!("wrote {bytes} {unit} to {}{new}", shown(&path));
    // For a new file a diff would only repeat the content.
    let old = written.target.old.as_ref().and_then(|old| old.text());
    let diff = old.and_then(|old| diff::unified(&path, Some(old), Some(content)));
    let text = match &diff {
        Some(diff) if diff.text.is_empty() => format!("{summary}, as it was before"),
        Some(diff) => format!("{summary}\n{}", diff.text),
        None => summary.clone(),
    };
    let result = WriteFileResult {
        path,
        bytes,
        created,
        sha256: written.sha256,
        previous_sha256: written.target.old.and_then(|old| old.sha256),
        added_lines: diff.as_ref().map(|diff| diff.added),
        removed_lines: diff.as_ref().map(|diff| diff.removed),
    };
    Ok(ToolOutput::text(text)
        .with_summary(summary)
        .with_structured(serde_json::to_value(&result)?))
}
