//! Starting calls and giving their answers to whoever waits for them.

use std::{
    borrow::Cow,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;
use toolpost_model::{BoxFuture, InvocationId, Outcome, RequestId, SessionId, Stage};

use super::{Host, HostInner};
use crate::{
    call::{CallMode, drive, explain, refuse, rehearse},
    invocation::{
        CallHandle, CallRequest, CancelReason, LiveCall, PipelineCall, RecordedResult,
        request_digest,
    },
    record::{
        body::CallRecordBody,
        journal::{JournalError, RecordKind, RequestKey, StoredRecord},
        redaction,
    },
    result::{self, CallEnding},
    scheduling::batch::{BatchMember, turn},
    session::{RequestIdStatus, Session, UnderWay},
};

impl HostInner {
    /// The part of a new call that others may touch, with whoever hears of every call.
    fn begun(&self, request: &CallRequest) -> LiveCall {
        let live = LiveCall::new(
            InvocationId::new(),
            request,
            Arc::clone(&self.record.redactor),
        );
        live.witnessed(&self.witnesses, request, None)
    }

    /// Runs a call in a task of its own.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallMode,
    ) -> oneshot::Receiver<Arc<RecordedResult>> {
        let shared = call.origin.request.as_ref().map(|key| {
            let (tell, answer) = watch::channel(None);
            let under_way = UnderWay {
                digest: key.digest,
                live: Arc::clone(&call.live),
                answer,
            };
            call.session.claim(&key.id, under_way);
            tell
        });
        self.spawn_claimed(call, way, shared)
    }

    /// The same for a call whose request id is claimed already.
    fn spawn_claimed(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallMode,
        shared: Option<SharedResultSender>,
    ) -> oneshot::Receiver<Arc<RecordedResult>> {
        let (tell, answer) = oneshot::channel();
        let work = self.work(call, way, shared);
        self.state.tasks.spawn(async move {
            let (answer, member) = work.await;
            // The caller may be gone; the answer is on record.
            let _ = tell.send(answer);
            drop(member);
        });
        answer
    }

    /// Runs work of the host's own that a shutdown waits for.
    pub(crate) fn track(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.state.tasks.spawn(work);
    }

    /// A call from its first stage to its last, known to the host as running meanwhile. The place in a batch that comes
    /// with the answer is dropped once that is given out.
    fn work(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallMode,
        shared: Option<SharedResultSender>,
    ) -> impl Future<Output = (Arc<RecordedResult>, Option<BatchMember>)> + Send + 'static {
        // A call is a large value; boxed, it is not moved with every future around it.
        let host = Arc::clone(self);
        let mut call = Box::new(call);
        let running = RunningCallGuard::begin(&host, &call);
        match turn::join(&call) {
            Ok(member) => call.turn.member = member,
            Err(ending) => {
                call.conclusion.ending = Some(ending);
                call.progress.stage = Stage::Map;
            }
        }
        async move {
            let answer = drive(&host, &mut call, way).await;
            let member = call.turn.member.take();
            if let Some(member) = &member {
                turn::await_order(&call, member, &answer).await;
            }
            if let Some(shared) = &shared {
                shared.send_replace(Some(Arc::clone(&answer)));
            }
            let listener = call.live.take_listener();
            drop(running);
            // A call that is left to the next host has not ended.
            if let Some(listener) = listener.filter(|_| !call.asking.left_open) {
                listener.ended(&answer);
            }
            (answer, member)
        }
    }

    /// Runs a call in the caller's task. Should the caller stop waiting, it finishes in one of its own.
    pub(crate) fn in_callers_task(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallMode,
    ) -> impl Future<Output = Arc<RecordedResult>> + Send + 'static {
        let live = Arc::clone(&call.live);
        let tasks = self.state.tasks.clone();
        live.await_answer();
        let work = self.work(call, way, None);
        let work = async move { work.await.0 };
        InCallersTask {
            work: Some(Box::pin(tasks.track_future(work))),
            live,
            tasks,
        }
    }

    /// A request id that is a secret, or holds one, is known by its hash: the same id still finds the same call.
    fn recordable(&self, id: RequestId) -> RequestId {
        match self.record.redactor.text(id.as_str()) {
            Cow::Borrowed(_) => id,
            Cow::Owned(_) => redaction::hidden(&id),
        }
    }

    /// The first record of a request. What only the call knew for a secret was hidden when it was written.
    async fn first_record(
        &self,
        session: &Session,
        id: &RequestId,
    ) -> Result<Option<StoredRecord>, JournalError> {
        match self.record.journal.find_request(session.id(), id).await? {
            Some(row) => Ok(Some(row)),
            None => {
                self.record
                    .journal
                    .find_request(session.id(), &redaction::hidden(id))
                    .await
            }
        }
    }

    /// The answer of an earlier call with this request id, where the record has one.
    async fn recorded(
        &self,
        row: &StoredRecord,
    ) -> Result<Option<Arc<RecordedResult>>, JournalError> {
        let Some(id) = row.record.invocation_id else {
            return Ok(None);
        };
        Ok(self
            .recorded_end(id)
            .await?
            .and_then(|way| way.result)
            .and_then(|result| RecordedResult::recorded(result.text())))
    }

    async fn recorded_end(
        &self,
        id: InvocationId,
    ) -> Result<Option<CallRecordBody<'static>>, JournalError> {
        let rows = self.record.journal.records_of(id).await?;
        // The answer to its question may stand behind a call's end, and is not its end.
        let of_call = rows
            .iter()
            .rev()
            .filter(|row| row.record.kind != RecordKind::Decided);
        Ok(of_call
            .into_iter()
            .find_map(|row| row.record.read_body().ok()))
    }
}

