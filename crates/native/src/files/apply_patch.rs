//! `files.apply_patch`: changes several files in one call, all of them or none.

mod hunks;
mod patch;
mod plan;
mod report;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, ToolFailure, ToolOutput,
};
use toolpost_processes::{StopSign, Workspace};

use self::{
    patch::{FilePatchAction, Patch},
    plan::PatchError,
    report::PatchResult,
};
use super::{PathChange, change_effects, declare, with_repositories};
use crate::workspace_tool::WorkspaceTool;

pub(super) struct ApplyPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// The patch: either a unified diff as `git diff` makes it, or the form between `*** Begin Patch` and
    /// `*** End Patch` with `*** Add File: PATH`, `*** Update File: PATH` (and `*** Move to: PATH`) and
    /// `*** Delete File: PATH`. Paths are relative to the workspace.
    patch: &'a str,
}

const ENVELOPE: &str = "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    run();\n+    run(1);\n*** \
                        Add File: NOTES.md\n+# Notes\n*** Delete File: old.txt\n*** End Patch\n";
const UNIFIED: &str = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -3,3 +3,3 @@\n fn main() {\n-    run();\n+    run(1);\n }\n";

impl WorkspaceTool for ApplyPatch {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, PatchResult>(
            "apply_patch",
            "Adds, changes, moves and deletes files as a patch says. Takes a unified diff (`---`, `+++`, `@@`) or the \
             form that begins with `*** Begin Patch`. Lines of context and removed lines must stand in the file \
             exactly; line numbers may be off, as long as the lines stand at one place only, so give about three lines \
             of context. Everything is checked before the first file is written: if one hunk does not fit, nothing is \
             changed and the error names the hunk and the line. The answer shows what changed, as diffs. For one small \
             change `edit_file` is simpler.",
            ResourceAccess::Write,
        );
        declaration.title = Some("Apply patch".to_owned());
        declaration.search_hint =
            "diff hunk unified change several files refactor add delete move".to_owned();
        declaration.input.examples =
            vec![json!({ "patch": ENVELOPE }), json!({ "patch": UNIFIED })];
        declaration.interface.safety.destructive = true;
        declaration.interface.rendering.subject_argument = None;
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        let patch = Patch::parse(arguments.patch)
            .map_err(|error| InputRefusal::invalid("/patch", error.to_string()))?;
        for path in patch.paths() {
            let requested = workspace
                .request_change(path)
                .map_err(|refusal| refusal.into_refusal_at("/patch"))?;
            if requested.names_directory() {
                let message = format!("`{path}` names a directory; a patch changes files");
                return Err(InputRefusal::invalid("/patch", message));
            }
        }
        Ok(())
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        let patch = Patch::parse(arguments.patch).ok()?;
        let mut effects = Effects::of(EffectClass::Write);
        for file in &patch.files {
            let new = |path| PathChange::content(path).with_directories(true);
            let gone = |path| PathChange::name(path).revealing();
            let (touch, second) = match &file.change {
                FilePatchAction::Add { .. } => (new(file.path), None),
                FilePatchAction::Update { move_to: None, .. } => {
                    (PathChange::content(file.path).revealing(), None)
                }
                FilePatchAction::Update {
                    move_to: Some(target),
                    ..
                } => (gone(file.path), Some(new(target))),
                FilePatchAction::Delete { .. } => (gone(file.path), None),
            };
            for touch in std::iter::once(touch).chain(second) {
                effects = change_effects(workspace, effects, touch)?;
            }
        }
        Some(with_repositories(workspace, effects))
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        let patch = Patch::parse(arguments.patch)
            .map_err(|error| ToolFailure::invalid(error.to_string()))?;
        let changes = plan::apply(workspace, &patch, stop).map_err(PatchError::into_failure)?;
        Ok(report::output(changes)?)
    }
}
