//! The offer in a question about a server: one answer for its tools that only read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use serde_json::json;
use toolpost_core::{
    ApprovalError, Approvals, HostBuilder, MemoryJournal, MemoryRules, Patience, Policy, RuleStore,
    VerdictReceipt,
};
use toolpost_model::{
    ApprovalScope, BoxFuture, CallInput, ClassFact, Declaration, DynTool, EffectClass,
    EffectOrigin, ErrorClass, InvocationId, Outcome, PermissionMode, PermissionRequest, Principal,
    Rule, RuleOrigin, SandboxPlan, SandboxProfile, SandboxTier, SessionScope, Source, SourceError,
    SourceFeed, SourceNotice, SourceSession, SurfaceRequest, Tool, ToolCall, ToolFailure,
    ToolOutput, ToolPermissionSettings, ToolSet, ToolSettings, Verdict, WireNaming,
};
use toolpost_testkit::TestHost;

use super::{crashed, decide, operator, question, runs_unasked, scoped};

/// A tool as a server claims it to be, with the digest of its definition.
#[derive(Clone)]
struct PinnedTool {
    declaration: Declaration,
    /// Whether the server's process reaches the network. `None`: it runs on another machine.
    network: Option<bool>,
}

impl PinnedTool {
    fn new(name: &str, class: EffectClass, digest: &str) -> Self {
        let id = format!("notes.{name}").parse().unwrap();
        let mut declaration = Declaration::new(id, format!("The tool\n {name}\u{202e}."));
        declaration.interface.safety.class = ClassFact::Always(class);
        declaration.definition = Some(digest.to_owned());
        Self {
            declaration,
            network: None,
        }
    }

    fn reads(name: &str) -> Self {
        Self::new(name, EffectClass::Read, "d1")
    }

    fn declare(mut self, change: impl FnOnce(&mut Declaration)) -> Self {
        change(&mut self.declaration);
        self
    }
}

impl Tool for PinnedTool {
    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }
    fn sandbox(&self, _: &CallInput, _: Option<SandboxProfile>) -> Option<SandboxPlan> {
        self.network.map(|network| SandboxPlan {
            profile: SandboxProfile::WorkspaceWrite,
            tier: SandboxTier::A,
            network,
            writable: Vec::new(),
            readable: Vec::new(),
            required: false,
            lack: None,
            missing: Vec::new(),
        })
    }
    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text("done"))
    }
}

/// A server that can change its tools.
#[derive(Clone, Default)]
struct PinningSource {
    tools: Arc<Mutex<Vec<PinnedTool>>>,
    feed: Arc<OnceLock<SourceFeed>>,
}

impl PinningSource {
    fn of(tools: &[PinnedTool]) -> Self {
        let source = Self::default();
        source.tools.lock().unwrap().extend_from_slice(tools);
        source
    }
}

impl Source for PinningSource {
    fn name(&self) -> &str {
        "notes"
    }
    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }
    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }
    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        let tools = self.tools.lock().unwrap();
        let listed = tools.iter().map(Tool::declaration).collect();
        Box::pin(std::future::ready(Ok(listed)))
    }
    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(async move {
            let tools = self.tools.lock().unwrap().clone();
            let tools = tools
                .into_iter()
                .map(|tool| Arc::new(tool) as Arc<dyn DynTool>);
            ToolSet::new("notes", tools).open(session).await
        })
    }
    fn connect(&self, feed: SourceFeed) {
        // A source of an earlier host keeps its first feed.
        let _ = self.feed.set(feed);
    }
}

fn policy(rules: &[&str]) -> Policy {
    TestHost::policy(PermissionMode::Default, rules)
}

fn serving(builder: HostBuilder, source: &PinningSource, rules: &Arc<MemoryRules>) -> HostBuilder {
    builder
        .source(source.clone())
        .policy(policy(&[]))
        .approvals(Approvals::ASK)
        .rule_store(rules.clone())
}

async fn host(tools: &[PinnedTool]) -> TestHost {
    let source = PinningSource::of(tools);
    TestHost::build(|builder| serving(builder, &source, &Arc::default())).await
}

