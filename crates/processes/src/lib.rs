//! What everything of the operator's that runs beside the host is started with: confined child processes, their
//! environments, the workspace they work in, and the paths that rules keep from them.
//!
//! Native tools, modules and MCP servers stand on this crate. The guarded HTTP client lies here because native tools,
//! module downloads and MCP connections share its rules for addresses, names and certificates. Command hooks and
//! decision authorities lie here because they need nothing but children and that client, and no source needs them.
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
