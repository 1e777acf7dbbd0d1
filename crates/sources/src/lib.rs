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
    CacheError, CachedModule, CoreWish, EventTaker, EventWitness, FetchedModule, Fetcher,
    FolderSharing, ModuleFetchPolicy, ModuleSetupProgress, ModuleStandings, Packages,
    PackagesError, Pin, PreparedEnvironment, PythonEnvironment, PythonModule, ResolveError,
    ResolvedModule, RunError, RustModule, RustModules, SUPPLY_VARIABLES, Supply, UnloadedModules,
    cached_module, resolve, resolve_folder,
};
#[cfg(feature = "grpc")]
pub use amplifier::{GrpcHandle, GrpcModule, GrpcSettings, ServiceHealth, SidecarParts};
pub use authority::{
    AuthorityDeclaration, AuthorityError, AuthorityParts, AuthorityProblem, AuthorityReach,
    EndpointDeclaration, configured_authorities,
};
pub use hook::{HookDeclaration, HookDeclarationError, HookParts, HookProblem, command_hooks};
pub use mcp::{
    McpNewToolPolicy, McpParts, McpProgram, McpProtocolEra, McpServer, McpSharing, McpSource,
    McpStartPolicy, McpTransport,
};
pub use native::{
    ChildEnvironment, ChildSettings, CodeSettings, CommandDeclaration, CommandError,
    CommandOutputFormat, CommandParameter, CommandParameterType, CommandProblem, Credential,
    CredentialHeader, CredentialHeaderError, EnvironmentRefusal, HostEnvironment, NameLookup,
    NativeParts, NetworkSettings, PrivateTarget, Protection, ProtectionPatternError,
    SpoolDirectory, UrlPrefix, UrlPrefixError, Workspace, WorkspaceError, code_worker_if_asked,
    native_source,
};