impl Host {
    /// Starts a call. Everything that can go wrong with it is in its answer.
    pub async fn start(&self, request: CallRequest) -> CallHandle {
        request.session.touch();
        let inner = &self.inner;
        let live = Arc::new(inner.begun(&request));
        if inner.state.closing.is_cancelled() {
            return self.ended(live, request, result::shutting_down()).await;
        }
        if request.session.is_ended() {
            let ending = result::canceled_before_start(CancelReason::SessionClosed);
            return self.ended(live, request, ending).await;
        }
        if let Err(refusal) = inner.record.journal_room.check(request.session.principal()) {
            let call = PipelineCall::new(live, request, None);
            return CallHandle::ready(refuse(inner, call, result::journal_share(&refusal)));
        }
        let way = CallMode::Live(request.told());
        let on_drop = request.on_drop();
        let Some(id) = request.identity.request_id.clone() else {
            let answer = inner.spawn(PipelineCall::new(Arc::clone(&live), request, None), way);
            return CallHandle::own(live, answer, on_drop);
        };
        let key = RequestKey {
            digest: request_digest(&request.tool, &request.input),
            id: inner.recordable(id),
        };
        let (shared, under_way) = watch::channel(None);
        let mine = UnderWay {
            digest: key.digest,
            live: Arc::clone(&live),
            answer: under_way,
        };
        let claimed = request.session.claim(&key.id, mine);
        if let RequestIdStatus::By(earlier) = claimed {
            if earlier.digest == key.digest {
                return CallHandle::shared(earlier.live, earlier.answer);
            }
            return self
                .ended(live, request, result::request_conflict(key.id.as_str()))
                .await;
        }
        // Given back however this ends, also by a caller that stops waiting for the journal's answer.
        let claim = Claim {
            session: Arc::clone(&request.session),
            id: Some(key.id.clone()),
        };
        let repeat = match claimed {
            RequestIdStatus::New => Ok(RequestIdLookup::First),
            RequestIdStatus::MaybeKnown | RequestIdStatus::By(_) => {
                self.repeat(&request.session, &key).await
            }
        };
        let ending = match repeat {
            Ok(RequestIdLookup::First) => {
                claim.keep();
                let call = PipelineCall::new(Arc::clone(&live), request, Some(key));
                return CallHandle::own(
                    live,
                    inner.spawn_claimed(call, way, Some(shared)),
                    on_drop,
                );
            }
            Ok(RequestIdLookup::Of(answer)) => {
                shared.send_replace(Some(Arc::clone(&answer)));
                return CallHandle::ready(answer);
            }
            Ok(RequestIdLookup::Conflict) => result::request_conflict(key.id.as_str()),
            Ok(RequestIdLookup::Lost) => result::outcome_unknown(),
            Ok(RequestIdLookup::Parked(ask_id)) => result::approval_pending(&request.tool, ask_id),
            Err(error) => result::journal_refuses(&error),
        };
        drop(claim);
        self.ended(live, request, ending).await
    }

