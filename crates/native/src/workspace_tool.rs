//! The common form of the tools that work on one workspace and on its threads: files and search.

use std::{marker::PhantomData, sync::Arc};

use serde::Deserialize;
use toolpost_model::{
    CallInput, Declaration, DynTool, Effects, InputRefusal, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_processes::{StopSign, Workspace, on_worker};

use super::arguments::{checked_arguments, read_arguments};

/// A tool that works on one workspace and on its threads.
pub(super) trait WorkspaceTool: Send + Sync + 'static {
    type Arguments<'a>: Deserialize<'a>;

    fn declaration(workspace: &Workspace) -> Declaration;

    fn check(workspace: &Workspace, arguments: &Self::Arguments<'_>) -> Result<(), InputRefusal>;

    fn effects(workspace: &Workspace, arguments: &Self::Arguments<'_>) -> Option<Effects>;

    /// Runs the tool, on a thread of the workspace.
    fn run(
        workspace: &Workspace,
        arguments: &Self::Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure>;
}

/// The tool `T` on one workspace.
pub(super) fn on_workspace<T: WorkspaceTool>(workspace: &Arc<Workspace>) -> Arc<dyn DynTool> {
    Arc::new(WorkspaceToolAdapter::<T> {
        workspace: Arc::clone(workspace),
        tool: PhantomData,
    })
}

struct WorkspaceToolAdapter<T> {
    workspace: Arc<Workspace>,
    tool: PhantomData<T>,
}

impl<T: WorkspaceTool> Tool for WorkspaceToolAdapter<T> {
    fn declaration(&self) -> Declaration {
        T::declaration(&self.workspace)
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        T::check(&self.workspace, &checked_arguments(input)?)
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        T::effects(&self.workspace, &read_arguments(input).ok()?)
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = Arc::clone(&self.workspace);
        let input = call.input;
        on_worker(&self.workspace, call.context, move |stop| {
            T::run(&workspace, &read_arguments(&input)?, stop)
        })
        .await
    }
}
