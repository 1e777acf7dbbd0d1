//! Sends messages to the host.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{StatusCode, header::CONTENT_TYPE};
use tokio::{runtime::Handle, time::timeout};
use uuid::Uuid;

use super::{HttpClientSession, HttpSessionState, HttpWire, pause};
use crate::{
    Body, Message, ToolCancelRequest,
    client::{
        error::CallError,
        router::{AbandonedRequestAction, RouterEntryState},
        wire,
    },
};

/// The limit of one POST. Hosts confirm a message at once, independent of the duration of a call.
const POST: Duration = Duration::from_secs(30);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The limit for messages without a waiting caller.
const FORGOTTEN: Duration = Duration::from_secs(5);
/// The limit for the `shutdown` of a dropped client.
const FAREWELL: Duration = Duration::from_secs(2);
/// The most bytes of a POST's answer that are read to make the connection reusable.
const ANSWER: usize = 64 << 10;

/// The reason why a POST failed.
#[derive(Debug)]
pub(super) enum PostError {
    SessionUnknown,
    /// The host refuses this message.
    Refused(StatusCode),
    /// The host cannot take the message now.
    Busy(StatusCode),
    /// The host did not answer. It may have the message, unless there was no connection.
    Broken {
        may_have_arrived: bool,
        source: reqwest::Error,
    },
}

