//! Taking connections: TCP and the unix socket, with a bound on their number, on the time a request's head may
//! take, and with Nagle off, so that a streamed answer never waits for an acknowledgement.

use std::{sync::Arc, time::Duration};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::http::{ConnectionOrigin, RequestGate, SocketPeer};

/// Connections at the same time, on one listener.
const MAX_CONNECTIONS: usize = 8_192;
/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes on their way over a connection within the process.
const MEMORY_BUFFER: usize = 64 << 10;

/// Something that can be listened on.
pub(crate) enum SocketListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Serves until `closing`, then lets open requests finish for `grace`.
pub(crate) async fn serve(
    listener: SocketListener,
    gate: RequestGate,
    closing: CancellationToken,
    grace: Duration,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        // A full house must hear of the end too: its guests may sit there saying nothing.
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
                // Out of descriptors, most likely: waiting is all that helps, and spinning would not.
                tracing::warn!(%error, "a connection could not be taken");
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
            // A peer that goes away in the middle is its own business.
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

/// Serves a connection to this process itself; what this gives is the client's end.
///
/// Requests may be far apart: the person at the command line thinks between two of them.
pub(crate) fn serve_in_memory(gate: RequestGate) -> DuplexStream {
    let (near, far) = tokio::io::duplex(MEMORY_BUFFER);
    let connection = http1::Builder::new().serve_connection(TokioIo::new(far), gate);
    tokio::spawn(async move {
        // The client's end is gone.
        let _ = connection.await;
    });
    near
}

/// A connection, and where it comes from.
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
