//! Downloads a file for the host itself, under the rules for calls: the address check applies at every redirect, and
//! the size is limited.

use std::time::Duration;

use reqwest::{
    Request, Response, Url,
    header::{ACCEPT_ENCODING, HeaderValue, LOCATION},
};
use tokio::time::Instant;

use super::{
    client::HttpClients,
    deadline::{HttpExchangeDeadline, MAX_REDIRECTS},
    error::HttpError,
    settings::NetworkSettings,
    target::HttpTarget,
};

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DownloadError {
    /// The exchange's message. Its error type is private to this folder.
    #[error("{0}")]
    Exchange(String),
    #[error("`{host}` answered with status {status}")]
    Status { host: String, status: u16 },
    #[error("the file is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the download cannot be written: {0}")]
    Write(#[from] std::io::Error),
}

impl From<HttpError> for DownloadError {
    fn from(error: HttpError) -> Self {
        let hint = if is_private(&error) {
            "\nhint: list such an address under `network.private` or with `--allow-private`"
        } else {
            ""
        };
        Self::Exchange(format!("{error}{hint}"))
    }
}

fn is_private(error: &HttpError) -> bool {
    match error {
        HttpError::Refused(refusal) => refusal.is_private(),
        HttpError::Redirected(error) => is_private(error),
        _ => false,
    }
}

/// Gets a piece of the file and the total size if it is known.
pub(crate) type DownloadSink<'a> = dyn FnMut(&[u8], Option<u64>) -> std::io::Result<()> + Send + 'a;

/// Downloads `url`, at most `limit` bytes and within `time`.
pub async fn download(
    settings: &NetworkSettings,
    url: &str,
    limit: u64,
    time: Duration,
    sink: &mut DownloadSink<'_>,
) -> Result<(), DownloadError> {
    let clients = HttpClients::new(settings.names.clone());
    let deadline = HttpExchangeDeadline {
        at: Instant::now() + time,
        after: time,
    };
    let target = HttpTarget::parse(url, &settings.private).map_err(HttpError::from)?;
    let mut response = follow(&clients, settings, target, deadline).await?;
    let host = response.url().host_str().unwrap_or_default().to_owned();
    if !response.status().is_success() {
        return Err(DownloadError::Status {
            host,
            status: response.status().as_u16(),
        });
    }
    let total = response.content_length();
    let mut received = 0;
    loop {
        let chunk = deadline.hold(response.chunk()).await;
        let chunk = chunk.ok_or_else(|| deadline.missed(host.clone(), received))?;
        let cut_off = |source: reqwest::Error| HttpError::CutOff {
            host: host.clone(),
            received,
            source: source.without_url(),
        };
        let Some(chunk) = chunk.map_err(cut_off)? else {
            return Ok(());
        };
        received += chunk.len() as u64;
        if received > limit {
            return Err(DownloadError::TooLarge { limit });
        }
        sink(&chunk, total)?;
    }
}

async fn follow(
    clients: &HttpClients,
    settings: &NetworkSettings,
    mut target: HttpTarget,
    deadline: HttpExchangeDeadline,
) -> Result<Response, HttpError> {
    for _ in 0..=MAX_REDIRECTS {
        let response = send(clients, &target, deadline).await?;
        let Some(next) = next(&target.url, &response)? else {
            return Ok(response);
        };
        target = HttpTarget::of(next, &settings.private)
            .map_err(|refusal| HttpError::Redirected(Box::new(refusal.into())))?;
    }
    Err(HttpError::TooManyRedirects {
        limit: MAX_REDIRECTS,
        to: target.url.to_string(),
    })
}

async fn send(
    clients: &HttpClients,
    target: &HttpTarget,
    deadline: HttpExchangeDeadline,
) -> Result<Response, HttpError> {
    let mut request = Request::new(reqwest::Method::GET, target.url.clone());
    // The digest is that of the file as it is, without a content encoding.
    request
        .headers_mut()
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    clients.send(request, target, deadline).await
}

/// The target of a redirect; `None` if the response is not a redirect.
fn next(from: &Url, response: &Response) -> Result<Option<Url>, HttpError> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    let bad = || HttpError::BadLocation {
        from: from.to_string(),
    };
    let location = response.headers().get(LOCATION).ok_or_else(bad)?;
    let location = location.to_str().map_err(|_| bad())?;
    let url = from.join(location).map_err(|_| bad())?;
    match from.scheme() == "https" && url.scheme() == "http" {
        true => Err(HttpError::Downgrade {
            from: from.to_string(),
            to: url.to_string(),
        }),
        false => Ok(Some(url)),
    }
}
