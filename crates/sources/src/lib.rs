//! Where tools come from, hooks that are programs, and the authorities that rules delegate decisions to.
//!
//! For now the native set: tools compiled into the host that work on one [`Workspace`]. The binary opens the
//! workspace and registers [`native_source`] with the catalog; nothing here knows the catalog. [`command_hooks`] makes
//! hooks of an operator's programs, and [`configured_authorities`] authorities of programs and policy endpoints.
#![warn(missing_docs)]

mod amplifier;
mod authority;
mod hook;
mod mcp;
mod native;

pub use amplifier::python::{
    BridgedModule, CoreChoice, CoreInUse, Isolation, LoadedPlugin, MessageStanding, PluginHost,
    PluginPort, PythonModules, PythonPackage, PythonParts, PythonSettings, PythonSource,
    allowed_message_patterns, message_standing,
};
pub use amplifier::{
    CacheError, CachedModule, CoreWish, EventTaker, EventWitness, Fetched, Fetcher, FolderSharing,
    ModuleStandings, Packages, PackagesError, Pin, Prepared, Progress, PythonEnvironment,
    PythonModule, Reach, ResolveError, Resolved, RunError, RustModule, RustModules,
    SUPPLY_VARIABLES, Supply, UnloadedModules, cached_module, resolve, resolve_folder,
};
#[cfg(feature = "grpc")]
pub use amplifier::{GrpcHandle, GrpcModule, GrpcSettings, ServiceHealth, SidecarParts};
pub use authority::{
    AuthorityDeclaration, AuthorityError, AuthorityParts, AuthorityProblem, AuthorityReach,
    EndpointDeclaration, configured_authorities,
};
pub use hook::{HookDeclaration, HookDeclarationError, HookParts, HookProblem, command_hooks};
pub use mcp::{
    McpEra, McpNewTools, McpParts, McpProgram, McpServer, McpSharing, McpSource, McpStart,
    McpTransport,
};
pub use native::{
    ChildEnvironment, ChildSettings, CodeSettings, CommandDeclaration, CommandError, CommandOutput,
    CommandParameter, CommandProblem, Credential, CredentialHeader, CredentialHeaderError,
    EnvironmentRefusal, HostEnvironment, NameLookup, NativeParts, NetworkSettings, ParameterType,
    PatternError, PrivateTarget, Protection, SpoolDirectory, UrlPrefix, UrlPrefixError, Workspace,
    WorkspaceError, code_worker_if_asked, native_source,
};
