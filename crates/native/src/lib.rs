//! The native tools. They are code of this host, so the host trusts their claims about effects.
//!
//! They work on one [`Workspace`]. The binary opens it and registers [`native_source`] with the catalog; this crate
//! does not use the catalog.
#![warn(missing_docs)]

mod arguments;
mod calls;
mod code;
mod command;
mod declaration;
mod echo;
mod files;
mod http;
mod results;
mod search;
mod shell;
mod workspace_tool;

use std::{fmt, path::PathBuf, sync::Arc};

use toolpost_model::ToolSet;
use toolpost_processes::{ChildSettings, Children, NetworkSettings, Workspace};
use toolpost_sandbox::Launcher;

use self::{code::CodeTools, shell::BackgroundProcesses};
pub use self::{
    code::{CodeSettings, code_worker_if_asked},
    command::{
        CommandDeclaration, CommandError, CommandOutputFormat, CommandParameter,
        CommandParameterType, CommandProblem,
    },
    shell::SpoolDirectory,
};

/// The inputs of [`native_source`].
pub struct NativeParts {
    /// The workspace of the tools.
    pub workspace: Arc<Workspace>,
    /// The launcher for their processes.
    pub launcher: Option<Launcher>,
    /// The settings of their processes.
    pub children: ChildSettings,
    /// The storage for their output.
    pub spool: SpoolDirectory,
    /// The network settings.
    pub network: NetworkSettings,
    /// The settings of `run_code`.
    pub code: CodeSettings,
    /// The operator's commands.
    pub commands: Vec<CommandDeclaration>,
    /// A binary with a `main` that calls [`code_worker_if_asked`] first, usually this one. Without it `run_code` is not
    /// available.
    pub program: Option<PathBuf>,
}

impl NativeParts {
    /// Tools on a workspace and nothing else: they start no process and reach no private address.
    pub fn on(workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            launcher: None,
            children: ChildSettings::default(),
            spool: SpoolDirectory::in_memory(),
            network: NetworkSettings::default(),
            code: CodeSettings::default(),
            commands: Vec::new(),
            program: None,
        }
    }
}

/// The names of the native tools. A tool of another source with such a name is served under its namespaced name.
pub const NATIVE_TOOL_NAMES: [&str; 23] = [
    "apply_patch",
    "call_cancel",
    "call_result",
    "delete_file",
    "echo",
    "edit_file",
    "fetch_page",
    "file_info",
    "glob",
    "grep",
    "http_request",
    "list_directory",
    "move_file",
    "process_kill",
    "process_read",
    "process_status",
    "process_write",
    "read_file",
    "read_result",
    "run_code",
    "search_result",
    "shell",
    "write_file",
];

/// The native tools, as one source.
pub fn native_source(parts: NativeParts) -> Result<ToolSet, CommandError> {
    let NativeParts {
        workspace,
        launcher,
        children,
        spool,
        network,
        code,
        commands,
        program,
    } = parts;
    let mut tools = files::tools(&workspace);
    tools.extend(search::tools(&workspace));
    tools.extend(http::tools(Arc::clone(&workspace), network));
    let processes = Arc::new(BackgroundProcesses::new(
        spool,
        children.lifetime,
        children.background,
    ));
    let children = Arc::new(Children::new(launcher, children, Arc::clone(&workspace)));
    tools.extend(shell::tools(&children, &processes));
    let code = program.map(|program| CodeTools::new(code, program, Arc::clone(&children)));
    tools.extend(code.iter().flat_map(CodeTools::tools));
    tools.extend(results::tools(Arc::clone(&workspace)));
    tools.extend(calls::tools());
    tools.push(Arc::new(echo::tool()));
    // Last, because the names of tools are assigned in this order.
    tools.extend(command::tools(&children, &processes, commands)?);
    Ok(
        ToolSet::new("native", tools).when_session_closes(move |session| {
            processes.close(session);
            if let Some(code) = &code {
                code.session_closed(session);
            }
        }),
    )
}

/// Unwraps a value that was parsed from a literal in this crate. A bad literal is a bug that the first test run shows,
/// and `Tool::declaration` has no way to report it.
#[expect(
    clippy::expect_used,
    reason = "only literals of this crate pass through, and every one is tested"
)]
fn literal<T, E: fmt::Debug>(parsed: Result<T, E>) -> T {
    parsed.expect("a literal of this crate is well formed")
}
