//! Starts the operator's programs beside the host: confined child processes, their environments, their workspace, and
//! the paths that rules close to them.
//!
//! Native tools, modules and MCP servers build on this crate. It contains the guarded HTTP client, because native
//! tools, module downloads and MCP connections share its rules for addresses, names and certificates. It contains
//! command hooks and decision authorities, because they need only children and that client, and no source needs them.
#![warn(missing_docs)]

mod authority;
mod children;
mod environment;
mod guards;
mod hook;
mod http;
mod name_watch;
mod output;
pub mod program_files;
mod workspace;

pub use authority::{
    AuthorityDeclaration, AuthorityError, AuthorityParts, AuthorityProblem, AuthorityReach,
    EndpointDeclaration, configured_authorities,
};
pub use children::{ChildProcessSpec, ChildSettings, Children, cautioned};
pub use environment::{
    ChildEnvironment, EnvironmentRefusal, HostEnvironment, check_variable, variable_pairs,
};
pub use guards::{CallerRules, GuardCache, PathGuards, ProgramSight};
pub use hook::{
    HookDeclaration, HookDeclarationError, HookParts, HookProblem, command_hooks,
    program::ProgramDeclaration,
};
pub use http::{
    Credential, CredentialHeader, CredentialHeaderError, DownloadError, HttpClients, HttpError,
    HttpExchangeDeadline, HttpTarget, MAX_REDIRECTS, NameLookup, NetworkSettings, PrivateTarget,
    TargetRefusal, UrlPrefix, UrlPrefixError, download, is_refused_header, same_origin, tls,
};
pub use name_watch::{NameWatch, created_lines, created_paths};
pub use output::{OutputEvents, PrintableText, clean, rendered, whole_characters};
pub use workspace::{
    CallStopError, ExistingPathEntry, FileWorkInterruption, LastLink, PathError, PathProtection,
    PathRefusal, PathTarget, PlaceCaution, PlaceEffect, ProtectedPath, ProtectionPatternError,
    ReadableTarget, StopSign, Workspace, WorkspaceError, cautions_beneath, digest,
    folders_in_the_making, io_code, link_unnamed, on_worker, open_directory, open_listing,
    open_regular, open_unnamed, read_link, relative, require_all, shown, special, sync_directory,
};