impl HttpWire {
    pub(super) async fn post(
        &self,
        session: &HttpClientSession,
        text: Bytes,
    ) -> Result<(), PostError> {
        let request = self
            .http
            .post(self.routes.send.clone())
            .header("x-session-id", &session.key)
            .header(CONTENT_TYPE, "text/plain; charset=utf-8")
            .timeout(POST)
            .body(text);
        let broken = |source: reqwest::Error| PostError::Broken {
            may_have_arrived: !source.is_connect(),
            source: source.without_url(),
        };
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        // An answer must be read to its end, or the connection cannot be reused.
        let mut read = 0;
        while read < ANSWER
            && let Ok(Some(piece)) = response.chunk().await
        {
            read += piece.len();
        }
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(PostError::SessionUnknown),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(PostError::Busy(status))
            }
            _ if status.is_server_error() => Err(PostError::Busy(status)),
            _ => Err(PostError::Refused(status)),
        }
    }

    /// Sends a message whose entry is in the table, until the host has it or the caller stops waiting.
    pub(in super::super) fn deliver(self: Arc<Self>, id: Uuid, text: Bytes) {
        let stop = self.stop.clone();
        let tasks = self.tasks.clone();
        tasks.spawn(
            stop.run_until_cancelled_owned(async move { self.keep_posting(id, text).await }),
        );
    }

    async fn keep_posting(self: Arc<Self>, id: Uuid, text: Bytes) {
        // The session in which an earlier try may have arrived.
        let mut may_have_arrived_in = None;
        let mut tries = 0;
        loop {
            let Some(session) = self.next_session().await else {
                return;
            };
            if may_have_arrived_in.is_some_and(|number| number != session.number) {
                // The host may have run the message in the session that it forgot. It no longer recognises the id in
                // the new session, so sending the message again could run the call twice.
                return self.router.answer(id, Err(CallError::SessionLost));
            }
            match self.router.sending(id) {
                RouterEntryState::Waiting => {}
                RouterEntryState::Abandoned(parting) => {
                    self.router.forget(id);
                    if may_have_arrived_in.is_some() && parting == AbandonedRequestAction::Cancel {
                        self.cancel(id);
                    }
                    return;
                }
                RouterEntryState::Over => return,
            }
            match self.post_in_turn(&session, text.clone()).await {
                Ok(()) => return self.arrived(id, &session),
                Err(PostError::SessionUnknown) => self.session_unknown(&session).await,
                Err(PostError::Refused(status)) => {
                    return self.router.answer(
                        id,
                        Err(CallError::Status {
                            status: status.as_u16(),
                        }),
                    );
                }
                Err(PostError::Busy(_)) => tries += 1,
                Err(PostError::Broken {
                    may_have_arrived: true,
                    ..
                }) => {
                    may_have_arrived_in = Some(session.number);
                }
                Err(PostError::Broken {
                    may_have_arrived: false,
                    ..
                }) => {}
            }
            if may_have_arrived_in.is_none() {
                self.router.not_arrived(id);
            }
            tokio::time::sleep(pause(tries, LONGEST_PAUSE)).await;
            tries += 1;
        }
    }

    /// The current session, or the next one if the client is between two. `None`: there will be no further session; the
    /// table is answered by the code that ended it.
    async fn next_session(&self) -> Option<Arc<HttpClientSession>> {
        let mut states = self.state.subscribe();
        let state = states
            .wait_for(|state| !matches!(state, HttpSessionState::Between))
            .await
            .ok()?;
        match &*state {
            HttpSessionState::Ready(session) => Some(session.clone()),
            HttpSessionState::Between | HttpSessionState::Over => None,
        }
    }

    async fn post_in_turn(
        &self,
        session: &HttpClientSession,
        text: Bytes,
    ) -> Result<(), PostError> {
        // The semaphore is never closed, so `acquire` always succeeds.
        let _turn = self.posts.acquire().await;
        self.post(session, text).await
    }

    fn arrived(self: Arc<Self>, id: Uuid, session: &HttpClientSession) {
        match self.router.taken(id, session.number) {
            RouterEntryState::Waiting | RouterEntryState::Over => {}
            RouterEntryState::Abandoned(parting) => {
                self.router.forget(id);
                match parting {
                    AbandonedRequestAction::Silent => {}
                    AbandonedRequestAction::Cancel => self.cancel(id),
                }
            }
        }
    }

    /// Asks the host to stop an abandoned call. Only for calls that may have arrived: a host cannot stop others.
    fn cancel(self: Arc<Self>, id: Uuid) {
        let call_id = id.simple().to_string();
        let message = Message::new(Body::ToolCancelRequest(ToolCancelRequest { call_id }));
        if let Ok(text) = wire::encode(&message) {
            self.deliver_and_forget(text);
        }
    }

    /// Sends a message with a single try in the background.
    pub(in super::super) fn deliver_and_forget(self: Arc<Self>, text: Bytes) {
        let HttpSessionState::Ready(session) = self.state.borrow().clone() else {
            return;
        };
        let stop = self.stop.clone();
        let tasks = self.tasks.clone();
        let once = async move {
            let _ = self.post_in_turn(&session, text).await;
        };
        tasks.spawn(stop.run_until_cancelled_owned(async move {
            let _ = timeout(FORGOTTEN, once).await;
        }));
    }

    pub(in super::super) async fn shut_down(&self, grace: Duration) {
        let HttpSessionState::Ready(session) = self.state.borrow().clone() else {
            return;
        };
        let Ok(text) = wire::encode(&wire::shutdown(grace)) else {
            return;
        };
        let twice = async {
            if let Err(PostError::Broken { .. } | PostError::Busy(_)) =
                self.post(&session, text.clone()).await
            {
                let _ = self.post(&session, text).await;
            }
        };
        let _ = timeout(FORGOTTEN, twice).await;
    }

    /// Sends `shutdown` for a dropped client. This is the only task that outlives the client, for at most two seconds.
    pub(in super::super) fn leave(self: &Arc<Self>) {
        let state = self.state.borrow().clone();
        if let (HttpSessionState::Ready(session), Ok(runtime), Ok(text)) = (
            state,
            Handle::try_current(),
            wire::encode(&wire::shutdown(Duration::ZERO)),
        ) {
            let wire = self.clone();
            runtime.spawn(async move {
                let _ = timeout(FAREWELL, wire.post(&session, text)).await;
            });
        }
        self.stop.cancel();
    }

    /// Repeats the requests that the host took in this session and did not answer.
    pub(super) fn deliver_unanswered(self: &Arc<Self>, session: &HttpClientSession) {
        for (id, text) in self.router.taken_in(session.number) {
            self.clone().deliver(id, text);
        }
    }
}
