//! Opens sessions, follows them until the host forgets them, and opens new ones.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{
    HttpClientSession, HttpSessionState, HttpWire, LONGEST_PAUSE, pause, post::PostError,
    stream::HostMessageStream,
};
use crate::{
    Body, Message,
    client::{
        error::{CallError, ConnectError, HostDeparture},
        hello,
        notice::HostNotice,
        wire,
    },
};

/// The most bytes that are read of an answer to `POST /session`.
const ANSWER: usize = 64 << 10;
/// The number of tries of the handshake.
const TRIES: u32 = 5;

#[derive(Deserialize)]
struct SessionOpenResponse {
    session_id: String,
}

impl HttpWire {
    /// Opens a session and its stream and performs the handshake.
    pub(super) async fn establish(
        self: &Arc<Self>,
        number: u64,
    ) -> Result<(Arc<HttpClientSession>, HostMessageStream), ConnectError> {
        let after = self.hello.timeout;
        timeout(after, self.open_session(number))
            .await
            .map_err(|_| ConnectError::Timeout { after })?
    }

    async fn open_session(
        self: &Arc<Self>,
        number: u64,
    ) -> Result<(Arc<HttpClientSession>, HostMessageStream), ConnectError> {
        let session = Arc::new(HttpClientSession {
            number,
            key: self.ask_for_key().await?,
        });
        let mut stream = HostMessageStream::new(session.clone(), self.hello.message_limit);
        let id = Uuid::new_v4();
        let forget = ForgetOnDrop { wire: self, id };
        let mut answer = self
            .router
            .expect_handshake(id)
            .map_err(|_| ConnectError::HostGone(HostDeparture::Ended))?;
        let mut posted = false;
        {
            let post = self.post_handshake(&session, id);
            let read = stream.read(self);
            tokio::pin!(post, read);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answer => {
                        let outcome = answer.map_or(Err(CallError::Closed), |answer| answer.outcome);
                        self.router.set_welcome(hello::accepted(outcome)?);
                        break;
                    }
                    _unknown = &mut read => return Err(ConnectError::Status { what: "GET /stream", status: 404 }),
                    done = &mut post, if !posted => {
                        done?;
                        posted = true;
                    }
                }
            }
        }
        drop(forget);
        Ok((session, stream))
    }

    async fn ask_for_key(&self) -> Result<HeaderValue, ConnectError> {
        let unreachable = |error: reqwest::Error| ConnectError::Unreachable {
            source: error.without_url().into(),
        };
        let request = self
            .http
            .post(self.routes.session.clone())
            .timeout(self.hello.timeout);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(ConnectError::Status {
                what: "POST /session",
                status: status.as_u16(),
            });
        }
        let mut text = Vec::new();
        while text.len() < ANSWER
            && let Some(piece) = response.chunk().await.map_err(unreachable)?
        {
            text.extend_from_slice(&piece);
        }
        let malformed = |reason: String| ConnectError::Malformed { reason };
        let opened: SessionOpenResponse = serde_json::from_slice(&text)
            .map_err(|error| malformed(format!("no session from `POST /session`: {error}")))?;
        let mut key = HeaderValue::try_from(opened.session_id)
            .map_err(|_| malformed("the session's id is not a valid header value".to_owned()))?;
        key.set_sensitive(true);
        Ok(key)
    }

    async fn post_handshake(
        &self,
        session: &HttpClientSession,
        id: Uuid,
    ) -> Result<(), ConnectError> {
        let body = Body::HandshakeRequest(self.hello.request());
        let message = Message {
            id: id.simple().to_string(),
            version: None,
            ts: None,
            body,
        };
        let text = wire::encode(&message).map_err(|error| ConnectError::Malformed {
            reason: error.to_string(),
        })?;
        let mut tries = 0;
        loop {
            let error = match self.post(session, text.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            tries += 1;
            match error {
                PostError::Busy(_) | PostError::Broken { .. } if tries < TRIES => {
                    sleep(pause(tries, LONGEST_PAUSE)).await;
                }
                PostError::Busy(status) | PostError::Refused(status) => {
                    return Err(ConnectError::Status {
                        what: "POST /send",
                        status: status.as_u16(),
                    });
                }
                PostError::SessionUnknown => {
                    return Err(ConnectError::Status {
                        what: "POST /send",
                        status: 404,
                    });
                }
                PostError::Broken { source, .. } => {
                    return Err(ConnectError::Unreachable {
                        source: source.into(),
                    });
                }
            }
        }
    }

    /// Follows one session after the other until the client ends.
    pub(super) async fn run(
        self: Arc<Self>,
        mut session: Arc<HttpClientSession>,
        mut stream: HostMessageStream,
    ) {
        loop {
            self.follow(&session, &mut stream).await;
            // The order matters. First `Between` stops the POSTs of the old session from sending, then the requests
            // that the host took in the old session fail. A request that is still on its way keeps its entry and goes
            // to the new session, unless an earlier try may have arrived. Answering all entries first would fail
            // requests that never left.
            self.state.send_replace(HttpSessionState::Between);
            self.router.session_lost(session.number);
            if self.router.over().is_some() {
                // This client ended the session itself.
                return self.give_up(&CallError::Closed);
            }
            match self.establish_again(session.number + 1).await {
                Ok(next) => (session, stream) = next,
                Err(error) => return self.give_up(&error),
            }
            self.state
                .send_replace(HttpSessionState::Ready(session.clone()));
            self.router.tell(HostNotice::NewSession);
        }
    }

    /// Reads the session's stream until the host reports the session as unknown, on the stream or in answer to a POST.
    async fn follow(self: &Arc<Self>, session: &HttpClientSession, stream: &mut HostMessageStream) {
        let mut lost = self.lost.subscribe();
        tokio::select! {
            _unknown = stream.read(self) => {}
            _ = lost.wait_for(|number| *number >= session.number) => {}
        }
    }

    fn give_up(&self, reason: &CallError) {
        self.state.send_replace(HttpSessionState::Over);
        self.router.end(reason);
    }

    /// Retries until there is a new session or the host refuses one.
    async fn establish_again(
        self: &Arc<Self>,
        number: u64,
    ) -> Result<(Arc<HttpClientSession>, HostMessageStream), CallError> {
        let mut tries = 0;
        loop {
            sleep(pause(tries, LONGEST_PAUSE)).await;
            tries += 1;
            match self.establish(number).await {
                Ok(established) => return Ok(established),
                Err(ConnectError::Refused { reason }) => return Err(CallError::Refused { reason }),
                Err(ConnectError::Protocol(error)) => return Err(CallError::Protocol(error)),
                // The host may be starting.
                Err(_) if self.router.over().is_none() => {}
                Err(_) => return Err(CallError::Closed),
            }
        }
    }

    /// Reports a session that the host answered to be unknown. Returns when there is a newer session, or no further
    /// one.
    pub(super) async fn session_unknown(&self, session: &HttpClientSession) {
        self.lost.send_if_modified(|newest| {
            let newer = session.number > *newest;
            *newest = session.number.max(*newest);
            newer
        });
        let mut states = self.state.subscribe();
        let is_another = |state: &HttpSessionState| match state {
            HttpSessionState::Ready(ready) => ready.number > session.number,
            HttpSessionState::Between => false,
            HttpSessionState::Over => true,
        };
        let _ = states.wait_for(is_another).await;
    }
}

/// Removes the entry of a handshake that is cancelled.
struct ForgetOnDrop<'a> {
    wire: &'a HttpWire,
    id: Uuid,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.wire.router.forget(self.id);
    }
}
