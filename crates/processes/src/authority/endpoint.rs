//! A policy endpoint as authority: `POST` with `{"input": …}`, answered by `{"result": …}`, as in OPA's data API.

mod answer;

use std::{error::Error, time::Duration};

use reqwest::{
    Client, ClientBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
    redirect,
};
use serde_json::json;
use toolpost_core::{AuthorityAnswer, AuthorityFault, AuthorityQuestion};

use super::{AuthorityProblem, EndpointDeclaration};
use crate::http::tls;

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// How much of an address or a header an error message quotes.
const QUOTED: usize = 200;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) struct PolicyEndpoint {
    endpoint: EndpointDeclaration,
    client: Client,
}

impl PolicyEndpoint {
    pub(super) fn new(
        endpoint: EndpointDeclaration,
        time_limit: Duration,
    ) -> Result<Self, AuthorityProblem> {
        let setup = |why: String| AuthorityProblem::Client(why);
        let tls =
            tls(endpoint.url.scheme() == "https").map_err(|error| setup(error.to_string()))?;
        let client = ClientBuilder::new()
            .tls_backend_preconfigured(tls)
            .default_headers(headers(&endpoint)?)
            // The operator chose exactly this address, so neither a proxy of the environment nor a redirect may replace
            // it.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            // Without compression, a few bytes cannot unpack to gigabytes.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .user_agent(concat!("toolpost/", env!("CARGO_PKG_VERSION")))
            .tcp_nodelay(true)
            .connect_timeout(time_limit)
            .pool_idle_timeout(IDLE);
        let client = client.build().map_err(|error| setup(error.to_string()))?;
        Ok(Self { endpoint, client })
    }

    pub(super) async fn ask(
        &self,
        question: &AuthorityQuestion<'_>,
    ) -> Result<AuthorityAnswer, AuthorityFault> {
        let body = json!({ "input": question.to_json() }).to_string();
        let sent = self
            .client
            .post(self.endpoint.url.clone())
            .body(body)
            .send()
            .await;
        let response =
            sent.map_err(|error| fault(format!("it cannot be reached: {}", explain(error))))?;
        check_head(&response)?;
        let body = self.read_body(response).await?;
        answer::read(&body)
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, AuthorityFault> {
        let most = self.endpoint.max_answer;
        let too_long = || fault(format!("its answer is longer than {most} bytes"));
        if response
            .content_length()
            .is_some_and(|length| length > most as u64)
        {
            return Err(too_long());
        }
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let chunk = chunk
                .map_err(|error| fault(format!("its answer was cut off: {}", explain(error))))?;
            let Some(chunk) = chunk else { return Ok(body) };
            if body.len() + chunk.len() > most {
                return Err(too_long());
            }
            body.extend_from_slice(&chunk);
        }
    }
}

fn headers(endpoint: &EndpointDeclaration) -> Result<HeaderMap, AuthorityProblem> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    if let Some(credential) = &endpoint.credential {
        let name = credential.name.clone();
        if !credential
            .urls
            .iter()
            .any(|prefix| prefix.covers(&endpoint.url))
        {
            return Err(AuthorityProblem::CredentialElsewhere(
                name,
                endpoint.url.clone(),
            ));
        }
        let value = credential
            .header_value()
            .ok_or(AuthorityProblem::CredentialValue(name))?;
        headers.insert(credential.header.name.clone(), value);
    }
    Ok(headers)
}

/// Accepts only a success with JSON.
fn check_head(response: &Response) -> Result<(), AuthorityFault> {
    let quoted = |value: Option<&HeaderValue>| -> String {
        let text = value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        text.unwrap_or_default().chars().take(QUOTED).collect()
    };
    let status = response.status();
    if status.is_redirection() {
        let target = quoted(response.headers().get(LOCATION));
        return Err(fault(format!(
            "it redirects to `{target}`, and redirects are not followed"
        )));
    }
    if status != StatusCode::OK {
        return Err(fault(format!(
            "it answered with status {}",
            status.as_u16()
        )));
    }
    let content_type = quoted(response.headers().get(CONTENT_TYPE));
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(fault(format!(
            "its answer is `{content_type}`, not `application/json`"
        )));
    }
    Ok(())
}

fn fault(text: String) -> AuthorityFault {
    AuthorityFault(text)
}

/// The client's error with its causes, which are the most specific. The address may contain a secret and is left out.
fn explain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
