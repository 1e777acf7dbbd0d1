//! Two things in one moment: the record, the caller and the operator are told one story.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;
use toolpost_core::{
    AppendStrength, ApprovalError, HostLimits, Journal, JournalError, JournalHead, MemoryJournal,
    PrunedRange, Query, Record, RecordKind, RetentionCut, SchedulerLimits, StoredRecord,
};
use toolpost_model::{
    ApprovalScope, BoxFuture, CallInput, ClassFact, Declaration, EffectClass, Effects, ErrorClass,
    InvocationId, Outcome, PermissionMode, Principal, RequestId, ResourceAccess, ResourceKey,
    SessionId, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

use super::{
    Engine, act, asking, body, decide, kinds, operator, question, questions, records_of, scoped,
    start, target, waiting, yes,
};

/// A journal that stops at records of one kind, or refuses them.
struct Held {
    inner: Arc<MemoryJournal>,
    kind: RecordKind,
    is_full: AtomicBool,
    reached: Semaphore,
    open: Semaphore,
}

impl Held {
    fn at(kind: RecordKind, inner: &Arc<MemoryJournal>) -> Arc<Self> {
        let reached = Semaphore::new(0);
        let open = Semaphore::new(0);
        Arc::new(Self {
            inner: Arc::clone(inner),
            kind,
            is_full: false.into(),
            reached,
            open,
        })
    }

    /// Never stops.
    fn refusing(kind: RecordKind, inner: &Arc<MemoryJournal>) -> Arc<Self> {
        let held = Self::at(kind, inner);
        held.open.add_permits(1_000);
        held.is_full.store(true, Ordering::SeqCst);
        held
    }

    async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    fn go_on(&self) {
        self.open.add_permits(1);
    }
}

impl Journal for Held {
    fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        if record.kind != self.kind {
            return self.inner.append(record, strength);
        }
        Box::pin(async move {
            self.reached.add_permits(1);
            self.open.acquire().await.unwrap().forget();
            if self.is_full.load(Ordering::SeqCst) {
                return Err(JournalError::Full("no space left".into()));
            }
            self.inner.append(record, strength).await
        })
    }
    fn records_of(
        &self,
        id: InvocationId,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        self.inner.records_of(id)
    }
    fn find_request<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        self.inner.find_request(session, request)
    }
    fn find_session<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        self.inner.find_session(id)
    }
    fn last_start(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        self.inner.last_start()
    }
    fn read(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        self.inner.read(after, limit)
    }
    fn find(&self, query: Query) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        self.inner.find(query)
    }
    fn head(&self) -> BoxFuture<'_, Result<JournalHead, JournalError>> {
        self.inner.head()
    }
    fn prune(&self, cut: RetentionCut) -> BoxFuture<'_, Result<Option<PrunedRange>, JournalError>> {
        self.inner.prune(cut)
    }
}

