//! One HTTP/2 connection to a service, opened at its first use and again after it broke.
//!
//! tonic has a channel that reconnects by itself. The channel does not report that the service at the other end is a
//! new one, which must be mounted first, nor whether a failed request was ever sent, which decides whether the request
//! may be sent again. So the connection is hyper's, and tonic adds gRPC on top of it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use prost::Message;
use rustix::net::sockopt;
use tokio::{net::TcpStream, time::timeout};
use tonic::{
    Request, Status,
    client::Grpc,
    codegen::{Service, http, http::uri::PathAndQuery},
};
use tonic_prost::ProstCodec;
use toolpost_model::CallContext;

use super::endpoint::GrpcEndpoint;

/// The time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Callers that waited for a failed attempt share its failure for this long instead of trying again one by one.
const SHARED_FAILURE: Duration = Duration::from_millis(50);
/// A machine that vanished is noticed after about this long. HTTP/2 pings would notice it too, but many servers close
/// the connection of a client that pings more often than every five minutes.
const SILENCE: Duration = Duration::from_secs(30);
/// tonic panics on a value that is not base64. The host does not read this header, so it is removed.
const STATUS_DETAILS: &str = "grpc-status-details-bin";

/// The channel to one endpoint.
#[derive(Debug)]
pub(super) struct GrpcChannel {
    endpoint: GrpcEndpoint,
    /// The current connection, shared by all callers.
    live: Mutex<Option<GrpcConnection>>,
    /// Held while a connection is opened, with the last failure.
    opening: tokio::sync::Mutex<Option<GrpcConnectFailure>>,
    opened: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
struct GrpcConnectFailure {
    at: Instant,
    why: UnreachableEndpoint,
}

/// A connection that was open a moment ago.
#[derive(Clone, Debug)]
pub(super) struct GrpcConnection {
    sender: SendRequest<tonic::body::Body>,
    origin: http::Uri,
    /// Its number among all connections of the module.
    pub(super) number: u64,
}

/// The endpoint did not accept a connection. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no connection to `{endpoint}`: {why}")]
pub(super) struct UnreachableEndpoint {
    endpoint: String,
    why: String,
}

/// A failed call.
#[derive(Debug)]
pub(super) struct RpcError {
    pub(super) status: Status,
    /// No byte of it left this machine.
    pub(super) unsent: bool,
}

/// The size and time limits of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrpcCallBounds {
    pub(super) request_bytes: usize,
    pub(super) response_bytes: usize,
    /// The time limit of the call. The service gets it as the gRPC timeout.
    pub(super) time: Duration,
}

impl GrpcChannel {
    /// `opened` counts connections, also those of earlier channels to the same module.
    pub(super) fn new(endpoint: GrpcEndpoint, opened: Arc<AtomicU64>) -> Self {
        Self {
            endpoint,
            live: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            opened,
        }
    }

    fn open_one(&self) -> Option<GrpcConnection> {
        let live = self.live.lock();
        live.as_ref()
            .filter(|live| !live.sender.is_closed())
            .cloned()
    }

    /// The current connection, or a new one.
    pub(super) async fn live(&self) -> Result<GrpcConnection, UnreachableEndpoint> {
        if let Some(live) = self.open_one() {
            return Ok(live);
        }
        // Calls that find no connection wait here for one attempt to open it, and then look again. Without `asked`, a
        // thousand calls to a dead service would try one after another, each with the full time limit, and the last of
        // them would wait for all. So a call that was already waiting when an attempt failed takes over its failure; a
        // call that comes later makes an attempt of its own.
        let asked = Instant::now();
        let mut opening = self.opening.lock().await;
        if let Some(live) = self.open_one() {
            return Ok(live);
        }
        if let Some(failed) = opening
            .as_ref()
            .filter(|failed| failed.at + SHARED_FAILURE > asked)
        {
            return Err(failed.why.clone());
        }
        match self.open().await {
            Ok(live) => {
                *opening = None;
                *self.live.lock() = Some(live.clone());
                Ok(live)
            }
            Err(error) => {
                let why = UnreachableEndpoint {
                    endpoint: self.endpoint.to_string(),
                    why: error.to_string(),
                };
                *opening = Some(GrpcConnectFailure {
                    at: Instant::now(),
                    why: why.clone(),
                });
                Err(why)
            }
        }
    }

