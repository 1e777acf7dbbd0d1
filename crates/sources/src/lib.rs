//! Where tools come from.
//!
//! For now the native set: tools compiled into the host that work on one [`Workspace`]. The binary opens the
//! workspace and registers [`native_tools`] with the catalog; nothing here knows the catalog.
#![warn(missing_docs)]

mod native;

pub use native::{
    ChildEnvironment, ChildSettings, CommandDeclaration, CommandError, CommandOutput, CommandParameter,
    CommandProblem, EnvironmentRefusal, HostEnvironment, NativeParts, ParameterType, PatternError,
    Protection, SpoolDirectory, Workspace, WorkspaceError, native_source, native_tools,
};