/// Calls a tool that asks; gives the question and the receipt of the answer. The call then runs.
async fn answered(
    host: &TestHost,
    tool: &str,
    scope: ApprovalScope,
) -> (PermissionRequest, VerdictReceipt) {
    let handle = host.host.start(host.request(tool, json!({}))).await;
    let asked = question(&host.host).await;
    let receipt = decide(host, asked.ask_id, scoped(scope)).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    (asked, receipt)
}

/// Whether a call of the tool runs without a question.
async fn runs(host: &TestHost, tool: &str) -> bool {
    runs_unasked(&host.host, host.request(tool, json!({}))).await
}

fn offered(asked: &PermissionRequest) -> Vec<String> {
    let offers = asked.source_offer.iter();
    offers
        .flat_map(|offer| offer.offered())
        .map(|tool| tool.tool_id.name().to_owned())
        .collect()
}

/// The tools that the first question about a server offers.
async fn offered_by(host: &TestHost, tool: &str) -> Vec<String> {
    let handle = host.host.start(host.request(tool, json!({}))).await;
    let asked = question(&host.host).await;
    host.host.cancel(handle.invocation_id(), &operator());
    handle.answer().await;
    offered(&asked)
}

#[tokio::test]
async fn one_answer_allows_the_tools_that_only_read_and_no_others() {
    let host = host(&[
        PinnedTool::new("write", EffectClass::Write, "d1"),
        PinnedTool::reads("list"),
        PinnedTool::reads("show"),
    ])
    .await;
    let (asked, receipt) = answered(&host, "write", ApprovalScope::SourceReads).await;
    let offer = asked.source_offer.unwrap();
    let listed: Vec<(&str, &str, bool)> = offer
        .tools
        .iter()
        .map(|tool| (tool.tool_id.as_str(), tool.about.as_str(), tool.is_offered))
        .collect();
    assert_eq!(
        listed,
        [
            ("notes.list", r"The tool list\u{202e}.", true),
            ("notes.show", r"The tool show\u{202e}.", true),
            ("notes.write", r"The tool write\u{202e}.", false),
        ]
    );
    assert_eq!((offer.source.as_str(), offer.more), ("notes", 0));
    assert_eq!((receipt.rule, receipt.remembered), (None, None));
    let saved: Vec<(&str, Option<&str>)> = receipt
        .source_rules
        .iter()
        .map(|rule| (rule.rule.as_str(), rule.definition.as_deref()))
        .collect();
    assert_eq!(
        saved,
        [
            ("allow notes.list", Some("d1")),
            ("allow notes.show", Some("d1"))
        ]
    );
    assert_eq!(host.host.remembered(), receipt.source_rules);
    for (tool, expected) in [("list", true), ("show", true), ("write", false)] {
        assert_eq!(runs(&host, tool).await, expected, "{tool}");
    }
    // The asked call was allowed once, and the remaining tools are not offered again.
    assert_eq!(offered_by(&host, "write").await, Vec::<String>::new());

    // The rules are for everyone, and each of them can be forgotten.
    let other = host
        .host
        .open_session(Principal::agent("other"), SurfaceRequest::default())
        .await
        .unwrap();
    let mut request = host.request("list", json!({}));
    request.session = other;
    assert!(runs_unasked(&host.host, request).await);
    assert!(host.host.forget(&receipt.source_rules[0].id).await.unwrap());
    assert!(!runs(&host, "list").await && runs(&host, "show").await);
    assert_eq!(offered_by(&host, "list").await, ["list"]);
}

#[tokio::test]
async fn only_tools_that_claim_to_read_are_offered() {
    let tool = |class| PinnedTool::new("it", class, "d1");
    let destructive = |d: &mut Declaration| d.interface.safety.destructive = true;
    let is_cut_off = |network| PinnedTool {
        network,
        ..tool(EffectClass::Network)
    };
    let mut lacking = is_cut_off(Some(false));
    lacking
        .declaration
        .interface
        .safety
        .requires_user_interaction = true;
    for (what, tool, is_offered) in [
        ("a read", tool(EffectClass::Read), true),
        ("a write", tool(EffectClass::Write), false),
        ("a command", tool(EffectClass::Execute), false),
        ("unknown", tool(EffectClass::Unknown), false),
        (
            "destructive",
            tool(EffectClass::Read).declare(destructive),
            false,
        ),
        ("open world, elsewhere", is_cut_off(None), false),
        ("open world, with network", is_cut_off(Some(true)), false),
        ("open world, cut off", is_cut_off(Some(false)), true),
        ("a person at hand", lacking, false),
        (
            "not pinned",
            tool(EffectClass::Read).declare(|d| d.definition = None),
            false,
        ),
    ] {
        let asked = offered_by(&host(&[tool]).await, "it").await;
        assert_eq!(asked == ["it"], is_offered, "{what}: {asked:?}");
    }
}

