//! The shell and its background processes: namespace `shell`, one tool per file.
//!
//! The launcher starts a command within the confines of its profile ([`Children`]). Its output goes to an
//! [`OutputLog`](log::OutputLog) and to events, and the model gets its head and tail. [`BackgroundProcesses`] holds the
//! processes of sessions.

mod kept;
mod log;
mod process_kill;
mod process_read;
mod process_status;
mod process_write;
mod processes;
mod refusal;
mod report;
mod run;
mod run_shell;
mod shown;
mod spool;
mod told;

use std::sync::Arc;

use schemars::JsonSchema;
use toolpost_model::{
    AccessKind, CancelSupport, Declaration, DynTool, EffectClass, ExecutionKind, ToolKind,
};
use toolpost_processes::Children;

pub(super) use self::{
    log::OutputLog,
    processes::{BackgroundProcesses, ProcessOrigin},
    report::{FinishedProcessRun, ProcessRunReport, ProcessRunSummary},
    run::{ProcessOutputPipe, StartedProcess, run_to_end},
    shown::{OutputSource, ShownLimits, shown},
    told::{add_line, ending},
};
pub use spool::SpoolDirectory;

use super::declaration;

/// The tools on one set of processes.
pub(super) fn tools(
    children: &Arc<Children>,
    processes: &Arc<BackgroundProcesses>,
) -> Vec<Arc<dyn DynTool>> {
    vec![
        Arc::new(run_shell::Shell::new(
            Arc::clone(children),
            Arc::clone(processes),
        )),
        Arc::new(process_status::ProcessStatus::new(Arc::clone(processes))),
        Arc::new(process_read::ProcessRead::new(Arc::clone(processes))),
        Arc::new(process_write::ProcessWrite::new(
            Arc::clone(children),
            Arc::clone(processes),
        )),
        Arc::new(process_kill::ProcessKill::new(
            Arc::clone(children),
            Arc::clone(processes),
        )),
    ]
}

/// The common declaration. `In` and `Out` give the schemas.
fn declare<In: JsonSchema, Out: JsonSchema>(
    name: &str,
    description: &str,
    class: EffectClass,
) -> Declaration {
    let mut declaration =
        declaration::declare::<In, Out>(ToolKind::Shell, "shell", name, description, class);
    declaration.tags = vec!["shell".to_owned(), class.as_str().to_owned()];
    let interface = &mut declaration.interface;
    interface.execution.kind = ExecutionKind::Shell;
    interface.execution.cancel = CancelSupport::Cooperative;
    interface.rendering.subject_argument = Some("process_id".to_owned());
    if class != EffectClass::Read {
        interface.permission.access = vec![AccessKind::CodeExecution];
    }
    declaration
}
