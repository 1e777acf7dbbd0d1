//! Nothing runs unrecorded.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use toolpost_core::{
    AppendStrength, CallRequest, Host, Journal, JournalError, JournalHead, MemoryJournal,
    PrunedRange, Query, Record, RecordKind, RetentionCut, StoredRecord,
};
use toolpost_model::{
    BoxFuture, EffectClass, ErrorClass, InvocationId, ModelInput, Outcome, Principal, RequestId,
    SessionId,
};
use toolpost_testkit::{MockNativeTool, TestHost};

/// A journal whose disk can be filled; `only` fills it for one kind of record.
#[derive(Default)]
struct Filling {
    inner: MemoryJournal,
    full: AtomicBool,
    only: Option<RecordKind>,
}

impl Journal for Filling {
    fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        let hit = self.only.is_none_or(|kind| kind == record.kind);
        if hit && self.full.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(JournalError::Full(
                "no space left".into(),
            ))));
        }
        self.inner.append(record, strength)
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

async fn host(journal: &Arc<Filling>, tool: &MockNativeTool) -> Host {
    let policy = TestHost::policy(toolpost_model::PermissionMode::Bypass, &[]);
    Host::builder()
        .journal(journal.clone())
        .tool(tool.clone())
        .policy(policy)
        .build()
        .await
        .unwrap()
}

async fn call(host: &Host) -> toolpost_model::ToolResult {
    let session = host.default_session(&Principal::agent("a"));
    let request = CallRequest::new(session, "act", ModelInput::value(json!({})));
    host.call(request).await.result().clone()
}

#[tokio::test]
async fn a_full_journal_refuses_writes_before_they_run_and_takes_them_again_when_there_is_room() {
    let journal = Arc::new(Filling::default());
    let tool = MockNativeTool::named("demo.act").class(EffectClass::Write);
    let host = host(&journal, &tool).await;
    journal.full.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let result = call(&host).await;
        let error = result.error.unwrap();
        assert_eq!(
            (result.outcome, error.class),
            (Outcome::Rejected, ErrorClass::JournalUnavailable)
        );
        assert!(error.message.contains("no space left"));
    }
    assert_eq!(tool.call_count(), 0);
    assert!(host.health().journal_failing);
    journal.full.store(false, Ordering::SeqCst);
    assert_eq!(call(&host).await.outcome, Outcome::Succeeded);
    assert!(!host.health().journal_failing);
}

#[tokio::test]
async fn a_read_whose_end_cannot_be_written_gives_no_content_and_the_next_one_does_not_run() {
    let journal = Arc::new(Filling::default());
    let tool = MockNativeTool::named("demo.act").output("precious");
    let host = host(&journal, &tool).await;
    assert_eq!(call(&host).await.outcome, Outcome::Succeeded);
    journal.full.store(true, Ordering::SeqCst);
    let result = call(&host).await;
    assert_eq!(result.error.as_ref().unwrap().code, "end_not_recorded");
    assert!(result.content.is_empty());
    assert_eq!(
        call(&host).await.error_class(),
        Some(ErrorClass::JournalUnavailable)
    );
    assert_eq!(
        tool.call_count(),
        2,
        "once the journal is known to fail, nothing runs"
    );
}

#[tokio::test]
async fn a_write_whose_end_cannot_be_written_is_answered_as_unknown() {
    let journal = Arc::new(Filling {
        only: Some(RecordKind::Ended),
        ..Filling::default()
    });
    let tool = MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .output("precious");
    let host = host(&journal, &tool).await;
    journal.full.store(true, Ordering::SeqCst);
    let result = call(&host).await;
    assert_eq!((result.outcome, tool.call_count()), (Outcome::Unknown, 1));
    assert!(!result.error.unwrap().retry.safe);
}
