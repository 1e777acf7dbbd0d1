//! The HTTP client with its TLS: rustls with ring, told so here and not through a global of the process.

use std::{sync::Arc, time::Duration};

use reqwest::{ClientBuilder, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::client::error::ConnectError;

/// As the field's own client has it.
const CONNECT: Duration = Duration::from_secs(5);
/// Connections kept for the next POST.
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
        // A session's id is a credential; it is not carried to wherever a host points.
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
        // Reading the system's certificates takes milliseconds that a host on loopback need not cost.
        builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    })
}
