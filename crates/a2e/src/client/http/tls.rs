//! The HTTP client with rustls and ring, chosen here and not through a process-wide default.

use std::{sync::Arc, time::Duration};

use reqwest::{ClientBuilder, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::client::error::ConnectError;

/// The same limit as in the protocol's own client.
const CONNECT: Duration = Duration::from_secs(5);
/// Connections that are kept for later POSTs.
const IDLE: usize = super::POSTS;

pub(super) fn client(encrypted: bool) -> Result<reqwest::Client, ConnectError> {
    let failed = |source| ConnectError::Setup { source };
    let tls = tls(encrypted).map_err(|error| failed(error.into()))?;
    ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(IDLE)
        // The session's id is a credential, so the client follows no redirect to another server.
        .redirect(redirect::Policy::none())
        .referer(false)
        .build()
        .map_err(|error| failed(error.into()))
}

fn tls(encrypted: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(if encrypted {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        // Loading the system's certificates takes milliseconds, which a host on loopback should not cost.
        builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    })
}
