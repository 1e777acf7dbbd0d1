//! Where tools come from.
//!
//! For now the native set: tools compiled into the host that work on one [`Workspace`]. The binary opens the
//! workspace and registers [`native_tools`] with the catalog; nothing here knows the catalog.
#![warn(missing_docs)]

mod native;

pub use native::{
    Credential, CredentialHeader, CredentialHeaderError, NameLookup, NetworkSettings, PatternError,
    PrivateTarget, Protection, SecretText, SystemNames, UrlPrefix, UrlPrefixError, Workspace, WorkspaceError,
    http_tools, native_tools,
};
