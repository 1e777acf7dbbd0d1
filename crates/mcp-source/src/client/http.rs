//! Streamable HTTP: the same TLS as the host's other clients, no proxies, no redirects, and the operator's headers
//! with every request. Headers of a caller are never forwarded. The task that waits for an answer also reads it, a
//! stream of events included, so that a dropped call closes its stream.

mod argument_headers;
mod events;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::Mutex;
use reqwest::{
    Client, ClientBuilder, RequestBuilder, Response, StatusCode,
    header::{
        ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
    },
    redirect,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use toolpost_model::Secret;
use toolpost_processes::tls;
use url::Url;

use super::{
    super::{clean::shortened, desk::EXPIRED},
    CLOSED, LONGEST, McpConnectError, McpRequestError, UpstreamWire,
    handshake::STATELESS,
    message::{HostMessage, UpstreamMessage, id_of},
};
use argument_headers::NotedArgumentHeaders;
use events::UpstreamEvents;

/// The limit of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The most requests at a time, without streams.
const REQUESTS: usize = 64;
/// The limit of a notification, of an answer to a question and of the end of a session.
const CONTROL: Duration = Duration::from_secs(5);
/// How much of an error response is read.
const COMPLAINT: usize = 64 * 1024;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

pub(super) struct McpEndpoint {
    client: Client,
    url: Url,
    /// The operator's headers.
    headers: HeaderMap,
    /// The longest answer, and the longest event.
    longest: usize,
    agreed: Mutex<McpHttpAgreement>,
    /// A stream for unsolicited messages was open before.
    streamed: AtomicBool,
    places: Semaphore,
    argument_headers: Mutex<NotedArgumentHeaders>,
}

/// The session and the revision that host and server agreed on.
#[derive(Clone, Default)]
struct McpHttpAgreement {
    session: Option<HeaderValue>,
    revision: Option<String>,
}

impl McpHttpAgreement {
    fn is_stateless(&self) -> bool {
        let revision = self.revision.as_deref();
        revision.is_some_and(|revision| revision >= STATELESS)
    }
}

impl McpEndpoint {
    pub(super) fn new(
        url: &Url,
        headers: &BTreeMap<String, Secret>,
        longest: usize,
    ) -> Result<Self, McpConnectError> {
        Ok(Self {
            client: client(url)?,
            url: url.clone(),
            headers: written(headers)?,
            longest,
            agreed: Mutex::default(),
            streamed: AtomicBool::new(false),
            places: Semaphore::new(REQUESTS),
            argument_headers: Mutex::default(),
        })
    }

    /// Sets the revision that later messages name. `None`: a new handshake begins, without a session.
    pub(super) fn agree(&self, revision: Option<&str>) {
        let mut agreed = self.agreed.lock();
        agreed.revision = revision.map(str::to_owned);
        if revision.is_none() {
            agreed.session = None;
        }
    }

    /// Sends a message without an answer. Messages of the handshake have no limit here, because the handshake has its
    /// own.
    pub(super) async fn notify(
        &self,
        wire: &UpstreamWire,
        message: &HostMessage,
    ) -> Result<(), McpRequestError> {
        let limit = match message.is_handshake() {
            true => Duration::MAX,
            false => CONTROL,
        };
        let posted = tokio::time::timeout(limit, self.post(wire, message)).await;
        let late = |_| Err(McpRequestError::Lost("Control POST timed out".to_owned()));
        posted.unwrap_or_else(late).map(drop)
    }

    /// Sends a request and routes the response, until the answer came or the server announced that it comes elsewhere.
    /// `begin` is called before the first byte.
    pub(super) async fn exchange(
        &self,
        wire: &Arc<UpstreamWire>,
        id: u64,
        message: &HostMessage,
        begin: impl FnOnce(),
    ) -> Result<(), McpRequestError> {
        // The semaphore is never closed, so this does not fail.
        let place = self.places.acquire().await.ok();
        begin();
        let Some(response) = self.post(wire, message).await? else {
            return Ok(());
        };
        let media = text_of(&response, &CONTENT_TYPE);
        if !media.starts_with("text/event-stream") {
            let body = read(response, self.longest).await?;
            let answer = serde_json::from_slice(&body).ok();
            let Some(answer) = answer.and_then(UpstreamMessage::read) else {
                let length = body.len();
                return Err(odd(&format!(
                    "its answer of {length} bytes (`{media}`) is not a message"
                )));
            };
            // The body is complete, so the awaited answer cannot follow.
            if !matches!(&answer, UpstreamMessage::Answer { id: other, .. } if id_of(other) == Some(id))
            {
                return Err(odd("it answers another request"));
            }
            wire.route(self.without_bad_tools(answer, message), Some(id));
            return Ok(());
        }
        // A stream stays open as long as its call runs. If streams held places, long calls could block every other
        // request of the server, cancellations of tasks included.
        drop(place);
        let mut events = UpstreamEvents::of_answer(self, &wire.desk, response);
        while let Some(event) = events.next().await {
            let is_answer = matches!(event, UpstreamMessage::Answer { .. });
            wire.route(self.without_bad_tools(event, message), Some(id));
            if is_answer {
                events.drain();
                return Ok(());
            }
        }
        Err(McpRequestError::Lost(CLOSED.to_owned()))
    }

    /// Reads unsolicited messages of a server with sessions while it offers a stream for them.
    pub(super) async fn listen(&self, wire: &Arc<UpstreamWire>) {
        if self.agreed.lock().session.is_none() {
            return;
        }
        let Ok(mut events) = UpstreamEvents::unasked(self, &wire.desk).await else {
            return;
        };
        while let Some(message) = events.next().await {
            wire.route(message, None);
        }
    }

    /// Ends the session, if there is one.
    pub(super) async fn leave(&self) {
        let agreed = std::mem::take(&mut *self.agreed.lock());
        if agreed.session.is_some() {
            let request = self.with_headers(self.client.delete(self.url.clone()), &agreed);
            let _ = tokio::time::timeout(CONTROL, request.send()).await;
        }
    }

    fn with_headers(&self, request: RequestBuilder, agreed: &McpHttpAgreement) -> RequestBuilder {
        let mut headers = self.headers.clone();
        if let Some(session) = &agreed.session {
            headers.insert(SESSION, session.clone());
        }
        let revision = agreed.revision.as_deref();
        if let Some(Ok(revision)) = revision.map(HeaderValue::from_str) {
            headers.insert(REVISION, revision);
        }
        request.headers(headers)
    }

    /// `None`: the response carries no answer.
    async fn post(
        &self,
        wire: &UpstreamWire,
        message: &HostMessage,
    ) -> Result<Option<Response>, McpRequestError> {
        let agreed = self.agreed.lock().clone();
        let request = self
            .client
            .post(self.url.clone())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json");
        let mut request = self.with_headers(request, &agreed);
        if agreed.is_stateless() {
            let noted = self.argument_headers.lock();
            request = request.headers(argument_headers::of_message(message, &noted));
        }
        let response = request.body(message.text()).send().await.map_err(broken)?;
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let (status, challenge) = (status.as_u16(), text_of(&response, &WWW_AUTHENTICATE));
                let why =
                    format!("Auth required: authorization required: HTTP {status} {challenge}");
                Err(McpRequestError::Unauthorized(shortened(&why, LONGEST)))
            }
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(None),
            // The protocol answers 404 if it no longer accepts the session. It did not take the request, so `Unsent`
            // lets the call go to a new session.
            StatusCode::NOT_FOUND if agreed.session.is_some() => {
                wire.desk.expire();
                Err(McpRequestError::Unsent(EXPIRED.to_owned()))
            }
            _ if !status.is_success() => Err(complaint(response, message).await),
            _ => {
                if message.method() == Some("initialize") {
                    self.agreed.lock().session = response.headers().get(SESSION).cloned();
                }
                Ok(Some(response))
            }
        }
    }

    /// Removes tools with schemas that declare headers in a way that the revision forbids. Notes the headers of the
    /// others for their calls.
    fn without_bad_tools(&self, mut answer: UpstreamMessage, to: &HostMessage) -> UpstreamMessage {
        let is_list = to.method() == Some("tools/list") && self.agreed.lock().is_stateless();
        if let (
            true,
            UpstreamMessage::Answer {
                answer: Ok(list), ..
            },
        ) = (is_list, &mut answer)
            && let Some(Value::Array(tools)) = list.get_mut("tools")
        {
            let mut noted = self.argument_headers.lock();
            tools.retain(|tool| {
                let name = tool["name"].as_str().unwrap_or_default().to_owned();
                let headers = argument_headers::of_schema(&tool["inputSchema"]);
                headers.map(|headers| noted.insert(name, headers)).is_some()
            });
        }
        answer
    }
}

