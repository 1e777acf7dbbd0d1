//! Starting, watching and canceling calls.

use std::sync::{Arc, atomic::Ordering};

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::sync::{oneshot, watch};
use toolpost_model::{InvocationId, ModelInput, Principal, Role, SessionId, Stage};

use super::{Host, Inner, lock};
use crate::{
    call::{Answer, CallHandle, Way, drive, explain},
    flow::{
        invocation::{Call, CallRequest, CancelReason, LiveCall},
        result::{self, Ending},
    },
    record::{
        journal::{JournalError, RequestKey, StoredRecord},
        rendering::RecordedWay,
    },
    session::{Session, UnderWay},
};

/// Where a call stands.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationView {
    /// The call.
    pub invocation_id: InvocationId,
    /// In one word.
    pub status: StatusWord,
    /// The tool as asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Where it is, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The result, once it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
}

/// Where a call stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// On its way.
    Running,
    /// Over.
    Ended,
}

/// SHA-256 of tool and arguments: what makes two requests the same.
fn digest(tool: &str, input: &ModelInput) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update((tool.len() as u64).to_le_bytes());
    hasher.update(tool);
    match input {
        ModelInput::Text(text) => hasher.update(text.as_bytes()),
        ModelInput::Value(value) => hasher.update(value.to_string()),
    }
    hasher.finalize().into()
}

impl Inner {
    /// Runs a call in a task of its own, so that no caller's going away can leave it without an end.
    pub(crate) fn spawn(self: &Arc<Self>, call: Call, way: Way) -> oneshot::Receiver<Arc<Answer>> {
        let (tell, answer) = oneshot::channel();
        let shared = call.request.as_ref().map(|key| {
            let (tell, answer) = watch::channel(None);
            let under_way = UnderWay { digest: key.digest, invocation: call.live.id, answer };
            call.session.claim(&key.id, under_way);
            tell
        });
        self.run(call, way, tell, shared);
        answer
    }

    fn run(
        self: &Arc<Self>,
        mut call: Call,
        way: Way,
        tell: oneshot::Sender<Arc<Answer>>,
        shared: Option<watch::Sender<Option<Arc<Answer>>>>,
    ) {
        let host = Arc::clone(self);
        lock(&host.state.running).insert(call.live.id, Arc::clone(&call.live));
        call.session.running.fetch_add(1, Ordering::Relaxed);
        self.state.tasks.spawn(async move {
            let answer = drive(&host, &mut call, way).await;
            call.live.accepted();
            call.live.close_events();
            lock(&host.state.running).remove(&call.live.id);
            call.session.running.fetch_sub(1, Ordering::Relaxed);
            if let (Some(shared), Some(answer)) = (&shared, &answer) {
                shared.send_replace(Some(Arc::clone(answer)));
            }
            if let Some(key) = &call.request {
                call.session.release(&key.id);
            }
            if let Some(answer) = answer {
                // The caller may be gone; the answer is on record.
                let _ = tell.send(answer);
            }
        });
    }

    /// The answer of an earlier call with this request id, where the record has one.
    async fn recorded(&self, row: &StoredRecord) -> Result<Option<Arc<Answer>>, JournalError> {
        let Some(id) = row.record.invocation_id else {
            return Ok(None);
        };
        Ok(self
            .recorded_end(id)
            .await?
            .and_then(|way| way.result)
            .and_then(|result| Answer::recorded(&result)))
    }

    async fn recorded_end(&self, id: InvocationId) -> Result<Option<RecordedWay>, JournalError> {
        let rows = self.journal.records_of(id).await?;
        Ok(rows.iter().rev().find_map(|row| serde_json::from_str(&row.record.body).ok()))
    }
}

impl Host {
    /// Starts a call. Everything that can go wrong with it is in its answer.
    pub async fn start(&self, request: CallRequest) -> CallHandle {
        request.session.touch();
        let inner = &self.inner;
        let live = Arc::new(LiveCall::new(InvocationId::new(), &request, Arc::clone(&inner.redactor)));
        if inner.state.closing.is_cancelled() {
            return self.ended(live, request, None, result::shutting_down()).await;
        }
        let way = Way::Live(request.acknowledged);
        let Some(id) = request.request_id.clone() else {
            let answer = inner.spawn(Call::new(Arc::clone(&live), request, None), way);
            return CallHandle::own(live, answer);
        };
        let key = RequestKey { digest: digest(&request.tool, &request.input), id };
        let (shared, under_way) = watch::channel(None);
        let mine = UnderWay { digest: key.digest, invocation: live.id, answer: under_way };
        if let Some(earlier) = request.session.claim(&key.id, mine) {
            if earlier.digest == key.digest {
                return CallHandle::shared(earlier.invocation, earlier.answer);
            }
            return self.ended(live, request, None, result::request_conflict(key.id.as_str())).await;
        }
        match self.repeat(&request.session, &key).await {
            Ok(Repeat::First) => {
                let (tell, answer) = oneshot::channel();
                inner.run(Call::new(Arc::clone(&live), request, Some(key)), way, tell, Some(shared));
                CallHandle::own(live, answer)
            }
            Ok(Repeat::Of(answer)) => {
                shared.send_replace(Some(Arc::clone(&answer)));
                request.session.release(&key.id);
                CallHandle::ready(answer)
            }
            Ok(Repeat::Conflict) => {
                request.session.release(&key.id);
                self.ended(live, request, None, result::request_conflict(key.id.as_str())).await
            }
            Ok(Repeat::Lost) => {
                request.session.release(&key.id);
                self.ended(live, request, None, result::outcome_unknown()).await
            }
            Err(error) => {
                request.session.release(&key.id);
                self.ended(live, request, None, result::journal_refuses(&error)).await
            }
        }
    }

