//! From a message to a task whose calls are on record.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolpost_a2a::wire::{A2aRefusal, ErrorCode};
use toolpost_core::{
    AcknowledgementTiming, CallHandle, CallHandleState, CallOnRecord, CallRequest, RequestIdentity,
    Session,
};
use toolpost_model::{
    InvocationId, ModelInput, NativeCallId, RequestId, TraceContext, canonical_json,
};

use super::{
    super::{
        A2aServerFace,
        asked::{AskedCall, invalid},
        follow::{self, ModuleEventListener},
        journal_trouble,
        task::{A2aTask, NewTask},
    },
    FACE, context_of, known,
    restoring::{MessageFingerprint, call_of_task, request_id},
    shelf::TaskCreation,
};

/// So often a message is tried again after another one under its id came to nothing.
const ATTEMPTS: usize = 16;

/// A message that asks for calls.
pub(in super::super) struct TaskCallMessage {
    pub(in super::super) session: Arc<Session>,
    /// Whether the conversation begins with it, so that nothing of it can be on record.
    pub(in super::super) is_first: bool,
    pub(in super::super) message_id: String,
    pub(in super::super) calls: Vec<AskedCall>,
    pub(in super::super) tells_events: bool,
    /// The span of its sender.
    pub(in super::super) span: Option<Box<TraceContext>>,
}

