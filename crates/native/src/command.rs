//! Commands as tools: namespace `commands`. An operator declares a program with typed parameters, which becomes a tool
//! of that name. No shell is involved: every argument of the template becomes one argument of the process.

mod declaration;
mod error;
mod output;
mod schema;
mod template;
mod tool;
mod values;

use std::sync::Arc;

use toolpost_model::DynTool;
use toolpost_processes::Children;

pub use self::{
    declaration::{
        CommandDeclaration, CommandOutputFormat, CommandParameter, CommandParameterType,
    },
    error::{CommandError, CommandProblem},
};
use super::shell::BackgroundProcesses;

/// Builds the tools of the declared commands. A declaration that cannot work is refused here and not at its first call.
pub(super) fn tools(
    children: &Arc<Children>,
    processes: &Arc<BackgroundProcesses>,
    declarations: Vec<CommandDeclaration>,
) -> Result<Vec<Arc<dyn DynTool>>, CommandError> {
    let made = declarations.into_iter().map(|declaration| {
        let tool =
            tool::CommandTool::new(declaration, Arc::clone(children), Arc::clone(processes))?;
        Ok(Arc::new(tool) as Arc<dyn DynTool>)
    });
    made.collect()
}
