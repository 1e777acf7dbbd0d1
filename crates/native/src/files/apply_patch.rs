//! `files.apply_patch`: changes several files at once, all of them or none.

mod hunks;
mod patch;
mod plan;
mod report;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, EffectClass, Effects, InputRefusal, ResourceAccess, Tool, ToolCall,
    ToolFailure, ToolOutput,
};
use toolpost_processes::{Workspace, on_worker};

use self::{
    patch::{FilePatchAction, Patch},
    plan::PatchError,
    report::PatchResult,
};
use super::{Touch, arguments, change_effects, checked_arguments, declare, with_repositories};

pub(super) struct ApplyPatch {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
    /// The patch: either a unified diff as `git diff` makes it, or the form between `*** Begin Patch` and
    /// `*** End Patch` with `*** Add File: PATH`, `*** Update File: PATH` (and `*** Move to: PATH`) and
    /// `*** Delete File: PATH`. Paths are relative to the workspace.
    patch: &'a str,
}

impl ApplyPatch {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

const ENVELOPE: &str = "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    run();\n+    run(1);\n*** \
                        Add File: NOTES.md\n+# Notes\n*** Delete File: old.txt\n*** End Patch\n";
const UNIFIED: &str = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -3,3 +3,3 @@\n fn main() {\n-    run();\n+    run(1);\n }\n";

impl Tool for ApplyPatch {
    fn declaration(&self) -> Declaration {
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

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        let patch = Patch::parse(arguments.patch)
            .map_err(|error| InputRefusal::invalid("/patch", error.to_string()))?;
        for path in patch.paths() {
            let requested = self
                .workspace
                .request_change(path)
                .map_err(|refusal| refusal.into_refusal_at("/patch"))?;
            if requested.names_directory() {
                let message = format!("`{path}` names a directory; a patch changes files");
                return Err(InputRefusal::invalid("/patch", message));
            }
        }
        Ok(())
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let arguments: Arguments<'_> = arguments(input).ok()?;
        let patch = Patch::parse(arguments.patch).ok()?;
        let mut effects = Effects::of(EffectClass::Write);
        for file in &patch.files {
            let new = |path| Touch::content(path).with_directories(true);
            let gone = |path| Touch::name(path).revealing();
            let (touch, second) = match &file.change {
                FilePatchAction::Add { .. } => (new(file.path), None),
                FilePatchAction::Update { move_to: None, .. } => {
                    (Touch::content(file.path).revealing(), None)
                }
                FilePatchAction::Update {
                    move_to: Some(target),
                    ..
                } => (gone(file.path), Some(new(target))),
                FilePatchAction::Delete { .. } => (gone(file.path), None),
            };
            for touch in std::iter::once(touch).chain(second) {
                effects = change_effects(&self.workspace, effects, touch)?;
            }
        }
        Some(with_repositories(&self.workspace, effects))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(&self.workspace, call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let patch = Patch::parse(arguments.patch)
                .map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let changes =
                plan::apply(&workspace, &patch, stop).map_err(PatchError::into_failure)?;
            Ok(report::output(changes)?)
        })
        .await
    }
}