#[tokio::test]
async fn rules_that_settle_a_tool_leave_it_out_of_the_offer_and_still_count() {
    let tools = [
        PinnedTool::new("write", EffectClass::Write, "d1"),
        PinnedTool::reads("list"),
    ];
    let mut never = Rule::parse("ask notes.list", RuleOrigin::Cli, "test").unwrap();
    never.remember = toolpost_model::RememberOffer::Never;
    let admin = Rule::parse("ask notes.list", RuleOrigin::Policy, "test").unwrap();
    let mut other = Rule::parse("deny notes.list", RuleOrigin::Cli, "test").unwrap();
    other.principal = Some("other".to_owned());
    let line = |text: &str| Rule::parse(text, RuleOrigin::Cli, "test").unwrap();
    let mut guest = line("ask notes.list");
    guest.principal = Some("guest-*".to_owned());
    for (what, rules, is_offered) in [
        ("no rule", vec![], true),
        ("an ask", vec![line("ask notes.*")], false),
        ("an ask for another caller", vec![guest], false),
        (
            "an ask for some arguments",
            vec![line("ask notes.list[/path]")],
            false,
        ),
        (
            "an ask about the class",
            vec![line("ask class:unknown")],
            false,
        ),
        ("an allow", vec![line("allow notes.list")], false),
        (
            "an ask over an allow",
            vec![line("allow notes.list"), line("ask notes.list")],
            false,
        ),
        ("a deny", vec![line("deny notes.list")], false),
        ("a deny for another caller", vec![other], true),
        (
            "a deny for some arguments",
            vec![line("deny *[/force]")],
            true,
        ),
        ("an ask without an end", vec![never], false),
        ("an ask of the administrator", vec![admin], false),
        ("a deny of the class", vec![line("deny class:read")], true),
    ] {
        let spec = toolpost_core::PolicySpec {
            rules,
            ..toolpost_core::PolicySpec::default()
        };
        let engine = Policy::compile(spec).unwrap();
        let source = PinningSource::of(&tools);
        let host =
            TestHost::build(|builder| serving(builder, &source, &Arc::default()).policy(engine))
                .await;
        let asked = offered_by(&host, "write").await;
        assert_eq!(asked == ["list"], is_offered, "{what}: {asked:?}");
    }

    // A rule that denies wins over what was saved before it.
    let host = host(&tools).await;
    answered(&host, "write", ApprovalScope::SourceReads).await;
    host.host.replace_policy(Arc::new(policy(&["deny list"])));
    assert_eq!(host.call("list", json!({})).await.outcome, Outcome::Denied);
    let mut always = Rule::parse("ask list", RuleOrigin::Policy, "test").unwrap();
    always.reason = Some("looked at".to_owned());
    let spec = toolpost_core::PolicySpec {
        rules: vec![always],
        ..toolpost_core::PolicySpec::default()
    };
    host.host
        .replace_policy(Arc::new(Policy::compile(spec).unwrap()));
    assert!(!runs(&host, "list").await);
}

#[tokio::test]
async fn settings_that_require_approval_leave_a_tool_out() {
    let source = PinningSource::of(&[PinnedTool::reads("list"), PinnedTool::reads("show")]);
    let required = ToolSettings {
        permission: ToolPermissionSettings {
            approval_required: Some(true),
            ..ToolPermissionSettings::default()
        },
        ..ToolSettings::default()
    };
    let settings = HashMap::from([("notes.show".to_owned(), required)]);
    let host =
        TestHost::build(|builder| serving(builder, &source, &Arc::default()).settings(settings))
            .await;
    let (asked, _) = answered(&host, "show", ApprovalScope::SourceReads).await;
    assert_eq!(offered(&asked), ["list"]);
    assert!(!runs(&host, "show").await, "the call was allowed once");
}

