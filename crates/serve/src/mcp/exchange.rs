//! One request under way: the work that answers it, and what that work says before its answer.
//!
//! The work runs in the task of whoever waits for it, so that a plain call costs no hand-over. Only when it says
//! something before its end does it move to a task of its own: from then on a reader that is slow must not hold it up.

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

/// Messages a slow reader may fall behind before it loses some.
const ROOM: usize = 256;

/// How a request ends.
pub(super) type ExchangeResult = Result<McpReply, McpFault>;

/// What work says before its end.
enum InterimMessage {
    Note(Bytes),
    Ask(QuestionRound),
}

/// Questions that the client answers by repeating its request.
pub(super) struct QuestionRound {
    pub(super) questions: Vec<ConsultQuestion>,
    pub(super) answers: oneshot::Sender<Vec<ConsultReply>>,
}

/// What the client wants to hear before the end. It may say so anew with each request for the same work.
#[derive(Clone, Debug, Default)]
pub(super) struct NotificationWishes {
    pub(super) progress_token: Option<Value>,
    /// The least serious line.
    pub(super) level: Option<McpLogLevel>,
}

type SharedMutex<T> = Arc<Mutex<T>>;

/// Where work says something.
#[derive(Clone)]
pub(super) struct ExchangeOutlet {
    said: mpsc::Sender<InterimMessage>,
    pub(super) wishes: SharedMutex<NotificationWishes>,
}

impl ExchangeOutlet {
    /// Tells something that may be lost where nobody reads. `false`: it was.
    pub(super) fn mention(&self, message: Bytes) -> bool {
        self.said.try_send(InterimMessage::Note(message)).is_ok()
    }

    /// Tells something that must arrive. `false`: nobody is there any more.
    pub(super) async fn tell(&self, message: Bytes) -> bool {
        self.said.send(InterimMessage::Note(message)).await.is_ok()
    }

    /// Ends the answer to this request with questions; the next one brings the answers. `false`: nobody is there.
    pub(super) async fn ask(&self, round: QuestionRound) -> bool {
        self.said.send(InterimMessage::Ask(round)).await.is_ok()
    }
}

/// What comes next of a request.
pub(super) enum ExchangeStep {
    Note(Bytes),
    Ask(QuestionRound),
    Done(ExchangeResult),
}

/// What becomes of the work when nobody waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenLeft {
    /// It is told to stop.
    Stops,
    /// It goes on: a connection that breaks says nothing about what the client wants.
    GoesOn,
}

enum ExchangeWork {
    Here(Pin<Box<dyn Future<Output = ExchangeResult> + Send>>),
    Task(JoinHandle<ExchangeResult>),
    Over,
}

/// A request under way.
pub(super) struct McpExchange {
    work: ExchangeWork,
    said: mpsc::Receiver<InterimMessage>,
    wishes: SharedMutex<NotificationWishes>,
    /// The end, while something that was said before is still to be told.
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

    /// Takes what the client wants to hear from now on.
    pub(super) fn heed(&self, wishes: NotificationWishes) {
        *self.wishes.lock() = wishes;
    }

    /// The next thing to tell. Everything that was said comes before the end.
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

    /// Lets the work go on by itself, whether or not somebody reads.
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
            Err(_) => Err(McpFault::internal("the work on this request broke off")),
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
                // Without a runtime there is nothing left to run on: the process is ending.
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
