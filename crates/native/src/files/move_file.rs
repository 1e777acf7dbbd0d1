//! `files.move_file`: gives a file or directory another name or place.

mod rename;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, Tool, ToolCall,
    ToolFailure, ToolOutput,
};
use toolpost_processes::{
    ExistingPathEntry, Workspace, cautions_beneath, on_worker, relative, shown,
};

use self::rename::MoveError;
use super::{
    Touch, arguments, change_effects, checked_arguments, declare, entry_type::EntryType,
    with_caution,
};

pub(super) struct MoveFile {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
    /// Path of the file, directory or link to move, relative to the workspace.
    from: &'a str,
    /// Its whole new path, name included, relative to the workspace.
    to: &'a str,
    /// Replace a file that has the new path. Directories are never replaced.
    #[serde(default)]
    overwrite: bool,
    /// Make the directories above the new path where they are missing.
    #[serde(default)]
    create_directories: bool,
}

/// What was moved.
#[derive(Serialize, JsonSchema)]
struct MoveResult {
    /// Where it was, without links.
    from: String,
    /// Where it is now, without links.
    to: String,
    /// What it is.
    #[serde(rename = "type")]
    entry_type: EntryType,
    /// A file that had the new path is gone.
    overwritten: bool,
}

impl MoveFile {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for MoveFile {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, MoveResult>(
            "move_file",
            "Moves or renames a file or a directory with all that is in it. `to` is the whole new path: to move `a.txt` \
             into `docs`, say `docs/a.txt`. Nothing that exists is replaced unless `overwrite` is set, and a directory \
             never. A link is moved itself, not what it leads to.",
            ResourceAccess::Write,
        );
        declaration.title = Some("Move file".to_owned());
        declaration.search_hint = "rename mv relocate".to_owned();
        declaration.input.examples = vec![
            json!({ "from": "notes.txt", "to": "docs/notes.md" }),
            json!({ "from": "src/old", "to": "src/new/name", "create_directories": true }),
        ];
        declaration.interface.safety.destructive = true;
        declaration.interface.rendering.subject_argument = Some("from".to_owned());
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        let at = |at: &'static str| {
            move |refusal: toolpost_processes::PathRefusal| refusal.into_refusal_at(at)
        };
        let from = self
            .workspace
            .request_change(arguments.from)
            .map_err(at("/from"))?;
        let to = self
            .workspace
            .request_change(arguments.to)
            .map_err(at("/to"))?;
        match from.lexical() == to.lexical() {
            true => Err(InputRefusal::invalid(
                "/to",
                "the new path is the old one, so there is nothing to move",
            )),
            false => Ok(()),
        }
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let arguments: Arguments<'_> = arguments(input).ok()?;
        let workspace = &*self.workspace;
        let effects = Effects::of(EffectClass::Write);
        let effects = change_effects(workspace, effects, Touch::name(arguments.from).revealing())?;
        let to = Touch::name(arguments.to).with_directories(arguments.create_directories);
        let effects = change_effects(workspace, effects, to)?;
        let Ok(from) = ExistingPathEntry::locate(workspace, arguments.from, |_| false) else {
            return Some(effects);
        };
        if !from.is_directory() {
            return Some(effects);
        }
        let requested = workspace.request(arguments.to).ok()?;
        let to = workspace
            .locate_name(&requested)
            .map_or_else(|_| requested.lexical(), |to| to.whole_path());
        let found = cautions_beneath(workspace, (&from.parent, &from.name), &[&from.place, &to]);
        Some(found.into_iter().fold(effects, |effects, one| {
            with_caution(workspace, effects, one)
        }))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(&self.workspace, call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let moved =
                rename::rename(&workspace, &arguments, stop).map_err(MoveError::into_failure)?;
            let result = MoveResult {
                from: relative(&moved.from).0.into_owned(),
                to: relative(&moved.to).0.into_owned(),
                entry_type: EntryType::of(moved.file_type),
                overwritten: moved.overwritten,
            };
            let over = if result.overwritten {
                ", replacing what was there"
            } else {
                ""
            };
            let summary = format!(
                "moved {} to {}{over}",
                shown(&result.from),
                shown(&result.to)
            );
            let structured = serde_json::to_value(&result)?;
            Ok(ToolOutput::text(summary.clone())
                .with_summary(summary)
                .with_structured(structured))
        })
        .await
    }
}