async fn on(held: &Arc<Held>, tool: &MockNativeTool) -> TestHost {
    let journal = Arc::clone(held) as Arc<dyn Journal>;
    TestHost::on(Arc::clone(&held.inner), |builder| {
        asking(builder, tool).journal(journal)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_answers_at_once_one_counts_and_the_others_are_told_whose() {
    for _ in 0..20 {
        let tool = act();
        let host = super::host(&tool).await;
        let handle = start(&host, target("main")).await;
        let id = question(&host.host).await.ask_id;
        let answers = (0..8).map(|place| {
            let host = host.host.clone();
            let verdict = if place % 2 == 0 {
                yes()
            } else {
                super::no("no")
            };
            let by = Principal::operator(&format!("operator-{place}"));
            tokio::spawn(async move { host.decide(id, verdict, &by).await })
        });
        let mut won = Vec::new();
        for answer in answers.collect::<Vec<_>>() {
            match answer.await.unwrap() {
                Ok(decided) => won.push(decided),
                Err(error) => assert!(
                    matches!(error, ApprovalError::AlreadyDecided { .. }),
                    "{error:?}"
                ),
            }
        }
        assert_eq!(won.len(), 1);
        let outcome = if won[0].allowed {
            Outcome::Succeeded
        } else {
            Outcome::Denied
        };
        assert_eq!(handle.answer().await.result().outcome, outcome);
        assert_eq!(tool.call_count(), usize::from(won[0].allowed));
        let rows = records_of(&host, id).await;
        let decided: Vec<_> = rows
            .iter()
            .filter(|row| row.record.kind == RecordKind::Decided)
            .collect();
        assert_eq!(decided.len(), 1);
        assert_eq!(body(decided[0])["by"], won[0].by.as_str());
    }
}

#[tokio::test]
async fn a_cancel_while_a_yes_is_written_down_wins_and_leaves_no_grant() {
    let tool = act();
    let held = Held::at(RecordKind::Decided, &Arc::default());
    let host = on(&held, &tool).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    let deciding = host.host.clone();
    let answer = tokio::spawn(async move { deciding.decide(id, yes(), &operator()).await });
    held.reached().await;
    assert!(host.host.cancel(id, &Principal::agent("test")));
    held.go_on();
    assert_eq!(answer.await.unwrap().unwrap().kept_until, None);
    assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
    assert_eq!(
        kinds(&records_of(&host, id).await),
        ["asked", "decided", "ended"]
    );
    let again = start(&host, target("main")).await;
    waiting(&host.host, 1).await;
    drop(again);
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_host_that_goes_while_a_yes_is_written_down_does_not_waste_it() {
    let tool = act();
    let held = Held::at(RecordKind::Decided, &Arc::default());
    let host = on(&held, &tool).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    let deciding = host.host.clone();
    let answer = tokio::spawn(async move { deciding.decide(id, yes(), &operator()).await });
    held.reached().await;
    let going = host.host.clone();
    let stays = host.host.clone();
    let shutdown = tokio::spawn(async move { going.shutdown(Duration::from_secs(60)).await });
    while !stays.health().shutting_down {
        tokio::task::yield_now().await;
    }
    held.go_on();
    answer.await.unwrap().unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    shutdown.await.unwrap();
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn patience_that_runs_out_while_a_yes_is_written_down_does_not_waste_it() {
    let tool = act();
    let held = Held::at(RecordKind::Decided, &Arc::default());
    let host = on(&held, &tool).await;
    let mut request = host.request("act", target("main"));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_secs(60)));
    let handle = host.host.start(request).await;
    let id = question(&host.host).await.ask_id;
    let deciding = host.host.clone();
    let answer = tokio::spawn(async move { deciding.decide(id, yes(), &operator()).await });
    held.reached().await;
    // Its time and the question's both run out.
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    held.go_on();
    assert_eq!(answer.await.unwrap().unwrap().waiting, 1);
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    let _again = start(&host, target("main")).await;
    questions(&host.host, 1).await;
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn an_answer_is_carried_through_though_nobody_waits_for_it() {
    let tool = act();
    let held = Held::at(RecordKind::Decided, &Arc::default());
    let host = on(&held, &tool).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    let deciding = host.host.clone();
    let answer = tokio::spawn(async move { deciding.decide(id, yes(), &operator()).await });
    held.reached().await;
    answer.abort();
    assert!(answer.await.unwrap_err().is_cancelled());
    held.go_on();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn an_answer_that_cannot_be_recorded_does_not_count_and_the_operator_is_told() {
    let tool = act();
    let held = Held::refusing(RecordKind::Decided, &Arc::default());
    let host = on(&held, &tool).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    for scope in [
        ApprovalScope::Once,
        ApprovalScope::Session,
        ApprovalScope::Remember,
    ] {
        let refused = decide(&host, id, scoped(scope)).await;
        assert!(
            matches!(refused, Err(ApprovalError::Journal(_))),
            "{refused:?}"
        );
    }
    assert_eq!((host.host.approvals().len(), tool.call_count()), (1, 0));
    assert!(
        host.host.remembered().is_empty(),
        "a rule goes with its answer"
    );
    held.is_full.store(false, Ordering::SeqCst);
    decide(&host, id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_question_that_cannot_be_recorded_is_not_asked() {
    let tool = act();
    let held = Held::refusing(RecordKind::Asked, &Arc::default());
    let host = on(&held, &tool).await;
    let result = host.call("act", target("main")).await;
    assert_eq!(result.error_class(), Some(ErrorClass::JournalUnavailable));
    assert!(host.host.approvals().is_empty());
    held.is_full.store(false, Ordering::SeqCst);
    let handle = start(&host, target("main")).await;
    decide(&host, question(&host.host).await.ask_id, yes())
        .await
        .unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn nobody_sees_or_answers_a_question_that_is_not_on_record_yet() {
    let tool = act();
    let held = Held::at(RecordKind::Asked, &Arc::default());
    let host = on(&held, &tool).await;
    let handle = start(&host, target("main")).await;
    held.reached().await;
    assert!(
        host.host.approvals().is_empty() && host.host.approval(handle.invocation_id()).is_none()
    );
    let deciding = host.host.clone();
    let id = handle.invocation_id();
    let early = tokio::spawn(async move { deciding.decide(id, yes(), &operator()).await });
    held.go_on();
    early.await.unwrap().unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(
        kinds(&records_of(&host, id).await),
        ["asked", "decided", "started", "ended"]
    );
}

#[tokio::test]
async fn who_comes_while_a_late_yes_is_written_down_uses_it_and_it_is_gone() {
    let tool = act();
    let held = Held::at(RecordKind::Decided, &Arc::default());
    let host = on(&held, &tool).await;
    let mut request = host.request("act", target("main"));
    request.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_millis(1)));
    host.host.call(request).await;
    let id = question(&host.host).await.ask_id;
    let deciding = host.host.clone();
    let answer = tokio::spawn(async move { deciding.decide(id, yes(), &operator()).await });
    held.reached().await;
    let handle = start(&host, target("main")).await;
    while host
        .host
        .invocation(handle.invocation_id(), &operator())
        .await
        .unwrap()
        .unwrap()
        .stage
        != Some(toolpost_model::Stage::AwaitApproval)
    {
        tokio::task::yield_now().await;
    }
    held.go_on();
    assert!(answer.await.unwrap().unwrap().kept_until.is_some());
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    let _third = start(&host, target("main")).await;
    questions(&host.host, 1).await;
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn rules_that_deny_meanwhile_beat_the_yes() {
    let tool = act();
    let host = super::host(&tool).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    host.host.replace_policy(Arc::new(Engine::new(
        PermissionMode::Default,
        &["deny act"],
    )));
    decide(&host, id, yes()).await.unwrap();
    let answer = handle.answer().await;
    assert_eq!(
        answer.result().error_class(),
        Some(ErrorClass::PermissionDenied)
    );
    assert_eq!(tool.call_count(), 0);
    assert_eq!(
        kinds(&records_of(&host, id).await),
        ["asked", "decided", "ended"]
    );
}

/// A tool that touches what the test says at the moment.
#[derive(Clone)]
struct Shifting {
    touches: Arc<Mutex<&'static str>>,
    ran: Arc<AtomicBool>,
}

impl Tool for Shifting {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("demo.act".parse().unwrap(), "Shifts");
        declaration.interface.safety.class = ClassFact::Always(EffectClass::Write);
        declaration
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        let path = ResourceKey::path(*self.touches.lock().unwrap());
        Some(Effects::of(EffectClass::Write).using(path, ResourceAccess::Write))
    }

    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolFailure> {
        self.ran.store(true, Ordering::SeqCst);
        Ok(ToolOutput::default())
    }
}

#[tokio::test]
async fn a_yes_is_for_the_facts_that_were_shown_and_other_facts_are_asked_about_under_another_id() {
    let shifting = Shifting {
        touches: Arc::new(Mutex::new("/w/a")),
        ran: Arc::default(),
    };
    let gate = MockToolGate::new();
    let tool = shifting.clone();
    let busy = MockNativeTool::named("demo.busy").gate(&gate);
    let scheduler = SchedulerLimits {
        concurrency: 1,
        session_concurrency: 1,
        ..HostLimits::default().scheduler
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let host = TestHost::build(|builder| {
        let builder = builder.tool(tool).tool(busy.clone()).limits(limits);
        builder
            .policy(Engine::default())
            .approvals(toolpost_core::Approvals::ASK)
    });
    let host = host.await;
    let occupied = host.host.start(host.request("busy", target("x"))).await;
    gate.entered(1).await;
    let handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    decide(&host, first.ask_id, yes()).await.unwrap();
    while host.host.health().queued == 0 {
        tokio::task::yield_now().await;
    }
    *shifting.touches.lock().unwrap() = "/w/b";
    gate.let_through(1);
    occupied.answer().await;
    let second = question(&host.host).await;
    assert_ne!(
        (second.ask_id, second.call_hash),
        (first.ask_id, first.call_hash)
    );
    assert!(second.summary.contains("/w/b"), "{}", second.summary);
    assert!(!shifting.ran.load(Ordering::SeqCst));
    let stale = decide(&host, first.ask_id, yes()).await;
    assert!(
        matches!(stale, Err(ApprovalError::AlreadyDecided { .. })),
        "what was seen is what is answered"
    );
    decide(&host, second.ask_id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    let rows = kinds(&records_of(&host, first.ask_id).await);
    assert_eq!(
        rows,
        ["asked", "decided", "asked", "decided", "started", "ended"]
    );
}