    async fn repeat(&self, session: &Session, key: &RequestKey) -> Result<Repeat, JournalError> {
        let Some(row) = self.inner.journal.find_request(session.id(), &key.id).await? else {
            return Ok(Repeat::First);
        };
        if row.record.request.as_ref().is_none_or(|first| first.digest != key.digest) {
            return Ok(Repeat::Conflict);
        }
        match self.inner.recorded(&row).await? {
            Some(answer) => Ok(Repeat::Of(answer)),
            // On record without an end and not under way: the end could not be written.
            None => Ok(Repeat::Lost),
        }
    }

    /// Starts a call and waits for its end.
    pub async fn call(&self, request: CallRequest) -> Arc<Answer> {
        self.start(request).await.answer().await
    }

    /// A call that ends before it begins still passes the end of the way and is on record.
    async fn ended(
        &self,
        live: Arc<LiveCall>,
        request: CallRequest,
        key: Option<RequestKey>,
        ending: Ending,
    ) -> CallHandle {
        let way = Way::Live(request.acknowledged);
        let mut call = Call::new(live, request, key);
        call.ending = Some(ending);
        call.stage = Stage::Map;
        let answer = drive(&self.inner, &mut call, way).await;
        call.live.close_events();
        match answer {
            Some(answer) => CallHandle::ready(answer),
            None => unreachable!("only dry runs end without an answer"),
        }
    }

    /// What would happen to a call. Nothing runs, nothing is recorded.
    pub async fn explain(&self, request: CallRequest) -> crate::Explanation {
        let surface = self.inner.surface(&request.session);
        let visibility = surface.find(&request.tool).map(|(_, visibility)| visibility);
        let live = Arc::new(LiveCall::new(InvocationId::new(), &request, Arc::clone(&self.inner.redactor)));
        let mut call = Call::new(live, request, None);
        drive(&self.inner, &mut call, Way::Dry).await;
        explain::explain(call, visibility)
    }

    /// Tells a running call to stop. `false`: it is not running, or not this caller's.
    pub fn cancel(&self, id: InvocationId, principal: &Principal) -> bool {
        let call = lock(&self.inner.state.running).get(&id).cloned();
        match call.filter(|call| call.is_visible_to(principal)) {
            Some(call) => {
                call.cancel(CancelReason::Requested);
                true
            }
            None => false,
        }
    }

    /// Where a call stands. Agents see their own only.
    pub async fn invocation(
        &self,
        id: InvocationId,
        principal: &Principal,
    ) -> Result<Option<InvocationView>, JournalError> {
        let live = lock(&self.inner.state.running).get(&id).cloned();
        if let Some(live) = live {
            return Ok(live.is_visible_to(principal).then(|| InvocationView {
                invocation_id: id,
                status: StatusWord::Running,
                tool: Some(live.tool.clone()),
                stage: Some(live.stage()),
                result: None,
            }));
        }
        let rows = self.inner.journal.records_of(id).await?;
        let mut ways =
            rows.iter().filter_map(|row| serde_json::from_str::<RecordedWay>(&row.record.body).ok());
        let Some(mut first) = ways.next() else {
            return Ok(None);
        };
        let Some(call) = first.call.take() else {
            return Ok(None);
        };
        if principal.role != Role::Operator && call.principal != principal.name {
            return Ok(None);
        }
        let result = ways.next_back().unwrap_or(first).result;
        Ok(Some(InvocationView {
            invocation_id: id,
            status: StatusWord::Ended,
            tool: Some(call.tool),
            stage: None,
            result,
        }))
    }
}

enum Repeat {
    First,
    Of(Arc<Answer>),
    Conflict,
    Lost,
}

impl LiveCall {
    fn is_visible_to(&self, principal: &Principal) -> bool {
        use toolpost_model::CallPort as _;
        principal.role == Role::Operator || self.principal() == principal
    }

    pub(super) fn is_of(&self, session: &SessionId) -> bool {
        use toolpost_model::CallPort as _;
        self.session_id() == session
    }
}
