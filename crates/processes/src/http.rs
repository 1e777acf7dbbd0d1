//! The guarded HTTP client: allowed addresses, name lookup, and credentials. The HTTP tools and downloads of modules
//! use it; every other client of the host uses its certificates.

mod address;
mod client;
mod deadline;
mod download;
mod error;
mod names;
mod settings;
mod target;
mod url_prefix;

pub use self::{
    client::{HttpClients, tls},
    deadline::{HttpExchangeDeadline, MAX_REDIRECTS},
    download::{DownloadError, download},
    error::HttpError,
    names::NameLookup,
    settings::{
        Credential, CredentialHeader, CredentialHeaderError, NetworkSettings, PrivateTarget,
        is_refused_header,
    },
    target::{HttpTarget, TargetRefusal},
    url_prefix::{UrlPrefix, UrlPrefixError, same_origin},
};
