//! Taking connections: TCP and the unix socket, with a bound on their number, on the time a request's head may
//! take, and with Nagle off, so that a streamed answer never waits for an acknowledgement.

use std::{net::IpAddr, sync::Arc, time::Duration};

use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

use crate::http::Gate;

/// Connections at the same time, on one listener.
const MAX_CONNECTIONS: usize = 8_192;
/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Something that can be listened on.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Serves until `closing`, then lets open requests finish for `grace`.
pub(crate) async fn serve(listener: Listener, gate: Gate, closing: CancellationToken, grace: Duration) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        // A full house must hear of the end too: its guests may sit there saying nothing.
        let place = closing.run_until_cancelled(Arc::clone(&room).acquire_owned()).await;
        let Some(Ok(place)) = place else { break };
        let accepted = tokio::select! {
            () = closing.cancelled() => break,
            accepted = accept(&listener) => accepted,
        };
        let (stream, address) = match accepted {
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
            .serve_connection(TokioIo::new(stream), gate.facing(address));
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A peer that goes away in the middle is its own business.
            let _ = watched.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections were still open at the end of the grace period");
    }
}

/// A connection, and where it comes from. A unix socket has no address.
async fn accept(listener: &Listener) -> std::io::Result<(Box<dyn Stream>, Option<IpAddr>)> {
    match listener {
        Listener::Tcp(tcp) => {
            let (stream, peer) = tcp.accept().await?;
            stream.set_nodelay(true)?;
            Ok((Box::new(stream), Some(peer.ip())))
        }
        Listener::Unix(unix) => Ok((Box::new(unix.accept().await?.0), None)),
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}
