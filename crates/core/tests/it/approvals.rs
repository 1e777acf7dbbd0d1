//! Questions to a person: what is asked, what an answer does, and that neither is ever lost or used twice.

mod answers;
mod crashes;
mod files;
mod first_contact;
mod kept;
mod leaving;
mod nested;
mod races;
mod real_rules;
mod restart;
mod rules;

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_core::{
    ApprovalError, Approvals, CallHandle, CallRequest, Host, HostBuilder, Journal as _,
    MemoryJournal, PermissionFacts, PolicyEngine, RecordKind, StatusWord, StoredRecord,
    VerdictReceipt,
};
use toolpost_model::{
    ApprovalScope, Behavior, Decision, DecisionReason, Declaration, EffectClass, InvocationId,
    Outcome, PermissionMode, PermissionRequest, Principal, ReasonType, Rule, RuleOrigin, RuleRef,
    Selector, Stage, Verdict,
};
use toolpost_testkit::{MockNativeTool, TestHost};

/// A small engine that takes rules and suggests some: of what calls its rules speak is decided by the tool's name
/// alone, and a call with `"target": "forbidden"` is denied.
#[derive(Clone)]
struct Engine {
    mode: PermissionMode,
    rules: Vec<Rule>,
    suggests: bool,
}

impl Engine {
    fn new(mode: PermissionMode, lines: &[&str]) -> Self {
        let rule = |line: &&str| Rule::parse(line, RuleOrigin::Cli, "test").unwrap();
        Self {
            mode,
            rules: lines.iter().map(rule).collect(),
            suggests: true,
        }
    }

    fn default() -> Self {
        Self::new(PermissionMode::Default, &[])
    }

    fn with(&self, more: &[Rule]) -> Self {
        Self {
            rules: self.rules.iter().chain(more).cloned().collect(),
            ..self.clone()
        }
    }
}

impl PolicyEngine for Engine {
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision {
        let speaks = |rule: &&Rule| match &rule.selector {
            Selector::Tool { tools, .. } => tools.matches(&facts.declaration.tool_id, &[]),
            _ => false,
        };
        let matched = self
            .rules
            .iter()
            .filter(speaks)
            .filter(|rule| rule.speaks_of(facts.principal, facts.at));
        let strictest = matched.max_by_key(|rule| rule.effect);
        let target = facts
            .input
            .and_then(|input| input.arguments().str("target"));
        let opinion = facts
            .opinions
            .iter()
            .map(|vote| vote.behavior)
            .max()
            .unwrap_or(Behavior::Allow);
        let by_rules = strictest.map_or(self.mode.behavior(facts.effects.class, None), |rule| {
            rule.effect
        });
        let behavior = if target == Some("forbidden") {
            Behavior::Deny
        } else {
            by_rules.max(opinion)
        };
        Decision {
            behavior,
            class: facts.effects.class,
            mode: self.mode,
            reason: DecisionReason {
                kind: if strictest.is_some() {
                    ReasonType::Rule
                } else {
                    ReasonType::Mode
                },
                text: "the test's engine says so".to_owned(),
                rule: strictest.map(RuleRef::from),
            },
            also_matched: Vec::new(),
            classified: None,
            delegated: Vec::new(),
            subject: None,
            opaque: Vec::new(),
            notes: Vec::new(),
            approval_waived: None,
            operator_hint: None,
        }
    }

    fn denies_outright(&self, declaration: &Declaration, _: Option<EffectClass>) -> bool {
        self.rules.iter().any(|rule| match &rule.selector {
            Selector::Tool { tools, .. } => {
                rule.effect == Behavior::Deny && tools.matches(&declaration.tool_id, &[])
            }
            _ => false,
        })
    }

    fn suggestions(&self, facts: &PermissionFacts<'_>) -> Vec<Rule> {
        let lines = [
            format!("allow {}", facts.declaration.tool_id),
            "allow demo.*".to_owned(),
        ];
        let rules = lines
            .iter()
            .map(|line| Rule::parse(line, RuleOrigin::Session, "suggested").unwrap());
        let works = |rule: &Rule| {
            self.with(std::slice::from_ref(rule)).decide(facts).behavior == Behavior::Allow
        };
        if self.suggests {
            rules.filter(works).collect()
        } else {
            Vec::new()
        }
    }

    fn with_rules(&self, rules: &[Rule]) -> Option<Arc<dyn PolicyEngine>> {
        Some(Arc::new(self.with(rules)))
    }
}

/// A tool whose calls are asked about.
fn act() -> MockNativeTool {
    MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .output("done")
}

