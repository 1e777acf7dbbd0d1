//! A whole host in memory.

use std::{path::Path, sync::Arc};

use serde_json::Value;
use toolpost_core::{
    CallRequest, Cassette, Host, HostBuilder, MemoryJournal, Policy, PolicySpec, ReplayOptions,
    Session, StoredRecord,
};
use toolpost_model::{ModelInput, PermissionMode, Principal, Rule, RuleOrigin, Tool, ToolResult};

/// A host in memory with one session, in mode `bypass` by default.
pub struct TestHost {
    /// The host.
    pub host: Host,
    /// Its journal.
    pub journal: Arc<MemoryJournal>,
    /// The session calls go through.
    pub session: Arc<Session>,
}

impl TestHost {
    /// A host with one tool.
    pub async fn with(tool: impl Tool) -> Self {
        Self::build(|builder| builder.tool(tool)).await
    }

    /// A host put together by the test.
    pub async fn build(change: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        Self::on(Arc::new(MemoryJournal::default()), change).await
    }

    /// A host on a journal that may already have records.
    pub async fn on(
        journal: Arc<MemoryJournal>,
        change: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Self {
        let builder = Host::builder()
            .journal(journal.clone())
            .policy(Self::policy(PermissionMode::Bypass, &[]));
        let host = change(builder)
            .build()
            .await
            .expect("a host in memory starts");
        let session = host.default_session(&Principal::agent("test"));
        Self {
            host,
            journal,
            session,
        }
    }

    /// A host that answers from a cassette file, in any order and at once. `toolpost capture` writes such files.
    pub async fn replay(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let cassette = crate::cassette_file::read(path);
        let cassette = cassette.unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
        Self::replaying(cassette, ReplayOptions::default()).await
    }

    /// A host that answers from a cassette.
    pub async fn replaying(cassette: Cassette, options: ReplayOptions) -> Self {
        Self::build(|builder| builder.replay(cassette, options)).await
    }

    /// A cassette of this host's record.
    pub async fn cassette(&self) -> Cassette {
        Cassette::of(&self.records().await)
    }

    /// Fails the test unless every call of the cassette was made, and no other.
    #[track_caller]
    pub fn assert_replayed(&self) {
        let report = self
            .host
            .replay_report()
            .expect("the host serves a recording");
        assert!(
            report.refused == 0 && report.left.is_empty(),
            "not as recorded: {report:?}"
        );
    }

    /// A policy from rule lines.
    pub fn policy(mode: PermissionMode, rules: &[&str]) -> Policy {
        let rule = |line: &&str| Rule::parse(line, RuleOrigin::Cli, "test").expect("a rule");
        let rules = rules.iter().map(rule).collect();
        Policy::compile(PolicySpec {
            mode,
            rules,
            ..PolicySpec::default()
        })
        .expect("valid rules")
    }

    /// A request in the host's session.
    pub fn request(&self, tool: &str, arguments: Value) -> CallRequest {
        CallRequest::new(
            Arc::clone(&self.session),
            tool,
            ModelInput::value(arguments),
        )
    }

    /// Calls a tool and waits for its result.
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.host
            .call(self.request(tool, arguments))
            .await
            .result()
            .clone()
    }

    /// All records.
    pub async fn records(&self) -> Vec<StoredRecord> {
        use toolpost_core::Journal as _;
        self.journal
            .read(0, usize::MAX)
            .await
            .expect("memory can be read")
    }

    /// The records of calls, without those of the host, its catalog and its sessions.
    pub async fn call_records(&self) -> Vec<StoredRecord> {
        let mut rows = self.records().await;
        rows.retain(|row| row.record.invocation_id.is_some());
        rows
    }
}
