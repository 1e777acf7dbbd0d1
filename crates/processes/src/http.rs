//! The guarded HTTP client: which addresses may answer, which names stand for them, and what is sent along. Used by
//! the HTTP tools, by downloads of modules and, for its certificates, by every other client of the host.

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
