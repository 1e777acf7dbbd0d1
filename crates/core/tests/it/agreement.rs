//! `explain` and `call` reach the same decision, over modes, rules, classes, tools and sources, remembered rules included.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use toolpost_core::{
    Approvals, Explanation, HostBuilder, MemoryRules, Patience, PolicySpec, RememberedRule,
    RuleStore as _,
};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, Behavior, DynTool, EffectClass, ErrorClass, InvocationId,
    Outcome, PermissionMode, PrincipalName, Provenance, Rule, RuleOrigin, ToolResult, ToolSet,
    WireNaming,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use crate::names::NamedSource;

/// Rules that meet the tools below often.
const RULES: [&str; 26] = [
    "allow shell",
    "allow shell(make *)",
    "deny shell(rm *)",
    "ask shell(git push *)",
    "allow *",
    "ask *",
    "allow *.*",
    "deny *.shell",
    "allow up.*",
    "allow up.shell",
    "ask up.shell",
    "deny plan.write_file",
    "allow plan.write_file",
    "allow write_file",
    "allow files.write_file(src/**)",
    "deny fs.write(src/kept/**)",
    "ask fs.read(**/.env)",
    "allow class:read",
    "ask class:write",
    "deny class:unknown",
    "allow class:unknown",
    "allow class:execute",
    "deny up__shell",
    "ask shell[/command = \"make x\"]",
    "allow up.shell[/command = \"make x\"]",
    "ask write_file",
];

const TOOLS: [&str; 6] = [
    "shell.shell",
    "files.write_file",
    "up.shell",
    "up.write_file",
    "plan.shell",
    "plan.write_file",
];

const COMMANDS: [&str; 5] = [
    "make x",
    "rm x",
    "git push origin",
    "cd a && make x; rm y",
    "$X",
];
const PATHS: [&str; 3] = ["src/a.rs", "src/kept/b", ".env"];

fn tool(id: &str, class: EffectClass) -> MockNativeTool {
    MockNativeTool::named(id)
        .class(class)
        .output("ran")
        .declare(|declaration| {
            declaration.interface.permission.arguments = vec![
                ArgumentMeaning::of("command", ArgumentKind::Command),
                ArgumentMeaning::of("path", ArgumentKind::WritePath),
            ];
        })
}

fn source(
    name: &'static str,
    provenance: Provenance,
    naming: WireNaming,
    class: EffectClass,
) -> NamedSource {
    let ids = [format!("{name}.shell"), format!("{name}.write_file")];
    let tools = ids
        .iter()
        .map(|id| Arc::new(tool(id, class)) as Arc<dyn DynTool>);
    NamedSource {
        name,
        naming,
        provenance,
        tools: ToolSet::new(name, tools),
    }
}

/// What was made up for one case.
#[derive(Clone, Debug)]
struct Case {
    mode: PermissionMode,
    rules: Vec<&'static str>,
    remembered: Vec<&'static str>,
    class: EffectClass,
    naming: bool,
    tool: &'static str,
    arguments: Value,
}

fn cases() -> impl Strategy<Value = Case> {
    let arguments = prop_oneof![
        select(&COMMANDS[..]).prop_map(|command| json!({ "command": command })),
        select(&PATHS[..]).prop_map(|path| json!({ "path": path })),
        Just(json!({})),
    ];
    let allows: Vec<&'static str> = RULES
        .iter()
        .copied()
        .filter(|rule| rule.starts_with("allow "))
        .collect();
    let rules = (vec(select(&RULES[..]), 0..5), vec(select(allows), 0..3));
    let mode = select(PermissionMode::ALL.to_vec());
    let class = select(EffectClass::ALL.to_vec());
    (
        mode,
        rules,
        class,
        any::<bool>(),
        select(&TOOLS[..]),
        arguments,
    )
        .prop_map(
            |(mode, (rules, remembered), class, naming, tool, arguments)| Case {
                mode,
                rules,
                remembered,
                class,
                naming,
                tool,
                arguments,
            },
        )
}

fn build(builder: HostBuilder, case: &Case) -> HostBuilder {
    let naming = if case.naming {
        WireNaming::Bare
    } else {
        WireNaming::Namespaced
    };
    let rule = |line: &&str| Rule::parse(line, RuleOrigin::User, "toolpost.yaml").unwrap();
    let places = toolpost_core::PathBaseFolders {
        workspace: Some("/w".into()),
        ..toolpost_core::PathBaseFolders::default()
    };
    let spec = PolicySpec {
        mode: case.mode,
        rules: case.rules.iter().map(rule).collect(),
        places,
        ..PolicySpec::default()
    };
    let store = MemoryRules::default();
    for line in &case.remembered {
        let ask_id = InvocationId::new();
        store
            .remember(&[RememberedRule {
                id: ask_id.to_string(),
                rule: (*line).to_owned(),
                principal: None,
                by: PrincipalName::new("ann"),
                at: Timestamp::UNIX_EPOCH,
                expires: Timestamp::MAX,
                ask_id,
                tool_id: Some("made.up".parse().unwrap()),
                definition: None,
            }])
            .unwrap();
    }
    builder
        .source(source("up", Provenance::Outside, naming, case.class))
        .source(source(
            "plan",
            Provenance::MountPlan,
            WireNaming::Bare,
            case.class,
        ))
        .tool(tool("shell.shell", EffectClass::Execute))
        .tool(tool("files.write_file", EffectClass::Write))
        .policy(toolpost_core::Policy::compile(spec).unwrap())
        .rule_store(Arc::new(store))
        .approvals(Approvals::ASK)
}

/// What became of a call.
fn happened(result: &ToolResult) -> Behavior {
    match (result.outcome, result.error_class()) {
        (Outcome::Succeeded, _) => Behavior::Allow,
        (_, Some(ErrorClass::ApprovalPending)) => Behavior::Ask,
        (_, Some(ErrorClass::PermissionDenied | ErrorClass::PolicyBlocked)) => Behavior::Deny,
        other => panic!("a call ends in no such way: {other:?}"),
    }
}

/// What `explain` says would become of it.
fn foretold(explanation: &Explanation) -> Behavior {
    match (explanation.would_run, explanation.would_ask) {
        (true, false) => Behavior::Allow,
        (false, true) => Behavior::Ask,
        (false, false) => Behavior::Deny,
        (true, true) => panic!("{explanation:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn explain_and_call_agree(case in cases()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let host = TestHost::build(|builder| build(builder, &case)).await;
            let explanation = host.host.explain(host.request(case.tool, case.arguments.clone())).await;
            let mut request = host.request(case.tool, case.arguments.clone());
            request.times.patience = Some(Patience::Approval(Duration::ZERO));
            let answer = host.host.call(request).await;
            prop_assert_eq!(foretold(&explanation), happened(answer.result()), "{:?}", case);
            if let Some(decision) = &explanation.decision {
                prop_assert_eq!(foretold(&explanation), decision.behavior, "{:?}", case);
            }
            Ok(())
        })?;
    }
}
