//! `files.move_file`: renames or moves a file or directory.

mod rename;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, ToolFailure, ToolOutput,
};
use toolpost_processes::{
    ExistingPathEntry, StopSign, Workspace, cautions_beneath, relative, shown,
};

use self::rename::MoveError;
use super::{PathChange, change_effects, declare, entry_type::EntryType, with_cautions};
use crate::workspace_tool::WorkspaceTool;

pub(super) struct MoveFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
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

impl WorkspaceTool for MoveFile {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
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

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        let at = |at: &'static str| {
            move |refusal: toolpost_processes::PathRefusal| refusal.into_refusal_at(at)
        };
        let from = workspace
            .request_change(arguments.from)
            .map_err(at("/from"))?;
        let to = workspace.request_change(arguments.to).map_err(at("/to"))?;
        match from.lexical() == to.lexical() {
            true => Err(InputRefusal::invalid(
                "/to",
                "the new path is the old one, so there is nothing to move",
            )),
            false => Ok(()),
        }
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        let effects = Effects::of(EffectClass::Write);
        let effects = change_effects(
            workspace,
            effects,
            PathChange::name(arguments.from).revealing(),
        )?;
        let to = PathChange::name(arguments.to).with_directories(arguments.create_directories);
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
        Some(with_cautions(workspace, effects, found))
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        let moved = rename::rename(workspace, arguments, stop).map_err(MoveError::into_failure)?;
        let result = MoveResult {
            from: relative(&moved.from).0.into_owned(),
            to: relative(&moved.to).0.into_owned(),
            entry_type: EntryType::of(moved.file_type),
            overwritten: moved.overwritten,
        };
        let over = if result.overwritten {
            ", replacing the old file"
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
    }
}
