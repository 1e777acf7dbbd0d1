//! Accepts connections over TCP and the unix socket. The number of connections and the time for a request's head are
//! limited. Nagle's algorithm is off, so that a streamed answer never waits for an acknowledgement.

use std::{sync::Arc, time::Duration};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::http::{ConnectionOrigin, RequestGate, SocketPeer};

const MAX_CONNECTIONS: usize = 8_192;
/// The time for the head of a request to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The buffer of a connection within the process, in bytes.
const MEMORY_BUFFER: usize = 64 << 10;

pub(crate) enum SocketListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Serves until `closing` is cancelled, then lets open requests finish for `grace`.
pub(crate) async fn serve(
    listener: SocketListener,
    gate: RequestGate,
    closing: CancellationToken,
    grace: Duration,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        // The wait for a free place must end with `closing` too, because all open connections may be idle.
        let place = closing
            .run_until_cancelled(Arc::clone(&room).acquire_owned())
            .await;
        let Some(Ok(place)) = place else { break };
        let accepted = tokio::select! {
            () = closing.cancelled() => break,
            accepted = accept(&listener) => accepted,
        };
        let (stream, origin) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely the process has no file descriptors left. A pause helps; an immediate retry would only
                // use the processor.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), gate.facing(origin))
            .with_upgrades();
        let closing = closing.clone();
        connections.spawn(async move {
            let mut connection = Box::pin(connection);
            // Errors of a connection whose peer disconnected are ignored.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!("some connections were still open at the end of the grace period");
    }
}

/// Serves a connection within this process.
///
/// There is no limit on idle time, because a person at the command line thinks between two requests.
pub(crate) fn serve_in_memory(gate: RequestGate) -> InProcessConnection {
    let (stream, far) = tokio::io::duplex(MEMORY_BUFFER);
    let connection = http1::Builder::new().serve_connection(TokioIo::new(far), gate);
    let served = tokio::spawn(async move {
        // The connection ends when the client's end is dropped.
        let _ = connection.await;
    });
    InProcessConnection { stream, served }
}

/// An HTTP connection between a host and a command in the same process.
pub struct InProcessConnection {
    /// The client's end.
    pub stream: DuplexStream,
    /// Ends after the client's end is dropped, when the requests of the connection have noticed that their caller is gone. A
    /// host that shuts down before would end a waiting call as unanswered instead of canceled.
    pub served: JoinHandle<()>,
}

/// Accepts a connection and determines its origin.
async fn accept(
    listener: &SocketListener,
) -> std::io::Result<(Box<dyn SocketStream>, ConnectionOrigin)> {
    match listener {
        SocketListener::Tcp(tcp) => {
            let (stream, peer) = tcp.accept().await?;
            stream.set_nodelay(true)?;
            Ok((
                Box::new(stream),
                ConnectionOrigin {
                    address: Some(peer.ip()),
                    peer: None,
                },
            ))
        }
        SocketListener::Unix(unix) => {
            let (stream, _) = unix.accept().await?;
            let peer = SocketPeer {
                user: stream.peer_cred()?.uid(),
            };
            Ok((
                Box::new(stream),
                ConnectionOrigin {
                    address: None,
                    peer: Some(peer),
                },
            ))
        }
    }
}

trait SocketStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> SocketStream for T {}
