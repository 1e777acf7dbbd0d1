//! Streamable HTTP: the same TLS as every other client of this host, no proxies, no redirects, and the operator's headers
//! with every request. Nothing that a caller brought goes out.

mod guarded;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Client, ClientBuilder,
    header::{HeaderName, HeaderValue},
    redirect,
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};
use toolpost_model::Secret;
use toolpost_processes::tls;
use url::Url;

use super::{super::desk::McpMessageRouter, McpConnectError};
use guarded::BoundedHttpClient;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How many requests are under way at a time, streams apart.
const REQUESTS: usize = 64;

/// A transport to an endpoint.
pub(super) fn transport(
    url: &Url,
    headers: &BTreeMap<String, Secret>,
    longest: usize,
    desk: Arc<McpMessageRouter>,
) -> Result<StreamableHttpClientTransport<BoundedHttpClient>, McpConnectError> {
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .max_sse_event_size(longest)
        .max_concurrent_requests(REQUESTS)
        .custom_headers(written(headers)?)
        // The SDK would shake hands unseen and send the call again: to a server that nobody compared.
        .reinit_on_expired_session(false);
    Ok(StreamableHttpClientTransport::with_client(
        BoundedHttpClient::new(client(url)?, longest, desk),
        config,
    ))
}

fn client(url: &Url) -> Result<Client, McpConnectError> {
    let setup =
        |why: String| McpConnectError::Setup(format!("the HTTP client cannot be set up: {why}"));
    let tls = tls(url.scheme() == "https").map_err(|error| setup(error.to_string()))?;
    let builder = ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        // A redirect would carry the operator's headers to a place that they did not name.
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("toolpost/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .connect_timeout(CONNECT);
    builder.build().map_err(|error| setup(error.to_string()))
}

fn written(
    headers: &BTreeMap<String, Secret>,
) -> Result<HashMap<HeaderName, HeaderValue>, McpConnectError> {
    let mut all = HashMap::new();
    for (name, value) in headers {
        let bad = || McpConnectError::Setup(format!("the header `{name}` cannot be sent"));
        let written: HeaderName = name.parse().map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| bad())?;
        value.set_sensitive(true);
        all.insert(written, value);
    }
    Ok(all)
}
