//! The HTTP clients: without proxies, cookies or redirects, and with rustls and ring set here instead of in a global of
//! the process.
//!
//! There are two for each scheme, because a client reuses connections to the same host. A connection that a listed URL
//! opened to a private address must not be reused for a URL that is not listed. The address check runs when a name is
//! resolved, and a reused connection skips it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, ClientBuilder, Request, Response, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::{
    deadline::HttpExchangeDeadline,
    error::HttpError,
    names::{GuardedNames, NameLookup},
    target::{AddressReach, HttpTarget},
};

/// The limit for establishing a connection, over all addresses of a name.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// The most idle connections to one host.
const IDLE_PER_HOST: usize = 4;
/// The most header bytes of a response over HTTP/2. HTTP/1 has the client's own limits: 100 headers, 400 KiB.
const HTTP2_HEADER_BYTES: u32 = 64 * 1024;

/// The clients of HTTP requests. Each is built at its first use, because reading the system's certificates takes time.
pub struct HttpClients {
    names: Arc<dyn NameLookup>,
    /// By scheme, then by reach.
    built: [[OnceLock<Client>; 2]; 2],
}

/// An HTTP client that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the system's certificates cannot be used: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[from] reqwest::Error),
}

impl HttpClients {
    /// Clients that resolve names with `names`.
    pub fn new(names: Arc<dyn NameLookup>) -> Self {
        Self {
            names,
            built: Default::default(),
        }
    }

    /// The client for a target. A failure is not stored, because an administrator may install the missing certificates.
    pub fn of(&self, target: &HttpTarget) -> Result<Client, ClientError> {
        let encrypted = target.url.scheme() == "https";
        let place =
            &self.built[usize::from(encrypted)][usize::from(target.reach == AddressReach::Listed)];
        match place.get() {
            Some(client) => Ok(client.clone()),
            None => {
                let client = self.build(encrypted, target.reach)?;
                Ok(place.get_or_init(|| client).clone())
            }
        }
    }

    /// Sends one request and returns the head of the response.
    pub async fn send(
        &self,
        request: Request,
        target: &HttpTarget,
        deadline: HttpExchangeDeadline,
    ) -> Result<Response, HttpError> {
        let host = || target.url.host_str().unwrap_or_default().to_owned();
        let answer = tokio::time::timeout_at(deadline.at, self.of(target)?.execute(request)).await;
        let response = answer
            .map_err(|_| deadline.missed(host(), 0))?
            .map_err(|error| HttpError::sending(host(), error))?;
        // The resolver checked the addresses before the connection. This check protects against changes in how the
        // client connects.
        // the client connects.
        if let Some(peer) = response.remote_addr() {
            target.check_peer(peer.ip())?;
        }
        Ok(response)
    }

    fn build(&self, encrypted: bool, reach: AddressReach) -> Result<Client, ClientError> {
        let client = ClientBuilder::new()
            .tls_backend_preconfigured(tls(encrypted)?)
            .dns_resolver(GuardedNames {
                names: self.names.clone(),
                reach,
            })
            // A proxy from the environment would resolve names without the address check.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("toolpost/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http2_max_header_list_size(HTTP2_HEADER_BYTES)
            .build()?;
        Ok(client)
    }
}

/// The TLS settings of every client of this host.
pub fn tls(encrypted: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut config = if encrypted {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        // Never used. A machine without certificates can still make plain requests.
        builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
