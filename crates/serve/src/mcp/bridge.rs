//! Lets a running call ask its client: for a form, for a text of its model, or for its folders.

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
    /// The session that receives the client's answers. Without one the client answers by repeating its request.
    stay: Option<Arc<McpSession>>,
    outlet: ExchangeOutlet,
    /// The kind of question that the call needed and the client does not support.
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

    /// The kind of question that the call needed and the client does not support.
    pub(super) fn lacked(&self) -> Option<ConsultKind> {
        self.lacked.get().copied()
    }

    /// Asks in the form of the client's era.
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

    /// Sends a request on the stream of the client's request. The client answers it with a separate message.
    async fn request(
        &self,
        stay: &Arc<McpSession>,
        question: ConsultQuestion,
    ) -> Result<ConsultReply, ConsultError> {
        let Some((id, answered)) = stay.expect_answer() else {
            return Err(ConsultError::Refused(
                "this client has too many open questions".to_owned(),
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

/// A question that is withdrawn when this value is dropped before the answer; the client is notified.
struct PendingConsultation<'a> {
    stay: &'a McpSession,
    outlet: &'a ExchangeOutlet,
    id: Option<String>,
}

impl Drop for PendingConsultation<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.stay.forget_question(&id);
            let params = json!({ "requestId": id, "reason": "the answer is no longer needed" });
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
