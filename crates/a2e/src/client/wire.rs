//! The three transports behind one type. It is an enum rather than a trait object, because there are only three and a
//! call within the process must not pay for the others.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    error::{CallError, HostDeparture},
    http::HttpWire,
    router::{AnswerRouter, RouterEntry},
    stdio::StdioWire,
};
use crate::{
    Body, InProcessLink, Message, Shutdown,
    codec::{self, MessageFraming},
};

pub(super) enum ClientWire {
    Link(LinkWire),
    Stdio(StdioWire),
    Http(Arc<HttpWire>),
}

impl ClientWire {
    /// Adds the entry to the table and sends the message.
    pub(super) async fn send(
        &self,
        router: &AnswerRouter,
        id: Uuid,
        message: Message,
        entry: RouterEntry,
    ) -> Result<(), CallError> {
        let gone = |_| {
            router
                .over()
                .unwrap_or(CallError::HostGone(HostDeparture::Ended))
        };
        match self {
            Self::Link(link) => {
                // Room is reserved before the entry is added. From then on sending cannot fail or wait, so an entry in
                // the table always counts as handed over, and a cancelled send leaves no entry.
                let room = link.sender.reserve().await.map_err(gone)?;
                router.insert(id, entry.handed_over())?;
                room.send(message);
            }
            Self::Stdio(stdio) => {
                let line = encode(&message)?;
                let room = stdio.lines.reserve().await.map_err(gone)?;
                router.insert(id, entry.handed_over())?;
                room.send(line);
            }
            Self::Http(http) => {
                let text = encode(&message)?;
                router.insert(id, entry.sent_as(text.clone()))?;
                http.clone().deliver(id, text);
            }
        }
        Ok(())
    }

    /// Sends a message without a waiting caller, if it can be sent at once.
    pub(super) fn send_and_forget(&self, message: Message) {
        match self {
            Self::Link(link) => drop(link.sender.try_send(message)),
            Self::Stdio(stdio) => {
                if let Ok(line) = encode(&message) {
                    drop(stdio.lines.try_send(line));
                }
            }
            Self::Http(http) => {
                if let Ok(text) = encode(&message) {
                    http.clone().deliver_and_forget(text);
                }
            }
        }
    }

    /// Sends `shutdown` with the time that running calls get.
    pub(super) async fn shut_down(&self, grace: Duration) {
        let message = shutdown(grace);
        match self {
            Self::Link(link) => drop(link.sender.send(message).await),
            Self::Stdio(stdio) => {
                if let Ok(line) = encode(&message) {
                    drop(stdio.lines.send(line).await);
                }
            }
            Self::Http(http) => http.shut_down(grace).await,
        }
    }

    /// Ends the connection and all its tasks.
    pub(super) async fn finish(&self) {
        self.stop();
        let tasks = match self {
            Self::Link(link) => &link.tasks,
            Self::Stdio(stdio) => &stdio.tasks,
            Self::Http(http) => &http.tasks,
        };
        tasks.close();
        tasks.wait().await;
    }

    /// Tells all tasks of the connection to end.
    pub(super) fn stop(&self) {
        match self {
            Self::Link(link) => link.stop.cancel(),
            Self::Stdio(stdio) => stdio.stop.cancel(),
            Self::Http(http) => http.stop.cancel(),
        }
    }

    /// Ends the connection of a dropped client, without waiting.
    pub(super) fn leave(&self) {
        match self {
            Self::Link(link) => {
                drop(link.sender.try_send(shutdown(Duration::ZERO)));
                link.stop.cancel();
            }
            Self::Stdio(stdio) => {
                if let Ok(line) = encode(&shutdown(Duration::ZERO)) {
                    drop(stdio.lines.try_send(line));
                }
                stdio.stop.cancel();
            }
            Self::Http(http) => http.leave(),
        }
    }
}

pub(super) fn shutdown(grace: Duration) -> Message {
    Message::new(Body::Shutdown(Shutdown { timeout: grace }))
}

/// A message as text, without its line end.
pub(super) fn encode(message: &Message) -> Result<Bytes, CallError> {
    let mut line = codec::encode(message, MessageFraming::Line);
    line.pop();
    // The host would refuse the message without being able to name its request.
    if codec::is_too_deep(&line) {
        return Err(CallError::Arguments {
            reason: "they are nested too deeply",
        });
    }
    Ok(line.into())
}

pub(super) struct LinkWire {
    sender: mpsc::Sender<Message>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl LinkWire {
    pub(super) fn start(link: InProcessLink, router: Arc<AnswerRouter>) -> Self {
        let InProcessLink {
            sender,
            mut receiver,
        } = link;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let read = async move {
            while let Some(message) = receiver.recv().await {
                router.route(message);
            }
            router.end(&CallError::HostGone(HostDeparture::Ended));
        };
        tasks.spawn(stop.clone().run_until_cancelled_owned(read));
        Self {
            sender,
            stop,
            tasks,
        }
    }
}