    async fn repeat(
        &self,
        session: &Session,
        key: &RequestKey,
    ) -> Result<RequestIdLookup, JournalError> {
        let Some(row) = self.inner.first_record(session, &key.id).await? else {
            return Ok(RequestIdLookup::First);
        };
        if row
            .record
            .request
            .as_ref()
            .is_none_or(|first| first.digest != key.digest)
        {
            return Ok(RequestIdLookup::Conflict);
        }
        match self.inner.recorded(&row).await? {
            // The host did not take it that time, so nothing stands in the way of trying again.
            Some(answer) if answer.result().outcome == Outcome::Rejected => {
                Ok(RequestIdLookup::First)
            }
            Some(answer) => Ok(RequestIdLookup::Of(answer)),
            // On record without an end and not under way: the end could not be written, unless it waits for an
            // answer that this host cannot ask for.
            None => Ok(self
                .inner
                .parked(&row)
                .await?
                .map_or(RequestIdLookup::Lost, RequestIdLookup::Parked)),
        }
    }

    /// An earlier call of a session by its request id: under way, or as the record has it.
    pub async fn earlier(
        &self,
        session: &Session,
        id: &RequestId,
    ) -> Result<Option<EarlierCall>, JournalError> {
        let id = self.inner.recordable(id.clone());
        let running = || {
            let found = session.under_way(&id)?;
            Some(EarlierCall {
                tool: found.live.tool.clone(),
                call: CallHandle::shared(found.live, found.answer),
            })
        };
        if let Some(found) = running() {
            return Ok(Some(found));
        }
        let Some(row) = self.inner.first_record(session, &id).await? else {
            return Ok(None);
        };
        let recorded = self.inner.recorded(&row).await?;
        let body: Option<CallRecordBody<'_>> = row.record.read_body().ok();
        let call = body.and_then(|body| body.call);
        match (recorded, call) {
            (Some(answer), Some(call)) => Ok(Some(EarlierCall {
                tool: call.tool.into_owned(),
                call: CallHandle::ready(answer),
            })),
            // On record without an end: it began between the two looks, or its end could not be written.
            _ => Ok(running()),
        }
    }

    /// Requests of a session that the last host left open or answered in its last minutes, oldest first: their
    /// caller may not have heard the answers. Told once.
    pub fn unheard(&self, session: &SessionId) -> Vec<RequestId> {
        self.inner
            .state
            .calls
            .unheard
            .lock()
            .remove(session)
            .unwrap_or_default()
    }

    /// Tells the call that runs under a request id to stop. `false`: there is none.
    pub fn cancel_request(&self, session: &Session, id: &RequestId) -> bool {
        let found = session.under_way(&self.inner.recordable(id.clone()));
        found
            .inspect(|call| {
                call.live
                    .cancel(CancelReason::Requested, Some(session.principal()));
            })
            .is_some()
    }

    /// Starts a call and waits for its end.
    ///
    /// A call without a request id runs in the caller's own task, which spares a hand-over between threads.
    /// Should the caller stop waiting, the call is told to stop and finishes in a task of its own, so that it
    /// still gets its end. A call in the background is waited for too, and goes on where the caller does not wait.
    pub async fn call(&self, request: CallRequest) -> Arc<RecordedResult> {
        let inner = &self.inner;
        let elsewhere = request.identity.request_id.is_some() || request.delivery.background;
        let is_refused = inner
            .record
            .journal_room
            .check(request.session.principal())
            .is_err();
        if elsewhere
            || is_refused
            || inner.state.closing.is_cancelled()
            || request.session.is_ended()
        {
            return self.start(request).await.answer().await;
        }
        request.session.touch();
        let live = Arc::new(inner.begun(&request));
        let way = CallMode::Live(request.delivery.acknowledged);
        inner
            .in_callers_task(PipelineCall::new(live, request, None), way)
            .await
    }