    /// Stops new calls on this connection: the other end is about to close it, and still answers the calls it has.
    pub(super) fn forget(&self, gone: &GrpcConnection) {
        let mut live = self.live.lock();
        if live.as_ref().is_some_and(|live| live.number == gone.number) {
            *live = None;
        }
    }

    async fn open(&self) -> io::Result<GrpcConnection> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time");
        let stream = timeout(CONNECT, TcpStream::connect(self.endpoint.address()))
            .await
            .map_err(late)??;
        stream.set_nodelay(true)?;
        watch_for_silence(&stream)?;
        let shaking = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake::<_, tonic::body::Body>(TokioIo::new(stream));
        let (sender, connection) = timeout(CONNECT, shaking)
            .await
            .map_err(late)?
            .map_err(io::Error::other)?;
        tokio::spawn(async move {
            // hyper reports the end of the connection to each call on it.
            let _ = connection.await;
        });
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(GrpcConnection {
            sender,
            origin: self.endpoint.origin(),
            number,
        })
    }
}

fn watch_for_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE / 2)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 6)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    sockopt::set_tcp_user_timeout(
        stream,
        u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX),
    )?;
    Ok(())
}

impl GrpcConnection {
    /// Whether the connection is open, as far as this side can tell.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// One request and its response. If the future is dropped before the response, the call is canceled at the other
    /// end too.
    pub(super) async fn ask<Q, A>(
        &self,
        path: &'static str,
        question: Q,
        bounds: GrpcCallBounds,
        call: Option<&CallContext>,
    ) -> Result<A, RpcError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let unsent = Arc::new(AtomicBool::new(false));
        let wire = TonicTransport {
            sender: self.sender.clone(),
            unsent: Arc::clone(&unsent),
        };
        let mut client = Grpc::with_origin(wire, self.origin.clone())
            .max_encoding_message_size(bounds.request_bytes)
            .max_decoding_message_size(bounds.response_bytes);
        let mut request = Request::new(question);
        request.set_timeout(bounds.time);
        let metadata = request.metadata_mut();
        metadata.insert(
            "user-agent",
            tonic::metadata::MetadataValue::from_static(AGENT),
        );
        if let Some(call) = call {
            let span = call.trace();
            let id = ("x-toolpost-call", call.invocation_id().to_string());
            let state = span
                .tracestate()
                .map(|state| ("tracestate", state.to_owned()));
            for (name, value) in [id, ("traceparent", span.traceparent())]
                .into_iter()
                .chain(state)
            {
                if let Ok(value) = value.parse() {
                    metadata.insert(name, value);
                }
            }
        }
        let asked = client.unary(
            request,
            PathAndQuery::from_static(path),
            ProstCodec::<Q, A>::default(),
        );
        let answer = timeout(bounds.time, asked).await.unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(
                "the service did not answer before the deadline",
            ))
        });
        let unsent = || unsent.load(Ordering::Relaxed);
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| RpcError {
                status,
                unsent: unsent(),
            })
    }
}

const AGENT: &str = concat!("toolpost/", env!("CARGO_PKG_VERSION"));

/// hyper's connection as a tonic service.
struct TonicTransport {
    sender: SendRequest<tonic::body::Body>,
    unsent: Arc<AtomicBool>,
}

type GrpcResponseFuture =
    Pin<Box<dyn Future<Output = Result<http::Response<GrpcResponseBody>, hyper::Error>> + Send>>;

impl Service<http::Request<tonic::body::Body>> for TonicTransport {
    type Response = http::Response<GrpcResponseBody>;
    type Error = hyper::Error;
    type Future = GrpcResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> GrpcResponseFuture {
        let sending = self.sender.try_send_request(request);
        let unsent = Arc::clone(&self.unsent);
        Box::pin(async move {
            let mut response = sending.await.map_err(|error| {
                // hyper hands the request back in the error only if it wrote no byte of it. Only then did the call
                // have no effect for certain, and can be sent again although the tool may not be idempotent. tonic's
                // own channel does not pass this on.
                unsent.store(error.message().is_some(), Ordering::Relaxed);
                error.into_error()
            })?;
            response.headers_mut().remove(STATUS_DETAILS);
            Ok(response.map(GrpcResponseBody))
        })
    }
}

/// The body of a response without the headers that tonic cannot read.
struct GrpcResponseBody(Incoming);

impl Body for GrpcResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut frame = ready!(Pin::new(&mut self.0).poll_frame(context));
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            trailers.remove(STATUS_DETAILS);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
