//! Where tools come from.
//!
//! For now the native set: tools compiled into the host that work on one [`Workspace`]. The binary opens the
//! workspace and registers [`native_source`] with the catalog; nothing here knows the catalog.
#![warn(missing_docs)]

mod native;

pub use native::{
    ChildEnvironment, ChildSettings, CodeSettings, CommandDeclaration, CommandError, CommandOutput,
    CommandParameter, CommandProblem, Credential, CredentialHeader, CredentialHeaderError,
    EnvironmentRefusal, HostEnvironment, NameLookup, NativeParts, NetworkSettings, ParameterType,
    PatternError, PrivateTarget, Protection, SpoolDirectory, SystemNames, UrlPrefix, UrlPrefixError,
    Workspace, WorkspaceError, code_worker_if_asked, native_source,
};
