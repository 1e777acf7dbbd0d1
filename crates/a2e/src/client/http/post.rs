//! Messages on their way to the host.

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

/// The host's half of a POST; hosts answer at once, whatever the call takes.
const POST: Duration = Duration::from_secs(30);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// What is sent for nobody in particular may take so long.
const FORGOTTEN: Duration = Duration::from_secs(5);
/// And so long once the client is gone.
const FAREWELL: Duration = Duration::from_secs(2);
/// The answer to a POST is read so far, to use the connection again.
const ANSWER: usize = 64 << 10;

/// Why a POST did not do it.
#[derive(Debug)]
pub(super) enum PostError {
    /// The host does not know the session.
    SessionUnknown,
    /// The host will not have this message.
    Refused(StatusCode),
    /// The host cannot take it now.
    Busy(StatusCode),
    /// No answer came. Whether the host has the message nobody knows, unless there was no connection.
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
        // To the end, or the connection cannot be used again.
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

    /// Sends a message whose entry is in the table, until the host has it or nobody wants it any more.
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
                // The forgotten session may have run it. A second time is not ours to risk.
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

    /// The session to send in, once there is one. `None`: there will be none, and whoever ended it answers what is
    /// in the table.
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
        // The semaphore is never closed, so this is always a turn.
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

    /// Asks the host to stop a call that nobody waits for. Not before it has arrived: the host would not know it.
    fn cancel(self: Arc<Self>, id: Uuid) {
        let call_id = id.simple().to_string();
        let message = Message::new(Body::ToolCancelRequest(ToolCancelRequest { call_id }));
        if let Ok(text) = wire::encode(&message) {
            self.deliver_and_forget(text);
        }
    }

    /// One try, soon or never.
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

    /// Tells the host that the agent leaves.
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

    /// The same for a client that was dropped. The one task that outlives it, for a moment.
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

    /// Sends again what the host took in this session and has not answered.
    pub(super) fn deliver_unanswered(self: &Arc<Self>, session: &HttpClientSession) {
        for (id, text) in self.router.taken_in(session.number) {
            self.clone().deliver(id, text);
        }
    }
}
