//! Turns a message into a task with recorded calls.

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

/// The number of tries for a message while other messages under its id fail.
const ATTEMPTS: usize = 16;

pub(in super::super) struct TaskCallMessage {
    pub(in super::super) session: Arc<Session>,
    /// Whether the message begins its conversation. Then there is nothing to look up on record.
    pub(in super::super) is_first: bool,
    pub(in super::super) message_id: String,
    pub(in super::super) calls: Vec<AskedCall>,
    pub(in super::super) tells_events: bool,
    /// The span of the sender.
    pub(in super::super) span: Option<Box<TraceContext>>,
}

impl TaskCallMessage {
    /// The task of a message. The task id is derived from the conversation and the message id. A message that is sent
    /// twice therefore finds the first task, in memory or on record, and its calls run once. A different message under
    /// an id that was used finds that task too, and is refused.
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
            // The other message came first. This one may still be the recorded message, if the other one is refused.
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
        // In its own tokio task: a client that disconnects in the middle would otherwise leave some of the calls begun
        // and the others not.
        let face = Arc::clone(face);
        let begun = tokio::spawn(async move {
            let begin = || self.earlier_or_new(&face, &id, &mark);
            let begun = beginning.task.get_or_try_init(begin).await.cloned();
            if begun.is_err() {
                face.tasks.forget_beginning(&id);
            }
            begun
        });
        begun.await.unwrap_or_else(|_| {
            Err(A2aRefusal::new(
                ErrorCode::Internal,
                "the task failed to start",
            ))
        })
    }

    /// The id of the task, always the same for the same message.
    fn task_id(&self) -> String {
        let mut id = [0; 16];
        id.copy_from_slice(&hash(&json!(["task", self.session.id(), self.message_id]))[..16]);
        // Version 8 marks a UUID with a private scheme.
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

    /// Whether the task was created by this message.
    async fn made(
        &self,
        face: &A2aServerFace,
        task: &A2aTask,
        mark: &MessageFingerprint,
    ) -> Result<bool, A2aRefusal> {
        if let Some(digest) = &task.digest {
            return Ok(*digest == mark.digest);
        }
        // The record has only hashes of the requests. The host computes the same hash from the message for the
        // comparison.
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
        // All calls are started before the first one is awaited, so that the calls of a message run concurrently. The
        // task is kept only after every call is on record. A crash in between leaves calls without a task in memory,
        // and the mark in each request id shows the next host that some calls of the message are missing.
        let mut handles = Vec::with_capacity(self.calls.len());
        let mut module_events = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            // The card lists every tool, deferred ones included, so a call to a deferred tool discovers it.
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
            // The caller's own spelling, so that it can match the call.
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

    /// The recorded call. The task is not visible before all of its calls are recorded.
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