fn client(url: &Url) -> Result<Client, McpConnectError> {
    let setup =
        |why: String| McpConnectError::Setup(format!("the HTTP client cannot be set up: {why}"));
    let tls = tls(url.scheme() == "https").map_err(|error| setup(error.to_string()))?;
    let builder = ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        // A redirect would send the operator's headers to a place that the operator did not name.
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("toolpost/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .connect_timeout(CONNECT);
    builder.build().map_err(|error| setup(error.to_string()))
}

fn written(headers: &BTreeMap<String, Secret>) -> Result<HeaderMap, McpConnectError> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let bad = || McpConnectError::Setup(format!("the header `{name}` cannot be sent"));
        let written: HeaderName = name.parse().map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| bad())?;
        value.set_sensitive(true);
        all.insert(written, value);
    }
    Ok(all)
}

fn odd(why: &str) -> McpRequestError {
    McpRequestError::Unreadable(shortened(why, LONGEST))
}

/// Only a failed attempt to connect, or to build the request, proves that the server did not read it.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the form that `map_err` takes"
)]
fn broken(error: reqwest::Error) -> McpRequestError {
    let why = shortened(&format!("Client error: {error}"), LONGEST);
    match error.is_connect() || error.is_builder() {
        true => McpRequestError::Unsent(why),
        false => McpRequestError::Lost(why),
    }
}

