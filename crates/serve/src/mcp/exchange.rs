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
use toolpost_model::{Question, Reply as Answer};

use super::{fault::Fault, meta::Level, wire::Reply};

/// Messages a slow reader may fall behind before it loses some.
const ROOM: usize = 256;

/// How a request ends.
pub(super) type Outcome = Result<Reply, Fault>;

/// What work says before its end.
enum Said {
    Note(Bytes),
    Ask(Round),
}

/// Questions that the client answers by repeating its request.
pub(super) struct Round {
    pub(super) questions: Vec<Question>,
    pub(super) answers: oneshot::Sender<Vec<Answer>>,
}

/// What the client wants to hear before the end. It may say so anew with each request for the same work.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    pub(super) progress_token: Option<Value>,
    /// The least serious line.
    pub(super) level: Option<Level>,
}

type Shared<T> = Arc<Mutex<T>>;

/// Where work says something.
#[derive(Clone)]
pub(super) struct Outlet {
    said: mpsc::Sender<Said>,
    pub(super) wishes: Shared<Wishes>,
}

impl Outlet {
    /// Tells something that may be lost where nobody reads. `false`: it was.
    pub(super) fn mention(&self, message: Bytes) -> bool {
        self.said.try_send(Said::Note(message)).is_ok()
    }

    /// Tells something that must arrive. `false`: nobody is there any more.
    pub(super) async fn tell(&self, message: Bytes) -> bool {
        self.said.send(Said::Note(message)).await.is_ok()
    }

    /// Ends the answer to this request with questions; the next one brings the answers. `false`: nobody is there.
    pub(super) async fn ask(&self, round: Round) -> bool {
        self.said.send(Said::Ask(round)).await.is_ok()
    }
}

/// What comes next of a request.
pub(super) enum Step {
    Note(Bytes),
    Ask(Round),
    Done(Outcome),
}

/// What becomes of the work when nobody waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenLeft {
    /// It is told to stop.
    Stops,
    /// It goes on: a connection that breaks says nothing about what the client wants.
    GoesOn,
}

enum Work {
    Here(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    Task(JoinHandle<Outcome>),
    Over,
}

/// A request under way.
pub(super) struct Exchange {
    work: Work,
    said: mpsc::Receiver<Said>,
    wishes: Shared<Wishes>,
    /// The end, while something that was said before is still to be told.
    end: Option<Outcome>,
    when_left: WhenLeft,
}

impl Exchange {
    pub(super) fn begin<F>(when_left: WhenLeft, work: impl FnOnce(Outlet) -> F) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let (outlet, said) = mpsc::channel(ROOM);
        let wishes = Shared::default();
        let work = Work::Here(Box::pin(work(Outlet {
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
    pub(super) fn heed(&self, wishes: Wishes) {
        *self.wishes.lock() = wishes;
    }

    /// The next thing to tell. Everything that was said comes before the end.
    pub(super) async fn next(&mut self) -> Step {
        if self.end.is_none() {
            tokio::select! {
                biased;
                Some(said) = self.said.recv() => return said.into(),
                end = run(&mut self.work) => {
                    self.work = Work::Over;
                    self.end = Some(end);
                }
            }
        }
        match (self.said.try_recv(), self.end.take()) {
            (Ok(said), end) => {
                self.end = end;
                said.into()
            }
            (Err(_), Some(end)) => Step::Done(end),
            (Err(_), None) => Step::Done(Err(Fault::internal("the request is over"))),
        }
    }

    /// Lets the work go on by itself, whether or not somebody reads.
    pub(super) fn go_on_alone(&mut self) {
        self.work = match std::mem::replace(&mut self.work, Work::Over) {
            Work::Here(work) => Work::Task(tokio::spawn(work)),
            other @ (Work::Task(_) | Work::Over) => other,
        };
    }
}

impl From<Said> for Step {
    fn from(said: Said) -> Self {
        match said {
            Said::Note(message) => Self::Note(message),
            Said::Ask(round) => Self::Ask(round),
        }
    }
}

async fn run(work: &mut Work) -> Outcome {
    match work {
        Work::Here(work) => work.await,
        Work::Task(task) => match task.await {
            Ok(end) => end,
            Err(_) => Err(Fault::internal("the work on this request broke off")),
        },
        Work::Over => std::future::pending().await,
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match (
            std::mem::replace(&mut self.work, Work::Over),
            self.when_left,
        ) {
            (Work::Here(work), WhenLeft::GoesOn) => {
                // Without a runtime there is nothing left to run on: the process is ending.
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(work);
                }
            }
            (Work::Task(task), WhenLeft::Stops) => task.abort(),
            (Work::Here(_), WhenLeft::Stops)
            | (Work::Task(_), WhenLeft::GoesOn)
            | (Work::Over, _) => {}
        }
    }
}
