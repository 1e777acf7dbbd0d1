//! A host behind HTTP: the client sends messages by POST and receives them on one stream of server-sent events.
//!
//! POSTs and the stream can break at any time, together or alone, and callers should not notice. A broken stream is
//! reopened after its last event. A broken POST is repeated under the same id, which the host recognises. When the
//! stream is back, the client also repeats the requests that the host took and did not answer, because the host may
//! have died in between. The host then answers with the recorded end and does not run the call twice. Only when the
//! host has forgotten the session does the client open a new one, and the requests of the old session end with
//! `SessionLost`.

mod post;
mod session;
mod stream;
mod tls;

use std::{sync::Arc, time::Duration};

use reqwest::{Url, header::HeaderValue};
use tokio::sync::{Semaphore, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{error::ConnectError, hello::ConnectOptions, router::AnswerRouter};

/// The number of concurrent POSTs, and so of connections.
const POSTS: usize = 32;
/// The longest pause between two tries to open a stream or a session.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The address of a host and the paths of its routes.
#[derive(Clone, Debug)]
pub struct HttpHost {
    url: String,
    send_path: String,
    stream_path: String,
}

impl HttpHost {
    /// The host at this address, such as `http://127.0.0.1:8765`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            send_path: "/send".to_owned(),
            stream_path: "/stream".to_owned(),
        }
    }

    /// The path for sending messages, if it is not `/send`.
    #[must_use]
    pub fn send_path(mut self, path: impl Into<String>) -> Self {
        self.send_path = path.into();
        self
    }

    /// The path of the message stream, if it is not `/stream`.
    #[must_use]
    pub fn stream_path(mut self, path: impl Into<String>) -> Self {
        self.stream_path = path.into();
        self
    }

    fn routes(&self) -> Result<HostRoutes, ConnectError> {
        let refused = |reason: &dyn std::fmt::Display| ConnectError::Address {
            reason: reason.to_string(),
        };
        let base = Url::parse(&self.url).map_err(|error| refused(&error))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(refused(&"it must begin with `http://` or `https://`"));
        }
        let at = |path: &str| {
            let mut url = base.clone();
            let before = base.path().trim_end_matches('/');
            let after = path.trim_start_matches('/');
            url.set_path(&format!("{before}/{after}"));
            url
        };
        Ok(HostRoutes {
            session: at("session"),
            send: at(&self.send_path),
            stream: at(&self.stream_path),
        })
    }
}

struct HostRoutes {
    session: Url,
    send: Url,
    stream: Url,
}

pub(super) struct HttpWire {
    http: reqwest::Client,
    routes: HostRoutes,
    hello: ConnectOptions,
    router: Arc<AnswerRouter>,
    state: watch::Sender<HttpSessionState>,
    /// The newest session that the host reported as unknown.
    lost: watch::Sender<u64>,
    posts: Semaphore,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// The session to which POSTs go.
#[derive(Clone)]
enum HttpSessionState {
    /// The handshake of the session is done.
    Ready(Arc<HttpClientSession>),
    /// The client is between two sessions.
    Between,
    /// The client is closed or the host refused it; there will be no further session.
    Over,
}

struct HttpClientSession {
    /// The session's place among the sessions of this client.
    number: u64,
    /// The session's id at the host, the only credential that a request carries.
    key: HeaderValue,
}

impl HttpWire {
    pub(super) async fn connect(
        host: &HttpHost,
        hello: ConnectOptions,
        router: Arc<AnswerRouter>,
    ) -> Result<Arc<Self>, ConnectError> {
        let routes = host.routes()?;
        let wire = Arc::new(Self {
            http: tls::client(routes.session.scheme() == "https")?,
            routes,
            hello,
            router,
            state: watch::Sender::new(HttpSessionState::Between),
            lost: watch::Sender::new(0),
            posts: Semaphore::new(POSTS),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let (session, stream) = wire.establish(1).await?;
        wire.state
            .send_replace(HttpSessionState::Ready(session.clone()));
        wire.tasks.spawn(
            wire.stop
                .clone()
                .run_until_cancelled_owned(wire.clone().run(session, stream)),
        );
        Ok(wire)
    }
}

/// The pause before a try: none before the first, then a tenth of a second, doubled with each further try.
fn pause(tries: u32, longest: Duration) -> Duration {
    match tries {
        0 => Duration::ZERO,
        tries => longest.min(Duration::from_millis(100 << (tries - 1).min(10))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let pauses: Vec<_> = (0..10)
            .map(|tries| pause(tries, LONGEST_PAUSE).as_millis())
            .collect();
        assert_eq!(
            pauses,
            [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]
        );
        assert_eq!(pause(u32::MAX, LONGEST_PAUSE), LONGEST_PAUSE);
    }

    #[test]
    fn routes_of_an_address() {
        for (url, send) in [
            ("http://127.0.0.1:8765", "http://127.0.0.1:8765/send"),
            ("http://127.0.0.1:8765/", "http://127.0.0.1:8765/send"),
            ("https://example.org/a2e/", "https://example.org/a2e/send"),
        ] {
            assert_eq!(HttpHost::new(url).routes().unwrap().send.as_str(), send);
        }
        for url in ["", "127.0.0.1:8765", "ftp://example.org", "unix:/tmp/x"] {
            assert!(
                matches!(
                    HttpHost::new(url).routes(),
                    Err(ConnectError::Address { .. })
                ),
                "{url}"
            );
        }
    }
}