#[tokio::test]
async fn a_changed_definition_and_a_new_tool_ask() {
    let source = PinningSource::of(&[PinnedTool::reads("list"), PinnedTool::reads("show")]);
    let host = TestHost::build(|builder| serving(builder, &source, &Arc::default())).await;
    answered(&host, "list", ApprovalScope::SourceReads).await;
    assert!(runs(&host, "list").await);

    let change = async |tools: Vec<PinnedTool>| {
        let mut changes = host.host.changes();
        changes.mark_unchanged();
        *source.tools.lock().unwrap() = tools;
        source
            .feed
            .get()
            .unwrap()
            .notify(SourceNotice::ToolsChanged);
        changes.changed().await.unwrap();
    };
    let changed = PinnedTool::new("list", EffectClass::Read, "d2");
    change(vec![
        changed.clone(),
        PinnedTool::reads("show"),
        PinnedTool::reads("new"),
    ])
    .await;
    assert!(runs(&host, "show").await);
    assert!(!runs(&host, "list").await && !runs(&host, "new").await);
    assert_eq!(offered_by(&host, "list").await, ["list", "new"]);
    let account = host.host.explain(host.request("list", json!({}))).await;
    let told = serde_json::to_string(&account).unwrap();
    assert!(
        told.contains("it allows the tool as it was defined when an operator answered"),
        "{told}"
    );

    // The old definition again: an operator allowed it.
    change(vec![PinnedTool::reads("list")]).await;
    assert!(runs(&host, "list").await);
}

#[tokio::test]
async fn the_rules_outlive_the_host_and_expire() {
    let source = PinningSource::of(&[PinnedTool::reads("list"), PinnedTool::reads("show")]);
    let rules = Arc::new(MemoryRules::default());
    let first = TestHost::build(|builder| serving(builder, &source, &rules)).await;
    let handle = first.host.start(first.request("list", json!({}))).await;
    let verdict = Verdict::Allow {
        scope: ApprovalScope::SourceReads,
        rule: None,
        valid_for_seconds: Some(3_600),
        arguments: None,
    };
    let id = question(&first.host).await.ask_id;
    let saved = decide(&first, id, verdict).await.unwrap().source_rules;
    handle.answer().await;
    for rule in &saved {
        assert_eq!(rule.expires.duration_since(rule.at).as_secs(), 3_600);
        assert_eq!(rule.ask_id, id);
    }
    let next = TestHost::build(|builder| serving(builder, &source, &rules)).await;
    assert!(runs(&next, "list").await && runs(&next, "show").await);
    let mut expired = saved[0].clone();
    expired.expires = expired.at;
    rules.remember(&[expired]).unwrap();
    let next = TestHost::build(|builder| serving(builder, &source, &rules)).await;
    assert!(!runs(&next, "list").await && runs(&next, "show").await);

    // Another definition of the same server at the next start.
    let changed = PinningSource::of(&[
        PinnedTool::reads("list"),
        PinnedTool::new("show", EffectClass::Read, "d2"),
    ]);
    let next = TestHost::build(|builder| serving(builder, &changed, &rules)).await;
    assert!(!runs(&next, "show").await);
}

/// A journal on which a call of `list` waits.
async fn parked(tools: &[PinnedTool]) -> (Arc<MemoryJournal>, InvocationId) {
    let host = host(tools).await;
    let _handle = host.host.start(host.request("list", json!({}))).await;
    let asked = question(&host.host).await;
    assert!(asked.source_offer.is_some());
    (crashed(&host.journal).await, asked.ask_id)
}

#[tokio::test]
async fn a_question_that_outlived_its_host_offers_only_what_it_showed() {
    let tools = [PinnedTool::reads("list"), PinnedTool::reads("show")];
    let changed = [
        PinnedTool::reads("list"),
        PinnedTool::new("show", EffectClass::Read, "d2"),
    ];
    let more = [&tools[..], &[PinnedTool::reads("new")]].concat();
    for (what, tools_now, is_offered) in [
        ("the same", tools.to_vec(), true),
        ("changed", changed.to_vec(), false),
        ("more", more, false),
    ] {
        let (journal, id) = parked(&tools).await;
        let source = PinningSource::of(&tools_now);
        let rules = Arc::default();
        let host = TestHost::on(journal, |builder| serving(builder, &source, &rules)).await;
        let asked = question(&host.host).await;
        assert_eq!(asked.ask_id, id, "{what}");
        assert_eq!(asked.source_offer.is_some(), is_offered, "{what}");
        let decided = decide(&host, id, scoped(ApprovalScope::SourceReads)).await;
        if is_offered {
            assert_eq!(decided.unwrap().source_rules.len(), 2, "{what}");
            continue;
        }
        assert!(
            matches!(decided, Err(ApprovalError::NothingOffered)),
            "{what}: {decided:?}"
        );
        assert!(host.host.remembered().is_empty());
        // The same tools in a third host do not bring the offer back.
        let journal = crashed(&host.journal).await;
        let source = PinningSource::of(&tools);
        let next = TestHost::on(journal, |builder| serving(builder, &source, &rules)).await;
        let asked = question(&next.host).await;
        assert_eq!((asked.ask_id, asked.source_offer), (id, None), "{what}");
    }
}