fn text_of(response: &Response, name: &HeaderName) -> String {
    let value = response.headers().get(name);
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or_default().to_owned()
}

/// The error of a response without success.
async fn complaint(response: Response, to: &HostMessage) -> McpRequestError {
    let status = response.status();
    let after = text_of(&response, &RETRY_AFTER).trim().parse().ok();
    if status == StatusCode::TOO_MANY_REQUESTS {
        return refusal(status, after);
    }
    let is_json = text_of(&response, &CONTENT_TYPE).starts_with("application/json");
    let body = read(response, COMPLAINT).await.unwrap_or_default();
    let parsed = serde_json::from_slice(&body).ok().filter(|_| is_json);
    match parsed.and_then(UpstreamMessage::read) {
        // The id does not matter: the response belongs to this request and to no other.
        Some(UpstreamMessage::Answer {
            answer: Err(error), ..
        }) => error,
        // An older server refuses `server/discover` in this way, and the handshake continues with `initialize`.
        _ if to.method() == Some("server/discover") && status.is_client_error() => {
            McpRequestError::Remote {
                code: -32600,
                message: format!("HTTP {status}"),
                data: None,
            }
        }
        // During the handshake, the body is the only explanation that the operator gets.
        _ if to.is_handshake() && !status.is_server_error() => {
            let body = String::from_utf8_lossy(&body);
            odd(&format!("HTTP {status}: {body}"))
        }
        _ => refusal(status, after),
    }
}

fn refusal(status: StatusCode, after: Option<u64>) -> McpRequestError {
    match status.as_u16() {
        status @ (429 | 503) => McpRequestError::Busy {
            status,
            after: after.map(Duration::from_secs),
        },
        // The server read the request, and may have acted on it before it refused.
        status @ 300..=499 => McpRequestError::Unreadable(format!("it is HTTP {status}")),
        status => McpRequestError::Lost(format!("HTTP {status}")),
    }
}

/// A body of at most so many bytes.
async fn read(mut response: Response, longest: usize) -> Result<Vec<u8>, McpRequestError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        tokio::task::consume_budget().await;
        if body.len() + piece.len() > longest {
            return Err(odd(&format!("its answer has more than {longest} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
