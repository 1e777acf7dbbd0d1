//! Starting calls and delivering their answers.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;
use toolpost_model::{BoxFuture, InvocationId, RequestId, SessionId, Stage};

use super::{Host, HostInner};
use crate::{
    call::{CallRunKind, drive, explain, refuse, rehearse},
    invocation::{
        CallHandle, CallRequest, CancelReason, ClaimedRequest, LiveCall, PipelineCall,
        RecordedResult, RequestIdClaim, RequestIdLookup, RequestIdStatus, request_digest,
    },
    record::journal::RequestKey,
    result::{self, CallEnding},
    scheduling::batch::{BatchMember, turn},
    session::Session,
};

impl HostInner {
    /// The shared part of a new call, with its witnesses.
    fn begun(&self, request: &CallRequest) -> LiveCall {
        let live = LiveCall::new(
            InvocationId::new(),
            request,
            Arc::clone(&self.record.redactor),
        );
        live.witnessed(&self.witnesses, request, None)
    }

    /// Runs a call in its own task.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallRunKind,
    ) -> oneshot::Receiver<Arc<RecordedResult>> {
        let shared = call.origin.request.as_ref().map(|key| {
            let (tell, answer) = watch::channel(None);
            let under_way = ClaimedRequest {
                digest: key.digest,
                live: Arc::clone(&call.live),
                answer,
            };
            call.session.requests.claim(&key.id, under_way);
            tell
        });
        self.spawn_claimed(call, way, shared)
    }

    /// Runs a call whose request id is already claimed in its own task.
    fn spawn_claimed(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallRunKind,
        shared: Option<SharedResultSender>,
    ) -> oneshot::Receiver<Arc<RecordedResult>> {
        let (tell, answer) = oneshot::channel();
        let work = self.work(call, way, shared);
        self.state.tasks.spawn(async move {
            let (answer, member) = work.await;
            // The caller may have disconnected. The answer is on record.
            let _ = tell.send(answer);
            drop(member);
        });
        answer
    }

    /// Runs work of the host that a shutdown waits for.
    pub(crate) fn track(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.state.tasks.spawn(work);
    }

    /// Runs a call from its first stage to its last, listed as running. The returned batch membership is dropped after
    /// the answer is delivered, so that the answers of an ordered batch arrive in order.
    fn work(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallRunKind,
        shared: Option<SharedResultSender>,
    ) -> impl Future<Output = (Arc<RecordedResult>, Option<BatchMember>)> + Send + 'static {
        // Boxed, because a call is a large value and would be moved with each future around it.
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
            // A call that is left open for the next host has no end.
            if let Some(listener) = listener.filter(|_| !call.asking.left_open) {
                listener.ended(&answer);
            }
            (answer, member)
        }
    }

    /// Runs a call in the caller's task. If the caller drops the future, the call finishes in a task of the host.
    pub(crate) fn in_callers_task(
        self: &Arc<Self>,
        call: PipelineCall,
        way: CallRunKind,
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
}

impl Host {
    /// Starts a call. All its errors are in its answer.
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
        let way = CallRunKind::Live(request.told());
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
        let mine = ClaimedRequest {
            digest: key.digest,
            live: Arc::clone(&live),
            answer: under_way,
        };
        let claimed = request.session.requests.claim(&key.id, mine);
        if let RequestIdStatus::By(earlier) = claimed {
            if earlier.digest == key.digest {
                return CallHandle::shared(earlier.live, earlier.answer);
            }
            return self
                .ended(live, request, result::request_conflict(key.id.as_str()))
                .await;
        }
        // The claim is released on every path, including a caller that drops this future while the journal is read.
        let claim = RequestIdClaim {
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

    /// The requests of a session whose answers the last host may not have delivered, oldest first. They were left open
    /// or answered in its last minutes. The list is returned once.
    pub fn unheard(&self, session: &SessionId) -> Vec<RequestId> {
        self.inner
            .state
            .calls
            .unheard
            .lock()
            .remove(session)
            .unwrap_or_default()
    }

    /// Starts a call and waits for its end.
    ///
    /// A call without a request id runs in the caller's task, which saves a hand-over between threads. If the caller
    /// drops the future, the call is canceled and finishes in a task of the host, so that it still gets its recorded
    /// end. A call in the background runs in its own task and continues if the caller drops the future.
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
        let way = CallRunKind::Live(request.delivery.acknowledged);
        inner
            .in_callers_task(PipelineCall::new(live, request, None), way)
            .await
    }

    /// Ends a call before its first stage. It still runs the last stages and is recorded.
    async fn ended(
        &self,
        live: Arc<LiveCall>,
        request: CallRequest,
        ending: CallEnding,
    ) -> CallHandle {
        let way = CallRunKind::Live(request.delivery.acknowledged);
        let mut call = PipelineCall::new(live, request, None);
        call.conclusion.ending = Some(ending);
        call.progress.stage = Stage::Map;
        let answer = drive(&self.inner, &mut call, way).await;
        drop(call.live.take_listener());
        CallHandle::ready(answer)
    }

    /// Explains the expected course of a call. Nothing is executed or recorded.
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

/// Lists a call as running. Dropping the guard removes the call, regardless of its end.
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
        // The session may have been closed between the check of the request and this insertion. Closing a session looks
        // for its calls once, so a call that is inserted later must cancel itself.
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
            self.session.requests.release(id);
        }
    }
}

/// Sends the answer to all callers of the same request.
type SharedResultSender = watch::Sender<Option<Arc<RecordedResult>>>;

/// A call that runs in its caller's task until the caller drops it.
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

// Dropping a future normally drops its work. Here that would leave a call without an end on record, which looks like a
// crash. So the rest of the work moves to a task of the host, with the cancellation already set.
impl Drop for InCallersTask {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        self.live.stop_awaiting();
        self.live
            .cancel(CancelReason::CallerGone, Some(self.live.principal()));
        // Without a runtime the process is ending, and the work cannot continue.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}
