//! The native tools: code of this host, so what they say of their effects is taken at its word.

mod children;
mod code;
mod command;
mod echo;
mod environment;
mod files;
mod shell;

use std::{fmt, path::PathBuf, sync::Arc};

use toolpost_model::{DynTool, ToolSet};
use toolpost_sandbox::Launcher;

pub use self::{
    children::ChildSettings,
    code::{CodeSettings, code_worker_if_asked},
    command::{
        CommandDeclaration, CommandError, CommandOutput, CommandParameter, CommandProblem, ParameterType,
    },
    environment::{ChildEnvironment, EnvironmentRefusal, HostEnvironment},
    files::{Workspace, WorkspaceError},
    shell::SpoolDirectory,
};
use self::{children::Children, code::CodeTools, shell::Processes};

/// What the native tools are made of.
pub struct NativeParts {
    /// Where they work.
    pub workspace: Arc<Workspace>,
    /// Starts their processes.
    pub launcher: Option<Launcher>,
    /// What those are started with.
    pub children: ChildSettings,
    /// Where their output is kept.
    pub spool: SpoolDirectory,
    /// Commands of the operator's own.
    pub commands: Vec<CommandDeclaration>,
    /// What code may do.
    pub code: CodeSettings,
    /// A binary whose `main` calls [`code_worker_if_asked`] first, usually this one. Without it code does not run.
    pub program: Option<PathBuf>,
}

/// The native tools, as one source.
pub fn native_source(parts: NativeParts) -> Result<ToolSet, CommandError> {
    let mut tools = native_tools(Arc::clone(&parts.workspace));
    let children = Arc::new(Children::new(parts.launcher, parts.children, parts.workspace));
    let processes = Arc::new(Processes::new(parts.spool));
    tools.extend(shell::tools(&children, &processes));
    tools.extend(command::tools(&children, &processes, parts.commands)?);
    let code = parts.program.map(|program| CodeTools::new(parts.code, program, children));
    tools.extend(code.iter().flat_map(CodeTools::tools));
    Ok(ToolSet::new("native", tools).when_session_closes(move |session| {
        processes.close(session);
        if let Some(code) = &code {
            code.session_closed(session);
        }
    }))
}

/// Every native tool, working on `workspace`.
pub fn native_tools(workspace: Arc<Workspace>) -> Vec<Arc<dyn DynTool>> {
    let mut tools = files::tools(workspace);
    tools.push(Arc::new(echo::tool()));
    tools
}

/// Unwraps what was parsed from a literal in this crate. A bad literal is a mistake of ours that the first test
/// run shows, and `Tool::declaration` has no way to report it.
#[expect(clippy::expect_used, reason = "only literals of this crate pass through, and every one is tested")]
fn literal<T, E: fmt::Debug>(parsed: Result<T, E>) -> T {
    parsed.expect("a literal of this crate is well formed")
}