impl TaskCallMessage {
    /// The task of a message. Its id is made of the conversation and the message's id, so a message that is sent twice is
    /// one task, and nothing runs twice: the first is found in memory or on record. Another message under the id of an
    /// earlier one finds that task too, and is refused.
    pub(in super::super) async fn task(
        self,
        face: &Arc<A2aServerFace>,
    ) -> Result<Arc<A2aTask>, A2aRefusal> {
        let id = self.task_id();
        let mark = self.mark();
        for _ in 0..ATTEMPTS {
            let beginning = face.tasks.beginning(&id, &mark.digest);
            if beginning.digest == mark.digest {
                return self.begun(face, id, mark, beginning).await;
            }
            // The other one came first, unless it is refused itself: the record may know this one.
            if beginning.outcome().await.is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        Err(used())
    }

    async fn begun(
        self,
        face: &Arc<A2aServerFace>,
        id: String,
        mark: MessageFingerprint,
        beginning: TaskCreation,
    ) -> Result<Arc<A2aTask>, A2aRefusal> {
        // Apart from the request: a client that leaves in the middle must not leave half a task behind.
        let face = Arc::clone(face);
        let begun = tokio::spawn(async move {
            let begin = || self.earlier_or_new(&face, &id, &mark);
            let begun = beginning.task.get_or_try_init(begin).await.cloned();
            if begun.is_err() {
                face.tasks.forget_beginning(&id);
            }
            begun
        });
        begun
            .await
            .unwrap_or_else(|_| Err(A2aRefusal::new(ErrorCode::Internal, "the task broke off")))
    }

    /// The id of the task: always the same for the same message.
    fn task_id(&self) -> String {
        let mut id = [0; 16];
        id.copy_from_slice(&hash(&json!(["task", self.session.id(), self.message_id]))[..16]);
        // Version 8: an id made by rules of one's own.
        id[6] = 0x80 | id[6] & 0x0f;
        id[8] = 0x80 | id[8] & 0x3f;
        InvocationId::from_bytes(id).to_string()
    }

    fn mark(&self) -> MessageFingerprint {
        let calls: Vec<_> = self
            .calls
            .iter()
            .map(|call| (&call.tool_call_id, &call.tool, &call.input))
            .collect();
        let hash = hash(&json!([self.message_id, calls]));
        MessageFingerprint {
            calls: self.calls.len(),
            events: self.tells_events,
            digest: const_hex::encode(&hash[..16]),
        }
    }

    async fn earlier_or_new(
        &self,
        face: &Arc<A2aServerFace>,
        id: &str,
        mark: &MessageFingerprint,
    ) -> Result<Arc<A2aTask>, A2aRefusal> {
        if self.is_first {
            return self.begin(face, id, mark).await;
        }
        match known(face, id, self.session.principal()).await? {
            None => self.begin(face, id, mark).await,
            Some(task) if self.made(face, &task, mark).await? => Ok(task),
            Some(_) => Err(used()),
        }
    }

    /// Whether a task was made of this very message.
    async fn made(
        &self,
        face: &A2aServerFace,
        task: &A2aTask,
        mark: &MessageFingerprint,
    ) -> Result<bool, A2aRefusal> {
        if let Some(digest) = &task.digest {
            return Ok(*digest == mark.digest);
        }
        // The record has hashes of the requests only, and the host knows how to make those.
        let Some(first) = self.calls.first() else {
            return Ok(false);
        };
        for events in [true, false] {
            let request = self.request_id(
                face,
                first,
                &MessageFingerprint {
                    events,
                    ..mark.clone()
                },
            );
            let earlier = face.host.earlier(&self.session, &request).await;
            if earlier.map_err(|error| journal_trouble(&error))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn begin(
        &self,
        face: &Arc<A2aServerFace>,
        id: &str,
        mark: &MessageFingerprint,
    ) -> Result<Arc<A2aTask>, A2aRefusal> {
        let mut handles = Vec::with_capacity(self.calls.len());
        let mut module_events = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            // The card tells of every tool, also of those that others must look for first.
            let _ = face.host.show(&self.session, &call.tool).await;
            let (listener, events) = ModuleEventListener::new();
            let request = self
                .request(face, call, id, mark)
                .notify(Arc::new(listener));
            module_events.push(events);
            handles.push(face.host.start(request).await);
        }
        let mut calls = Vec::with_capacity(self.calls.len());
        for (handle, asked) in handles.iter().zip(&self.calls) {
            let mut call = call_of_task(&self.on_record(face, handle).await?);
            // As it was sent, so that its caller knows it again.
            call.tool_call_id.clone_from(&asked.tool_call_id);
            calls.push(call);
        }
        let owner = self.session.principal().clone();
        let context_id = context_of(self.session.id(), &owner).unwrap_or_default();
        let task = A2aTask::new(NewTask {
            id: id.to_owned(),
            context_id,
            owner,
            message_id: face.host.redacted(&self.message_id).into_owned(),
            calls,
            missing: 0,
            tells_events: self.tells_events,
            digest: Some(mark.digest.clone()),
        });
        let (task, _) = face.tasks.keep(task);
        follow::all(face, &task, module_events);
        Ok(task)
    }

    fn request_id(
        &self,
        face: &A2aServerFace,
        call: &AskedCall,
        mark: &MessageFingerprint,
    ) -> RequestId {
        request_id(
            &face.host.redacted(&self.message_id),
            &call.tool_call_id,
            mark,
        )
    }

    fn request(
        &self,
        face: &A2aServerFace,
        call: &AskedCall,
        task: &str,
        mark: &MessageFingerprint,
    ) -> CallRequest {
        let input = ModelInput::value(call.input.clone());
        CallRequest::new(Arc::clone(&self.session), call.tool.clone(), input)
            .record_face(FACE)
            .identify(RequestIdentity {
                request_id: Some(self.request_id(face, call, mark)),
                native_call_id: NativeCallId::bounded(&call.tool_call_id),
                correlation_id: Some(task.to_owned()),
                trace: self.span.clone(),
            })
            .acknowledge(AcknowledgementTiming::Early)
            .run_in_background()
    }

    /// The call, once it is on record: nobody hears of a task before that.
    async fn on_record(
        &self,
        face: &A2aServerFace,
        handle: &CallHandle,
    ) -> Result<CallOnRecord, A2aRefusal> {
        handle.accepted().await;
        let read = face
            .host
            .recorded_call(handle.invocation_id(), self.session.principal())
            .await;
        let why = match (read, handle.standing()) {
            (Ok(Some(call)), _) => return Ok(call),
            (Err(error), _) => return Err(journal_trouble(&error)),
            (Ok(None), CallHandleState::Over(answer)) => answer.result().model_text(),
            (
                Ok(None),
                CallHandleState::UnderWay | CallHandleState::Backgrounded | CallHandleState::Joined,
            ) => "the call is not on record".to_owned(),
        };
        Err(A2aRefusal::new(
            ErrorCode::Internal,
            face.host.redacted(&why),
        ))
    }
}

fn used() -> A2aRefusal {
    invalid("this `messageId` was used for another message in this context")
}

fn hash(value: &Value) -> [u8; 32] {
    Sha256::digest(canonical_json(value).as_bytes()).into()
}