#[tokio::test]
async fn a_long_list_offers_only_what_it_shows() {
    let tool = |place: usize| PinnedTool::reads(&format!("read-{place:03}"));
    let mut tools: Vec<PinnedTool> = (0..130).map(tool).collect();
    tools.push(PinnedTool::new("a-write", EffectClass::Write, "d1"));
    let host = host(&tools).await;
    let (asked, receipt) = answered(&host, "a-write", ApprovalScope::SourceReads).await;
    let offer = asked.source_offer.unwrap();
    assert_eq!((offer.tools.len(), offer.more), (30, 101));
    assert!(offer.tools.iter().all(|tool| tool.is_offered));
    assert_eq!(receipt.source_rules.len(), 30);
    assert!(runs(&host, "read-029").await && !runs(&host, "read-030").await);
    // The next question offers the others.
    let (asked, receipt) = answered(&host, "read-129", ApprovalScope::SourceReads).await;
    assert_eq!(
        (offered(&asked).len(), receipt.source_rules.len()),
        (30, 30)
    );
    assert!(runs(&host, "read-059").await && !runs(&host, "read-060").await);
}

#[tokio::test]
async fn two_questions_with_one_offer_save_each_rule_once() {
    let host = host(&[PinnedTool::reads("list"), PinnedTool::reads("show")]).await;
    let mut waiting = Vec::new();
    for tool in ["list", "show"] {
        waiting.push(host.host.start(host.request(tool, json!({}))).await);
    }
    while host.host.approvals().len() < 2 {
        tokio::task::yield_now().await;
    }
    for asked in host.host.approvals() {
        decide(&host, asked.ask_id, scoped(ApprovalScope::SourceReads))
            .await
            .unwrap();
    }
    let kept = host.host.remembered();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let list = kept.iter().find(|rule| rule.rule == "allow notes.list");
    host.host.forget(&list.unwrap().id).await.unwrap();
    assert!(!runs(&host, "list").await && runs(&host, "show").await);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_offer_saves_nothing() {
    let host = host(&[PinnedTool::reads("list")]).await;
    let _handle = host.host.start(host.request("list", json!({}))).await;
    let id = question(&host.host).await.ask_id;
    let named = Verdict::Allow {
        scope: ApprovalScope::SourceReads,
        rule: Some("allow notes.list".to_owned()),
        valid_for_seconds: None,
        arguments: None,
    };
    let refused = decide(&host, id, named).await;
    assert!(
        matches!(refused, Err(ApprovalError::RuleBesideOffer(_))),
        "{refused:?}"
    );
    // The question stays, and nothing is on record.
    assert_eq!(host.host.approvals().len(), 1);
    assert!(host.host.remembered().is_empty());
    let agent = host
        .host
        .decide(
            id,
            scoped(ApprovalScope::SourceReads),
            &Principal::agent("test"),
        )
        .await;
    assert!(
        matches!(agent, Err(ApprovalError::NotOperator)),
        "{agent:?}"
    );

    // Without an operator there is no question, and so no offer.
    let source = PinningSource::of(&[PinnedTool::reads("list")]);
    let nobody = TestHost::build(|builder| {
        serving(builder, &source, &Arc::default()).approvals(Approvals::Nobody)
    })
    .await;
    let mut request = nobody.request("list", json!({}));
    request.times.patience = Some(Patience::Turn(std::time::Duration::from_millis(1)));
    let answer = nobody.host.call(request).await;
    assert_eq!(
        answer.result().error_class(),
        Some(ErrorClass::PermissionDenied)
    );
}
