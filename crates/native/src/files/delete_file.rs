//! `files.delete_file`: deletes a file, or a directory with everything in it. It never follows a link.

mod sweep;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, RiskLevel, ToolFailure,
    ToolOutput,
};
use toolpost_processes::{
    ExistingPathEntry, PathError, StopSign, Workspace, cautions_beneath, relative, require_all,
    shown,
};

use self::sweep::DeleteError;
use super::{PathChange, change_effects, declare, entry_type::EntryType, with_cautions};
use crate::workspace_tool::WorkspaceTool;

pub(super) struct DeleteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// Path of the file, directory or link to delete, relative to the workspace.
    path: &'a str,
    /// Delete a directory with all that is in it.
    #[serde(default)]
    recursive: bool,
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
struct DeleteResult {
    /// What is gone, relative to the workspace.
    path: String,
    /// What it was.
    #[serde(rename = "type")]
    entry_type: EntryType,
    /// How many files, links and directories are gone, itself included.
    deleted: u64,
}

impl WorkspaceTool for DeleteFile {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, DeleteResult>(
            "delete_file",
            "Deletes a file, a link or an empty directory; with `recursive` a directory and all that is in it. There is \
             no way back. A link is deleted itself, not what it leads to. The roots of the workspace cannot be deleted.",
            ResourceAccess::Write,
        );
        declaration.title = Some("Delete file".to_owned());
        declaration.search_hint = "remove rm rmdir unlink erase".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "old.txt" }),
            json!({ "path": "target/tmp", "recursive": true }),
        ];
        declaration.interface.safety.destructive = true;
        declaration.interface.permission.risk = RiskLevel::High;
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        workspace.check_change(arguments.path).map(|_| ())
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        let touch = PathChange::name(arguments.path);
        let effects = change_effects(workspace, Effects::of(EffectClass::Write), touch)?;
        match ExistingPathEntry::locate(workspace, arguments.path, |_| false) {
            Ok(named) if named.is_directory() && arguments.recursive => {
                let place = (&named.parent, named.name.as_os_str());
                let found = cautions_beneath(workspace, place, &[&named.place]);
                Some(with_cautions(workspace, effects, found))
            }
            Ok(_) | Err(_) => Some(effects),
        }
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        let may_see = |place: &Path| stop.may(workspace, place, ResourceAccess::Read);
        let named = ExistingPathEntry::locate(workspace, arguments.path, may_see)
            .map_err(PathError::into_failure)?;
        stop.as_decided_beneath(workspace, (arguments.path, &named), &[&named.place])
            .and_then(|()| may_delete(workspace, arguments, &named, stop))
            .map_err(PathError::into_failure)?;
        let deleted =
            sweep::delete(workspace, &named, arguments, stop).map_err(DeleteError::into_failure)?;
        let result = DeleteResult {
            path: relative(&named.place).0.into_owned(),
            entry_type: EntryType::of(named.file_type()),
            deleted,
        };
        let more = if deleted > 1 {
            format!(" with {} entries in it", deleted - 1)
        } else {
            String::new()
        };
        let summary = format!("deleted {}{more}", shown(&result.path));
        let structured = serde_json::to_value(&result)?;
        Ok(ToolOutput::text(summary.clone())
            .with_summary(summary)
            .with_structured(structured))
    }
}

/// Refuses to delete a directory with entries that the call may not read, because the result contains their number.
fn may_delete(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    named: &ExistingPathEntry,
    stop: &StopSign,
) -> Result<(), PathError> {
    let given = arguments.path;
    match named.is_directory() && arguments.recursive {
        true => {
            let uses = [
                (&*named.place, ResourceAccess::Read),
                (&named.place, ResourceAccess::Write),
            ];
            require_all(workspace, (given, named), &uses, stop)
        }
        false => stop.require(workspace, (given, &named.place), ResourceAccess::Write),
    }
}
