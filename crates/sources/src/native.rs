//! The native tools: code of this host, so what they say of their effects is taken at its word.

mod echo;
mod files;
mod search;

use std::{fmt, sync::Arc};

use toolpost_model::DynTool;

pub use files::{PatternError, Protection, Workspace, WorkspaceError};

/// Every native tool, working on `workspace`.
pub fn native_tools(workspace: Arc<Workspace>) -> Vec<Arc<dyn DynTool>> {
    let mut tools = files::tools(workspace.clone());
    tools.extend(search::tools(workspace));
    tools.push(Arc::new(echo::tool()));
    tools
}

/// Unwraps what was parsed from a literal in this crate. A bad literal is a mistake of ours that the first test
/// run shows, and `Tool::declaration` has no way to report it.
#[expect(clippy::expect_used, reason = "only literals of this crate pass through, and every one is tested")]
fn literal<T, E: fmt::Debug>(parsed: Result<T, E>) -> T {
    parsed.expect("a literal of this crate is well formed")
}
