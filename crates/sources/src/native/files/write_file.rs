//! `files.write_file`: replaces a whole file, or makes a new one, in one step that is seen wholly or not at all.

mod error;
mod made_directories;
mod old_file;
mod replace;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Access, CallInput, Declaration, EffectClass, Effects, Refusal, Tool, ToolCall, ToolFailure, ToolOutput,
};

use self::{error::WriteError, replace::Written};
use super::{
    arguments, checked_arguments, declare, key,
    names::shown,
    worker::on_worker,
    workspace::{Found, Workspace},
};

/// Most content taken in one call.
const CONTENT_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct WriteFile {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
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
struct WriteResult {
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
}

impl WriteFile {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for WriteFile {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, WriteResult>(
            "write_file",
            "Writes a text file, replacing it whole if it exists. Readers see the old content or the new, never a \
             mix. Give `expected_sha256` to write only over the content you have read.",
            Access::Write,
        );
        declaration.title = Some("Write file".to_owned());
        declaration.search_hint = "create save store overwrite replace".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "notes.md", "content": "# Notes\n" }),
            json!({ "path": "src/new/mod.rs", "content": "", "create_directories": true }),
        ];
        // The old content is gone afterwards.
        declaration.interface.safety.destructive = true;
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), Refusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        let requested = self.workspace.request(arguments.path).map_err(|refusal| refusal.into_refusal())?;
        if requested.names_directory() {
            let message = format!("`{}` names a directory; name the file to write", shown(arguments.path));
            return Err(Refusal::invalid("/path", message));
        }
        if arguments.content.len() > CONTENT_BYTES {
            let message =
                format!("the content has {} bytes, the limit is {CONTENT_BYTES}", arguments.content.len());
            return Err(Refusal::invalid("/content", message));
        }
        match arguments.expected_sha256 {
            Some(digest) if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let message =
                    format!("`{}` is not a SHA-256, which has 64 hexadecimal digits", shown(digest));
                Err(Refusal::invalid("/expected_sha256", message))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let arguments: Arguments<'_> = arguments(input).ok()?;
        let requested = self.workspace.request(arguments.path).ok()?;
        let place = match self.workspace.locate(&requested) {
            Ok(located) => match &located.found {
                // Making directories changes the topmost of them, and what is beneath is covered by that.
                Found::Missing { rest, .. } if arguments.create_directories && rest.len() > 1 => {
                    located.path.join(&rest[0])
                }
                Found::Missing { .. } | Found::Entry { .. } | Found::Directory(_) => located.whole_path(),
            },
            Err(_) => requested.lexical(),
        };
        let effects = Effects::of(EffectClass::Write).using(key(&self.workspace, &place), Access::Write);
        // A second run with `expected_sha256` meets its own content and fails.
        Some(if arguments.expected_sha256.is_none() { effects.idempotent() } else { effects })
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let written = replace::write(&workspace, &arguments, stop).map_err(WriteError::into_failure)?;
            Ok(output(written, arguments.content.len() as u64)?)
        })
        .await
    }
}

fn output(written: Written, bytes: u64) -> Result<ToolOutput, serde_json::Error> {
    let new = if written.created { " (new)" } else { "" };
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    let summary = format!("wrote {bytes} {unit} to {}{new}", shown(&written.path));
    let result = WriteResult {
        path: written.path,
        bytes,
        created: written.created,
        sha256: written.sha256,
        previous_sha256: written.previous_sha256,
    };
    Ok(ToolOutput::text(summary.clone())
        .with_summary(summary)
        .with_structured(serde_json::to_value(&result)?))
}
