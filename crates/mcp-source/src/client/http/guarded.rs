//! The HTTP client behind the SDK's transport, with bounds of its own: the SDK reads an answer of any length into memory.

use std::{
    collections::HashMap,
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorData, JsonRpcResponse,
        JsonRpcVersion2_0, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, StreamableHttpClient, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use serde_json::Value;
use sse_stream::{Error as SseError, Sse, SseStream};

use super::super::super::desk::McpMessageRouter;

/// What is read of an answer that says that something went wrong.
const COMPLAINT: usize = 64 * 1024;
const SESSION: &str = "mcp-session-id";

/// A client that reads no more than it may.
#[derive(Clone)]
pub(in super::super) struct BoundedHttpClient {
    pub(super) client: Client,
    /// The longest answer.
    longest: usize,
    /// Is told where the server does not know the session any more.
    desk: Arc<McpMessageRouter>,
    /// There was a stream for what the server says unasked.
    streamed: Arc<AtomicBool>,
}

type McpHttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type McpSseStream = BoxStream<'static, Result<Sse, SseError>>;

impl BoundedHttpClient {
    pub(super) fn new(client: Client, longest: usize, desk: Arc<McpMessageRouter>) -> Self {
        Self {
            client,
            longest,
            desk,
            streamed: Arc::default(),
        }
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, McpHttpError> {
        let mut request = self
            .client
            .post(uri)
            .header(ACCEPT, "application/json, text/event-stream");
        let in_session = session.is_some();
        if let Some(session) = session {
            request = request.header(SESSION, session.as_ref());
        }
        let request = request.headers(headers.into_iter().collect()).json(message);
        let response = request.send().await?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            let challenge = text_of(&response, &WWW_AUTHENTICATE).unwrap_or_default();
            let told = format!("HTTP {} {challenge}", status.as_u16());
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                told,
            )));
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let media = text_of(&response, &CONTENT_TYPE).unwrap_or_default();
        if !status.is_success() {
            return complaint(response, message, in_session, &media).await;
        }
        let session = text_of(&response, &HeaderName::from_static(SESSION));
        if media.starts_with("text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(
                events(response, self.longest),
                session,
            ));
        }
        let body = read(response, self.longest).await?;
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        match answer(&body, message) {
            // The body is over, so the answer that was asked for does not come any more.
            Some(answer) if is_request && !answers(&answer, message) => {
                Err(odd("it answers something that was not asked".to_owned()))
            }
            Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // Nobody waits for an answer to anything else.
            None if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            None => Err(odd(format!(
                "its answer of {} bytes (`{media}`) is no message",
                body.len()
            ))),
        }
    }
}

fn odd(text: String) -> McpHttpError {
    StreamableHttpError::UnexpectedServerResponse(text.into())
}

fn text_of(response: &Response, name: &HeaderName) -> Option<String> {
    response
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// An answer, taken as it is: the SDK's reading of it loses what it does not know. It reads those it needs itself.
fn answer(body: &[u8], to: &ClientJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
    let plain = matches!(to, ClientJsonRpcMessage::Request(request)
        if matches!(&request.request, ClientRequest::CustomRequest(asked) if asked.method != "tools/list"));
    if plain {
        let mut message: Value = serde_json::from_slice(body).ok()?;
        let id = message
            .get("id")
            .and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        if let (Some(id), Some(result)) = (id, message.get_mut("result").map(Value::take)) {
            let result = ServerResult::CustomResult(CustomResult(result));
            return Some(ServerJsonRpcMessage::Response(JsonRpcResponse {
                jsonrpc: JsonRpcVersion2_0,
                id,
                result,
            }));
        }
    }
    serde_json::from_slice(body).ok()
}

/// What an answer that is no success means.
async fn complaint(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
    media: &str,
) -> Result<StreamableHttpPostResponse, McpHttpError> {
    let status = response.status();
    let after = text_of(&response, &RETRY_AFTER);
    let busy =
        || StreamableHttpError::HttpStatus(HttpStatusError::new(status.as_u16(), after.clone()));
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(busy());
    }
    let body = read(response, COMPLAINT).await.unwrap_or_default();
    let told = serde_json::from_slice::<ServerJsonRpcMessage>(&body)
        .ok()
        .filter(|_| media.starts_with("application/json"));
    if let (false, true, ClientJsonRpcMessage::Request(request)) =
        (in_session, status.is_client_error(), message)
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
    {
        // A server of the older revision: the handshake goes on with that, whatever id the refusal has.
        let error = match told {
            Some(ServerJsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
        };
        let refused = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(refused, None));
    }
    match told {
        Some(ServerJsonRpcMessage::Error(mut error)) => {
            // Whatever id it has, or none: it is what the server says of this request, and of no other.
            if let ClientJsonRpcMessage::Request(request) = message {
                error.id = Some(request.id.clone());
            }
            Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(error),
                None,
            ))
        }
        // While there is no connection yet, what the server says of it is all that the operator has.
        _ if status.is_server_error() || !is_handshake(message) => Err(busy()),
        _ => Err(odd(format!(
            "HTTP {status}: {}",
            String::from_utf8_lossy(&body)
        ))),
    }
}