    /// A call that ends before it begins still passes the end of the way and is on record.
    async fn ended(
        &self,
        live: Arc<LiveCall>,
        request: CallRequest,
        ending: CallEnding,
    ) -> CallHandle {
        let way = CallMode::Live(request.delivery.acknowledged);
        let mut call = PipelineCall::new(live, request, None);
        call.conclusion.ending = Some(ending);
        call.progress.stage = Stage::Map;
        let answer = drive(&self.inner, &mut call, way).await;
        drop(call.live.take_listener());
        CallHandle::ready(answer)
    }

    /// What would happen to a call. Nothing runs, nothing is recorded.
    pub async fn explain(&self, request: CallRequest) -> crate::Explanation {
        let live = Arc::new(LiveCall::new(
            InvocationId::new(),
            &request,
            Arc::clone(&self.inner.record.redactor),
        ));
        let mut call = PipelineCall::new(live, request, None);
        rehearse(&self.inner, &mut call).await;
        explain::explain(&self.inner, call)
    }
}

/// A call the host knows as running. Whatever becomes of the call, it does not stay known when this is dropped.
struct RunningCallGuard {
    host: Arc<HostInner>,
    live: Arc<LiveCall>,
    session: Arc<Session>,
    request: Option<RequestId>,
}

impl RunningCallGuard {
    fn begin(host: &Arc<HostInner>, call: &PipelineCall) -> Self {
        host.state
            .calls
            .running
            .lock()
            .insert(call.live.id, Arc::clone(&call.live));
        call.session.life.running.fetch_add(1, Ordering::Relaxed);
        // A session that is being closed looks for its calls once; whoever comes later stops by itself.
        if call.session.is_ended() {
            call.live.cancel(CancelReason::SessionClosed, None);
        }
        Self {
            host: Arc::clone(host),
            live: Arc::clone(&call.live),
            session: Arc::clone(&call.session),
            request: call.origin.request.as_ref().map(|key| key.id.clone()),
        }
    }
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        self.live.accepted();
        drop(self.live.take_listener());
        self.host.state.calls.running.lock().remove(&self.live.id);
        self.live.over();
        self.session.life.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(id) = &self.request {
            self.session.release(id);
        }
    }
}

/// A request id taken for a call that has not begun.
struct Claim {
    session: Arc<Session>,
    id: Option<RequestId>,
}

impl Claim {
    /// The call has begun and gives the id back itself.
    fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.session.release(id);
        }
    }
}

/// Tells everybody who waits for the same request.
type SharedResultSender = watch::Sender<Option<Arc<RecordedResult>>>;

/// A call that runs in its caller's task, until the caller drops it.
struct InCallersTask {
    work: Option<BoxFuture<'static, Arc<RecordedResult>>>,
    live: Arc<LiveCall>,
    tasks: TaskTracker,
}

impl Future for InCallersTask {
    type Output = Arc<RecordedResult>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Arc<RecordedResult>> {
        let Some(work) = self.work.as_mut() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl Drop for InCallersTask {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        self.live.stop_awaiting();
        self.live
            .cancel(CancelReason::CallerGone, Some(self.live.principal()));
        // Without a runtime there is nothing left to run on: the process is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}

/// An earlier call, found by its request id.
pub struct EarlierCall {
    /// The tool as it was called.
    pub tool: String,
    /// The call, or its answer.
    pub call: CallHandle,
}

enum RequestIdLookup {
    First,
    Of(Arc<RecordedResult>),
    Conflict,
    Lost,
    Parked(InvocationId),
}
