//! The way from a running call to its client: a form to fill in, a text from its model, the folders it works in.

use std::sync::{Arc, OnceLock};

use futures_util::future::try_join_all;
use serde_json::json;
use tokio::sync::oneshot;
use toolpost_model::{
    BoxFuture, Caller, ConsultError, ConsultKind, ConsultKinds, InvocationId, Question, Reply,
};

use super::{
    exchange::{Outlet, Round},
    peer::Peer,
    rounds::method,
    sessions::Stay,
    wire,
};

/// A client that can be asked.
pub(super) struct Bridge {
    can: ConsultKinds,
    /// The session its answers come in by; without one it answers by repeating its request.
    stay: Option<Arc<Stay>>,
    outlet: Outlet,
    /// What a call wanted to ask that it does not answer.
    lacked: OnceLock<ConsultKind>,
}

impl Bridge {
    pub(super) fn to(peer: &Peer, outlet: &Outlet) -> Self {
        let (stay, outlet) = (peer.stay.clone(), outlet.clone());
        Self {
            can: peer.can.0,
            stay,
            outlet,
            lacked: OnceLock::new(),
        }
    }

    /// What a call wanted to ask that this client does not answer.
    pub(super) fn lacked(&self) -> Option<ConsultKind> {
        self.lacked.get().copied()
    }

    /// Asks, in the way of the client's era.
    pub(super) async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Reply>, ConsultError> {
        if let Some(other) = questions
            .iter()
            .find(|question| !self.can.includes(question.kind))
        {
            return Err(ConsultError::Unsupported(other.kind));
        }
        match &self.stay {
            Some(stay) => {
                let asked = questions
                    .into_iter()
                    .map(|question| self.request(stay, question));
                try_join_all(asked).await
            }
            None => {
                let (answers, answered) = oneshot::channel();
                if !self.outlet.ask(Round { questions, answers }).await {
                    return Err(ConsultError::Canceled);
                }
                answered.await.map_err(|_| ConsultError::Canceled)
            }
        }
    }

    /// A request of ours on the stream of the client's, answered by a message of its own.
    async fn request(&self, stay: &Arc<Stay>, question: Question) -> Result<Reply, ConsultError> {
        let Some((id, answered)) = stay.expect_answer() else {
            return Err(ConsultError::Refused(
                "too many questions wait for this client".to_owned(),
            ));
        };
        let mut pending = Pending {
            stay,
            outlet: &self.outlet,
            id: Some(id.clone()),
        };
        if !self
            .outlet
            .tell(wire::request(&id, method(question.kind), &question.params))
            .await
        {
            return Err(ConsultError::Canceled);
        }
        let answer = answered.await;
        pending.id = None;
        match answer {
            Ok(Ok(value)) => Ok(Reply {
                key: question.key,
                value,
            }),
            Ok(Err(reason)) => Err(ConsultError::Refused(reason)),
            Err(_) => Err(ConsultError::Canceled),
        }
    }
}

/// A question whose answer nobody needs once this is dropped; the client is told.
struct Pending<'a> {
    stay: &'a Stay,
    outlet: &'a Outlet,
    id: Option<String>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.stay.forget_question(&id);
            let params = json!({ "requestId": id, "reason": "the answer is not needed any more" });
            self.outlet
                .mention(wire::notification("notifications/cancelled", &params));
        }
    }
}

impl Caller for Bridge {
    fn answers(&self) -> ConsultKinds {
        self.can
    }

    fn lacks(&self, kind: ConsultKind) {
        let _ = self.lacked.set(kind);
    }

    fn consult(
        &self,
        _call: InvocationId,
        questions: Vec<Question>,
    ) -> BoxFuture<'_, Result<Vec<Reply>, ConsultError>> {
        Box::pin(self.ask(questions))
    }
}
