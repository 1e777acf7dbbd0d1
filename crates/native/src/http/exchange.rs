//! One exchange: the request and its redirects. Each hop is a request of its own, with a target that must pass the same
//! rules as the first.

use std::collections::HashSet;

use reqwest::{
    Method, Request, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::CallContext;
use toolpost_processes::{
    Credential, HttpClients, HttpError, HttpExchangeDeadline, HttpTarget, MAX_REDIRECTS,
    NetworkSettings, same_origin,
};

use super::request_headers::stays_with_its_origin;

/// The request to send.
pub(super) struct OutgoingHttpRequest<'a> {
    pub(super) target: HttpTarget,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    /// The header value is set after the secret was revealed.
    pub(super) credential: Option<(&'a Credential, Option<HeaderValue>)>,
    pub(super) redirects: RedirectPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedirectPolicy {
    /// Up to [`MAX_REDIRECTS`] redirects are followed.
    Follow,
    /// A redirect is a response like any other.
    Show,
}

/// The head of the last response.
pub(super) struct HttpResponseHead {
    pub(super) response: Response,
    pub(super) target: HttpTarget,
    pub(super) hops: Vec<FollowedRedirect>,
    /// Why the last response, although a redirect, was not followed.
    pub(super) stopped_because: Option<String>,
}

/// A redirect that was followed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Hop")]
pub(super) struct FollowedRedirect {
    /// The status that said so.
    pub(super) status: u16,
    /// Where it led.
    pub(super) to: String,
}

/// Sends the request, follows redirects, and returns the head of the last response.
pub(super) async fn run(
    clients: &HttpClients,
    settings: &NetworkSettings,
    mut outgoing: OutgoingHttpRequest<'_>,
    deadline: HttpExchangeDeadline,
    context: &CallContext,
) -> Result<HttpResponseHead, HttpError> {
    let mut hops: Vec<FollowedRedirect> = Vec::new();
    let mut seen: HashSet<(Method, Url)> = HashSet::new();
    loop {
        seen.insert((outgoing.method.clone(), outgoing.target.url.clone()));
        let response = send(clients, &outgoing, deadline)
            .await
            .map_err(|error| later(error, &hops))?;
        let step = match outgoing.redirects {
            RedirectPolicy::Follow => {
                next(&outgoing, &response).map_err(|error| later(error, &hops))?
            }
            RedirectPolicy::Show => RedirectStep::Stay(None),
        };
        let (url, keep_body) = match step {
            RedirectStep::Go { url, keep_body } => (url, keep_body),
            RedirectStep::Stay(stopped_because) => {
                return Ok(HttpResponseHead {
                    response,
                    target: outgoing.target,
                    hops,
                    stopped_because,
                });
            }
        };
        let target = HttpTarget::of(url, &settings.private)
            .map_err(|refusal| HttpError::Redirected(Box::new(refusal.into())))?;
        let to = target.url.to_string();
        if hops.len() == MAX_REDIRECTS {
            return Err(HttpError::TooManyRedirects {
                limit: MAX_REDIRECTS,
                to,
            });
        }
        hops.push(FollowedRedirect {
            status: response.status().as_u16(),
            to: to.clone(),
        });
        let from = outgoing.target.url.to_string();
        outgoing.turn_to(target, keep_body);
        if !context.may_request(outgoing.method.as_str(), &to) {
            return Err(HttpError::Kept { from, to });
        }
        if seen.contains(&(outgoing.method.clone(), outgoing.target.url.clone())) {
            return Err(HttpError::RedirectLoop { to });
        }
    }
}

impl<'a> OutgoingHttpRequest<'a> {
    /// Reveals the credential's secret, for the request and for removing it from the result. Fails with the
    /// credential's name if the secret is not valid in a header.
    pub(super) fn reveal(&mut self) -> Result<Option<&'a Credential>, String> {
        let Some((credential, value)) = &mut self.credential else {
            return Ok(None);
        };
        *value = Some(
            credential
                .header_value()
                .ok_or_else(|| credential.name.clone())?,
        );
        Ok(Some(*credential))
    }

    fn drop_headers(&mut self, is_dropped: impl Fn(&HeaderName) -> bool) {
        let dropped = self.headers.keys().filter(|name| is_dropped(name));
        let dropped: Vec<HeaderName> = dropped.cloned().collect();
        for name in dropped {
            self.headers.remove(name);
        }
    }

    fn turn_to(&mut self, target: HttpTarget, keep_body: KeepBody) {
        if keep_body == KeepBody::No {
            if self.method != Method::HEAD {
                self.method = Method::GET;
            }
            self.body = None;
            self.drop_headers(|name| name.as_str().starts_with("content-"));
        }
        let same = same_origin(&self.target.url, &target.url);
        if !same {
            self.drop_headers(stays_with_its_origin);
        }
        // A dropped credential is not added again, even if a later redirect leads back to the first origin: a foreign
        // server chose that address.
        self.credential = self.credential.take().filter(|(credential, _)| {
            same && credential
                .urls
                .iter()
                .any(|prefix| prefix.covers(&target.url))
        });
        self.target = target;
    }
}

async fn send(
    clients: &HttpClients,
    outgoing: &OutgoingHttpRequest<'_>,
    deadline: HttpExchangeDeadline,
) -> Result<Response, HttpError> {
    let mut request = Request::new(outgoing.method.clone(), outgoing.target.url.clone());
    *request.headers_mut() = outgoing.headers.clone();
    if let Some((credential, Some(value))) = &outgoing.credential {
        request
            .headers_mut()
            .insert(credential.header.name.clone(), value.clone());
    }
    *request.body_mut() = outgoing.body.clone().map(Into::into);
    clients.send(request, &outgoing.target, deadline).await
}

/// The error of this hop; after a redirect it mentions that.
fn later(error: HttpError, hops: &[FollowedRedirect]) -> HttpError {
    match hops {
        [] => error,
        [..] => HttpError::Redirected(Box::new(error)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeepBody {
    Yes,
    No,
}

enum RedirectStep {
    Go { url: Url, keep_body: KeepBody },
    Stay(Option<String>),
}

/// The target of a redirect.
fn next(
    outgoing: &OutgoingHttpRequest<'_>,
    response: &Response,
) -> Result<RedirectStep, HttpError> {
    let from = &outgoing.target.url;
    let keep_body = match response.status() {
        // As all clients do and the standard allows: a POST becomes a GET.
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if outgoing.method == Method::POST => {
            KeepBody::No
        }
        StatusCode::SEE_OTHER if outgoing.method == Method::GET => KeepBody::Yes,
        StatusCode::SEE_OTHER => KeepBody::No,
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => KeepBody::Yes,
        _ => return Ok(RedirectStep::Stay(None)),
    };
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(RedirectStep::Stay(None));
    };
    let bad = || HttpError::BadLocation {
        from: from.to_string(),
    };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| bad())?;
    let url = from.join(location).map_err(|_| bad())?;
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err(HttpError::Downgrade {
            from: from.to_string(),
            to: url.to_string(),
        });
    }
    // The decision was about the host in the call. A change on another host requires a call of its own.
    let harmless = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&outgoing.method);
    if keep_body == KeepBody::Yes && !harmless && !same_origin(from, &url) {
        let because = format!(
            "the redirect leads to another origin, which would get the {} too; request `{url}` itself to send it \
             there",
            outgoing.method
        );
        return Ok(RedirectStep::Stay(Some(because)));
    }
    Ok(RedirectStep::Go { url, keep_body })
}

/// The media type of a response, without parameters and in lower case, and its `charset`.
pub(super) fn media_type(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let Some(text) = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return (None, None);
    };
    let mut parts = text.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.to_owned())
    });
    ((!essence.is_empty()).then_some(essence), charset)
}
