//! The way from a running call to its client: a form to fill in, a text from its model, the folders it works in.

use std::sync::{Arc, OnceLock};

use futures_util::future::try_join_all;
use serde_json::json;
use tokio::sync::oneshot;
use toolpost_model::{
    BoxFuture, ConsultError, ConsultKind, ConsultKinds, ConsultQuestion, ConsultReply,
    ConsultableCaller, InvocationId,
};

use super::{
    exchange::{ExchangeOutlet, QuestionRound},
    peer::McpPeer,
    rounds::method,
    sessions::McpSession,
    wire,
};

/// A client that can be asked.
pub(super) struct ConsultBridge {
    can: ConsultKinds,
    /// The session its answers come in by; without one it answers by repeating its request.
    stay: Option<Arc<McpSession>>,
    outlet: ExchangeOutlet,
    /// What a call wanted to ask that it does not answer.
    lacked: OnceLock<ConsultKind>,
}

impl ConsultBridge {
    pub(super) fn to(peer: &McpPeer, outlet: &ExchangeOutlet) -> Self {
        let stay = peer.stay.clone();
        let outlet = outlet.clone();
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
    pub(super) async fn ask(
        &self,
        questions: Vec<ConsultQuestion>,
    ) -> Result<Vec<ConsultReply>, ConsultError> {
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
                if !self.outlet.ask(QuestionRound { questions, answers }).await {
                    return Err(ConsultError::Canceled);
                }
                answered.await.map_err(|_| ConsultError::Canceled)
            }
        }
    }

    /// A request of ours on the stream of the client's, answered by a message of its own.
    async fn request(
        &self,
        stay: &Arc<McpSession>,
        question: ConsultQuestion,
    ) -> Result<ConsultReply, ConsultError> {
        let Some((id, answered)) = stay.expect_answer() else {
            return Err(ConsultError::Refused(
                "too many questions wait for this client".to_owned(),
            ));
        };
        let mut pending = PendingConsultation {
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
            Ok(Ok(value)) => Ok(ConsultReply {
                key: question.key,
                value,
            }),
            Ok(Err(reason)) => Err(ConsultError::Refused(reason)),
            Err(_) => Err(ConsultError::Canceled),
        }
    }
}

/// A question whose answer nobody needs once this is dropped; the client is told.
struct PendingConsultation<'a> {
    stay: &'a McpSession,
    outlet: &'a ExchangeOutlet,
    id: Option<String>,
}

impl Drop for PendingConsultation<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.stay.forget_question(&id);
            let params = json!({ "requestId": id, "reason": "the answer is not needed any more" });
            self.outlet
                .mention(wire::notification("notifications/cancelled", &params));
        }
    }
}

impl ConsultableCaller for ConsultBridge {
    fn answers(&self) -> ConsultKinds {
        self.can
    }

    fn lacks(&self, kind: ConsultKind) {
        let _ = self.lacked.set(kind);
    }

    fn consult(
        &self,
        _call: InvocationId,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>> {
        Box::pin(self.ask(questions))
    }
}
