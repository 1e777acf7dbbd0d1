//! A running request: the work that answers it, and the messages of that work before the answer.
//!
//! The work runs in the task of its reader, so that a plain call costs no switch between tasks. It moves to its own
//! task when it sends a message before its end: from then on a slow reader must not delay it.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use toolpost_model::{ConsultQuestion, ConsultReply};

use super::{fault::McpFault, meta::McpLogLevel, wire::McpReply};

/// The most messages that wait for a slow reader before messages are lost.
const ROOM: usize = 256;

pub(super) type ExchangeResult = Result<McpReply, McpFault>;

enum InterimMessage {
    Note(Bytes),
    Ask(QuestionRound),
}

/// Questions that the client answers by repeating its request.
pub(super) struct QuestionRound {
    pub(super) questions: Vec<ConsultQuestion>,
    pub(super) answers: oneshot::Sender<Vec<ConsultReply>>,
}

/// The notifications that the client wants before the end. Each request for the same work can change them.
#[derive(Clone, Debug, Default)]
pub(super) struct NotificationWishes {
    pub(super) progress_token: Option<Value>,
    /// The lowest level of log lines.
    pub(super) level: Option<McpLogLevel>,
}

type SharedMutex<T> = Arc<Mutex<T>>;

/// The sender for messages before the end.
#[derive(Clone)]
pub(super) struct ExchangeOutlet {
    said: mpsc::Sender<InterimMessage>,
    pub(super) wishes: SharedMutex<NotificationWishes>,
}

impl ExchangeOutlet {
    /// Sends a message that may be lost. `false`: it was lost.
    pub(super) fn mention(&self, message: Bytes) -> bool {
        self.said.try_send(InterimMessage::Note(message)).is_ok()
    }

    /// Sends a message that must arrive. `false`: the reader is gone.
    pub(super) async fn tell(&self, message: Bytes) -> bool {
        self.said.send(InterimMessage::Note(message)).await.is_ok()
    }

    /// Ends the answer to this request with questions; the next request brings the answers. `false`: the reader is
    /// gone.
    pub(super) async fn ask(&self, round: QuestionRound) -> bool {
        self.said.send(InterimMessage::Ask(round)).await.is_ok()
    }
}

pub(super) enum ExchangeStep {
    Note(Bytes),
    Ask(QuestionRound),
    Done(ExchangeResult),
}

/// The treatment of the work when its reader is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenLeft {
    /// The work is canceled.
    Stops,
    /// The work continues, because a broken connection does not mean that the client lost interest.
    GoesOn,
}

enum ExchangeWork {
    Here(Pin<Box<dyn Future<Output = ExchangeResult> + Send>>),
    Task(JoinHandle<ExchangeResult>),
    Over,
}

pub(super) struct McpExchange {
    work: ExchangeWork,
    said: mpsc::Receiver<InterimMessage>,
    wishes: SharedMutex<NotificationWishes>,
    /// The end, kept until all earlier messages were returned.
    end: Option<ExchangeResult>,
    when_left: WhenLeft,
}

impl McpExchange {
    pub(super) fn begin<F>(when_left: WhenLeft, work: impl FnOnce(ExchangeOutlet) -> F) -> Self
    where
        F: Future<Output = ExchangeResult> + Send + 'static,
    {
        let (outlet, said) = mpsc::channel(ROOM);
        let wishes = SharedMutex::default();
        let work = ExchangeWork::Here(Box::pin(work(ExchangeOutlet {
            said: outlet,
            wishes: Arc::clone(&wishes),
        })));
        Self {
            work,
            said,
            wishes,
            end: None,
            when_left,
        }
    }

    /// Sets the notifications that the client wants from now on.
    pub(super) fn heed(&self, wishes: NotificationWishes) {
        *self.wishes.lock() = wishes;
    }

    /// The next item. All messages come before the end.
    pub(super) async fn next(&mut self) -> ExchangeStep {
        if self.end.is_none() {
            tokio::select! {
                biased;
                Some(said) = self.said.recv() => return said.into(),
                end = run(&mut self.work) => {
                    self.work = ExchangeWork::Over;
                    self.end = Some(end);
                }
            }
        }
        match (self.said.try_recv(), self.end.take()) {
            (Ok(said), end) => {
                self.end = end;
                said.into()
            }
            (Err(_), Some(end)) => ExchangeStep::Done(end),
            (Err(_), None) => ExchangeStep::Done(Err(McpFault::internal("the request is over"))),
        }
    }

    /// Lets the work continue by itself, with or without a reader.
    pub(super) fn go_on_alone(&mut self) {
        self.work = match std::mem::replace(&mut self.work, ExchangeWork::Over) {
            ExchangeWork::Here(work) => ExchangeWork::Task(tokio::spawn(work)),
            other @ (ExchangeWork::Task(_) | ExchangeWork::Over) => other,
        };
    }
}

impl From<InterimMessage> for ExchangeStep {
    fn from(said: InterimMessage) -> Self {
        match said {
            InterimMessage::Note(message) => Self::Note(message),
            InterimMessage::Ask(round) => Self::Ask(round),
        }
    }
}

async fn run(work: &mut ExchangeWork) -> ExchangeResult {
    match work {
        ExchangeWork::Here(work) => work.await,
        ExchangeWork::Task(task) => match task.await {
            Ok(end) => end,
            Err(_) => Err(McpFault::internal("the work on this request failed")),
        },
        ExchangeWork::Over => std::future::pending().await,
    }
}

impl Drop for McpExchange {
    fn drop(&mut self) {
        match (
            std::mem::replace(&mut self.work, ExchangeWork::Over),
            self.when_left,
        ) {
            (ExchangeWork::Here(work), WhenLeft::GoesOn) => {
                // Without a runtime the work cannot continue: the process is ending.
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(work);
                }
            }
            (ExchangeWork::Task(task), WhenLeft::Stops) => task.abort(),
            (ExchangeWork::Here(_), WhenLeft::Stops)
            | (ExchangeWork::Task(_), WhenLeft::GoesOn)
            | (ExchangeWork::Over, _) => {}
        }
    }
}