fn asking(builder: HostBuilder, tool: &MockNativeTool) -> HostBuilder {
    builder
        .tool(tool.clone())
        .policy(Engine::default())
        .approvals(Approvals::ASK)
}

async fn host(tool: &MockNativeTool) -> TestHost {
    TestHost::build(|builder| asking(builder, tool)).await
}

/// The next life of a host, on the same journal.
async fn next_life(journal: &Arc<MemoryJournal>, tool: &MockNativeTool) -> TestHost {
    TestHost::on(Arc::clone(journal), |builder| asking(builder, tool)).await
}

async fn start(host: &TestHost, arguments: Value) -> CallHandle {
    host.host.start(host.request("act", arguments)).await
}

/// The question that is on the table, once there is one.
async fn question(host: &Host) -> PermissionRequest {
    questions(host, 1).await.remove(0)
}

async fn questions(host: &Host, count: usize) -> Vec<PermissionRequest> {
    let mut changes = host.approval_changes();
    loop {
        let open = host.approvals();
        if open.len() == count {
            return open;
        }
        changes.changed().await.unwrap();
    }
}

/// Waits until so many calls wait for the one question.
async fn waiting(host: &Host, count: usize) -> PermissionRequest {
    let mut changes = host.approval_changes();
    loop {
        let open = host.approvals();
        if open.len() == 1 && open[0].waiting == count {
            return open[0].clone();
        }
        changes.changed().await.unwrap();
    }
}

/// Whether a call runs without anybody being asked. One that asks is given up.
async fn runs_unasked(host: &Host, request: CallRequest) -> bool {
    let handle = host.start(request).await;
    let id = handle.invocation_id();
    loop {
        let view = host.invocation(id, &operator()).await.unwrap();
        if view.is_some_and(|view| view.stage == Some(Stage::AwaitApproval)) {
            host.cancel(id, &operator());
            assert_eq!(handle.answer().await.result().outcome, Outcome::Canceled);
            return false;
        }
        if ended(host, id).await {
            assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
            return true;
        }
        tokio::task::yield_now().await;
    }
}

async fn ended(host: &Host, id: InvocationId) -> bool {
    let view = host.invocation(id, &operator()).await.unwrap();
    view.is_some_and(|view| view.status == StatusWord::Ended)
}

fn operator() -> Principal {
    Principal::operator("ann")
}

fn yes() -> Verdict {
    scoped(ApprovalScope::Once)
}

fn scoped(scope: ApprovalScope) -> Verdict {
    Verdict::Allow {
        scope,
        rule: None,
        valid_for_seconds: None,
        arguments: None,
    }
}

fn edited(arguments: Value) -> Verdict {
    let scope = ApprovalScope::Once;
    Verdict::Allow {
        scope,
        rule: None,
        valid_for_seconds: None,
        arguments: Some(arguments),
    }
}

fn no(feedback: &str) -> Verdict {
    Verdict::Deny {
        feedback: Some(feedback.to_owned()),
    }
}

async fn decide(
    host: &TestHost,
    id: InvocationId,
    verdict: Verdict,
) -> Result<VerdictReceipt, ApprovalError> {
    host.host.decide(id, verdict, &operator()).await
}

fn kinds(rows: &[StoredRecord]) -> Vec<&'static str> {
    rows.iter().map(|row| row.record.kind.as_str()).collect()
}

async fn records_of(host: &TestHost, id: InvocationId) -> Vec<StoredRecord> {
    host.journal.records_of(id).await.unwrap()
}

fn body(row: &StoredRecord) -> Value {
    serde_json::from_str(&row.record.body).unwrap()
}

/// The results on record of a call.
async fn ends(journal: &MemoryJournal, id: InvocationId) -> Vec<Value> {
    let rows = journal.records_of(id).await.unwrap();
    let ended = rows
        .iter()
        .filter(|row| row.record.kind == RecordKind::Ended);
    ended.map(|row| body(row)["result"].clone()).collect()
}

/// What a crash leaves of a journal: so many of its records.
async fn crashed_after(journal: &MemoryJournal, count: usize) -> Arc<MemoryJournal> {
    let copy = Arc::new(MemoryJournal::default());
    for row in journal.read(0, count).await.unwrap() {
        copy.append(row.record, toolpost_core::AppendStrength::Committed)
            .await
            .unwrap();
    }
    copy
}

async fn crashed(journal: &MemoryJournal) -> Arc<MemoryJournal> {
    crashed_after(journal, usize::MAX).await
}

/// Lets everything that a host still does come to its end.
async fn settle(host: &TestHost) {
    host.host.shutdown(std::time::Duration::from_secs(10)).await;
}

fn target(name: &str) -> Value {
    json!({ "target": name })
}