/// Whether a message is the answer to another.
fn answers(answer: &ServerJsonRpcMessage, to: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = to else {
        return false;
    };
    match answer {
        ServerJsonRpcMessage::Response(response) => response.id == request.id,
        ServerJsonRpcMessage::Error(error) => error.id.as_ref() == Some(&request.id),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => false,
    }
}

fn is_handshake(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)))
}

/// A body of at most so many bytes.
async fn read(mut response: Response, longest: usize) -> Result<Vec<u8>, McpHttpError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        tokio::task::consume_budget().await;
        if body.len() + piece.len() > longest {
            return Err(odd(format!("its answer has more than {longest} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The events of an answer, each of at most so many bytes.
fn events(response: Response, longest: usize) -> McpSseStream {
    SseStream::from_bytes_stream(bounded(response.bytes_stream(), longest)).boxed()
}

fn bounded<E: Error + Send + Sync + 'static>(
    stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    longest: usize,
) -> BoxStream<'static, io::Result<Bytes>> {
    let mut length = Length::default();
    let piece = move |piece: Result<Bytes, E>| {
        let piece = piece.map_err(io::Error::other)?;
        match length.add(&piece) <= longest {
            true => Ok(piece),
            false => Err(io::Error::other(format!(
                "an event has more than {longest} bytes"
            ))),
        }
    };
    // Comments are no events: without a pause, a stream of compressed ones would keep its thread until it ends.
    let paused = |read| async move {
        tokio::task::consume_budget().await;
        read
    };
    stream.map(piece).then(paused).boxed()
}

/// How long the event is that is being read.
#[derive(Default)]
struct Length {
    event: usize,
    /// The last line had nothing on it so far.
    line_empty: bool,
}

impl Length {
    /// The longest that an event became with these bytes.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let mut longest = 0;
        for byte in bytes {
            self.event += 1;
            longest = longest.max(self.event);
            match byte {
                b'\n' if self.line_empty => {
                    *self = Self {
                        event: 0,
                        line_empty: true,
                    }
                }
                b'\n' => self.line_empty = true,
                b'\r' => {}
                _ => self.line_empty = false,
            }
        }
        longest
    }
}

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, McpHttpError> {
        self.post(&uri, &message, session_id, custom_headers).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: Headers,
        _: usize,
    ) -> Result<StreamableHttpPostResponse, McpHttpError> {
        self.post(&uri, &message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_token: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), McpHttpError> {
        self.client
            .delete_session(uri, session_id, auth_token, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: Headers,
    ) -> Result<McpSseStream, McpHttpError> {
        let opened = self
            .client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_token,
                custom_headers,
                self.longest,
            )
            .await;
        match &opened {
            Ok(_) => self.streamed.store(true, Ordering::Release),
            // From a server that never had one, it only means that there is none.
            Err(StreamableHttpError::Client(error))
                if error.status() == Some(StatusCode::NOT_FOUND)
                    && self.streamed.load(Ordering::Acquire) =>
            {
                self.desk.expire();
            }
            Err(_) => {}
        }
        opened
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: Headers,
        _: usize,
    ) -> Result<McpSseStream, McpHttpError> {
        self.get_stream(uri, session_id, last_event_id, auth_token, custom_headers)
            .await
    }
}
