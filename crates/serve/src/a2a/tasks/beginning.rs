//! From a message to a task whose calls are on record.

use std::sync::Arc;

use toolpost_a2a::wire::{ErrorCode, Refusal};
use toolpost_core::{Acknowledged, CallHandle, CallOnRecord, CallRequest, Session, Standing};
use toolpost_model::{InvocationId, ModelInput};

use super::{
    super::{
        Face,
        asked::{AskedCall, invalid},
        follow, journal_trouble,
        task::{Making, Task},
    },
    FACE, context_of, find,
    restoring::{call_of_task, request_id},
    shelf::MessageKey,
};

/// A message that asks for calls.
pub(in super::super) struct Begin {
    pub(in super::super) session: Arc<Session>,
    pub(in super::super) message_id: String,
    pub(in super::super) calls: Vec<AskedCall>,
    pub(in super::super) tells_events: bool,
}

impl Begin {
    /// The task of a message. Sent twice it is one task, and nothing runs twice: while the first is in memory, because
    /// it is found there; afterwards, because the host knows the requests by their ids.
    pub(in super::super) async fn task(self, face: &Arc<Face>) -> Result<Arc<Task>, Refusal> {
        let key = MessageKey { session: self.session.id().clone(), message_id: self.message_id.clone() };
        let calls: Arc<[AskedCall]> = self.calls.clone().into();
        let beginning = face.tasks.beginning(key.clone(), Arc::clone(&calls));
        if beginning.calls != calls {
            return Err(invalid("`messageId` was used for another message in this context"));
        }
        // Apart from the request: a client that leaves in the middle must not leave half a task behind.
        let face = Arc::clone(face);
        let begun = tokio::spawn(async move {
            let begun = beginning.task.get_or_try_init(|| self.begin(&face)).await.cloned();
            if begun.is_err() {
                face.tasks.forget_beginning(&key);
            }
            begun
        });
        begun.await.unwrap_or_else(|_| Err(Refusal::new(ErrorCode::Internal, "the task broke off")))
    }

    async fn begin(&self, face: &Arc<Face>) -> Result<Arc<Task>, Refusal> {
        let own = InvocationId::new().to_string();
        let mut id = own.clone();
        let mut recorded = Vec::with_capacity(self.calls.len());
        let mut handles = Vec::with_capacity(self.calls.len());
        for (place, call) in self.calls.iter().enumerate() {
            let handle = face.host.start(self.request(face, call, &id)).await;
            if place == 0 {
                let first = self.on_record(face, &handle).await?;
                // The message was sent before, and the call belongs to the task that was made of it then. Calls that the
                // host did not get round to at that time join it.
                if let Some(earlier) = first.correlation_id.clone().filter(|_| first.face == FACE) {
                    id = earlier;
                }
                recorded.push(first);
            } else {
                handles.push(handle);
            }
        }
        for handle in &handles {
            recorded.push(self.on_record(face, handle).await?);
        }
        if id != own {
            let gone = || Refusal::new(ErrorCode::Internal, "the first task of this message cannot be found");
            return find(face, &id, self.session.principal()).await?.ok_or_else(gone);
        }
        let owner = self.session.principal().clone();
        let context_id = context_of(self.session.id(), &owner).unwrap_or_default();
        let mut calls: Vec<_> = recorded.iter().map(call_of_task).collect();
        for (call, asked) in calls.iter_mut().zip(&self.calls) {
            // As it was sent, so that its caller knows it again; unless it holds what must not be shown.
            call.tool_call_id = face.host.redacted(&asked.tool_call_id).into_owned();
        }
        let task = Task::new(Making {
            id,
            context_id,
            owner,
            message_id: face.host.redacted(&self.message_id).into_owned(),
            calls,
            tells_events: self.tells_events,
        });
        let (task, _) = face.tasks.keep(task);
        follow::all(face, &task);
        Ok(task)
    }

    fn request(&self, face: &Face, call: &AskedCall, task: &str) -> CallRequest {
        // The card tells of every tool, also of those that others must look for first.
        let _ = face.host.show(&self.session, &call.tool);
        let input = ModelInput::value(call.input.clone());
        let mut request = CallRequest::new(Arc::clone(&self.session), call.tool.clone(), input);
        request.face = FACE;
        request.request_id = Some(request_id(&self.message_id, &call.tool_call_id));
        request.correlation_id = Some(task.to_owned());
        request.acknowledged = Acknowledged::Early;
        request.background = true;
        request
    }

    /// The call, once it is on record: nobody hears of a task before that.
    async fn on_record(&self, face: &Face, handle: &CallHandle) -> Result<CallOnRecord, Refusal> {
        handle.accepted().await;
        let read = face.host.recorded_call(handle.invocation_id(), self.session.principal()).await;
        let why = match (read, handle.standing()) {
            (Ok(Some(call)), _) => return Ok(call),
            (Err(error), _) => return Err(journal_trouble(&error)),
            (Ok(None), Standing::Over(answer)) => answer.result().model_text(),
            (Ok(None), Standing::UnderWay | Standing::Backgrounded | Standing::Joined) => {
                "the call is not on record".to_owned()
            }
        };
        Err(Refusal::new(ErrorCode::Internal, face.host.redacted(&why)))
    }
}
