//! `files.delete_file`: takes a file away, or a directory with all that is in it. Never follows a link.

mod sweep;

use std::{path::Path, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, RiskLevel, Tool,
    ToolCall, ToolFailure, ToolOutput,
};
use toolpost_processes::{
    ExistingPathEntry, PathError, StopSign, Workspace, cautions_beneath, on_worker, relative,
    require_all, shown,
};

use self::sweep::DeleteError;
use super::{
    Touch, arguments, change_effects, checked_arguments, declare, entry_type::EntryType,
    with_caution,
};

pub(super) struct DeleteFile {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
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

impl DeleteFile {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for DeleteFile {
    fn declaration(&self) -> Declaration {
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

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        self.workspace.check_change(arguments.path).map(|_| ())
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let arguments: Arguments<'_> = arguments(input).ok()?;
        let touch = Touch::name(arguments.path);
        let effects = change_effects(&self.workspace, Effects::of(EffectClass::Write), touch)?;
        match ExistingPathEntry::locate(&self.workspace, arguments.path, |_| false) {
            Ok(named) if named.is_directory() && arguments.recursive => {
                let place = (&named.parent, named.name.as_os_str());
                let found = cautions_beneath(&self.workspace, place, &[&named.place]);
                Some(found.into_iter().fold(effects, |effects, one| {
                    with_caution(&self.workspace, effects, one)
                }))
            }
            Ok(_) | Err(_) => Some(effects),
        }
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(&self.workspace, call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let may_see = |place: &Path| stop.may(&workspace, place, ResourceAccess::Read);
            let named = ExistingPathEntry::locate(&workspace, arguments.path, may_see)
                .map_err(PathError::into_failure)?;
            stop.as_decided_beneath(&workspace, (arguments.path, &named), &[&named.place])
                .and_then(|()| may_delete(&workspace, &arguments, &named, stop))
                .map_err(PathError::into_failure)?;
            let deleted = sweep::delete(&workspace, &named, &arguments, stop)
                .map_err(DeleteError::into_failure)?;
            let result = DeleteResult {
                path: relative(&named.place).0.into_owned(),
                entry_type: EntryType::of(named.file_type()),
                deleted,
            };
            let more = if deleted > 1 {
                format!(" with {} things in it", deleted - 1)
            } else {
                String::new()
            };
            let summary = format!("deleted {}{more}", shown(&result.path));
            let structured = serde_json::to_value(&result)?;
            Ok(ToolOutput::text(summary.clone())
                .with_summary(summary)
                .with_structured(structured))
        })
        .await
    }
}

/// A directory goes only if the call may also read all that is in it: how much that was is told.
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
