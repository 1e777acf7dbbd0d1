//! Where tools come from.
//!
//! For now the native set: tools compiled into the host that work on one [`Workspace`]. The binary opens the
//! workspace and registers [`native_tools`] with the catalog; nothing here knows the catalog.
#![warn(missing_docs)]

mod native;

pub use native::{
    ChildEnvironment, ChildSettings, CodeSettings, CommandDeclaration, CommandError, CommandOutput,
    CommandParameter, CommandProblem, EnvironmentRefusal, HostEnvironment, NativeParts, ParameterType,
    SpoolDirectory, Workspace, WorkspaceError, code_worker_if_asked, native_source, native_tools,
};
