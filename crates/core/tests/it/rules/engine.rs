//! The engine beside its decisions: what is told, suggested, tried at load, asked by tools.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use toolpost_core::{
    CatalogNotice, Host, PathBaseFolders, Policy, PolicyEngine, PolicySpec, RuleProblem,
};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, Behavior, Declaration, EffectClass, PermissionMode, Principal,
    RememberOffer, ResourceAccess, Rule, RuleOrigin, RuleTests, Tool, ToolCall, ToolFailure,
    ToolOutput,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{calls::MadeCall, places};

fn compile(mode: PermissionMode, lines: &[&str]) -> Policy {
    let rules = lines
        .iter()
        .map(|line| Rule::parse(line, RuleOrigin::Cli, "test").unwrap())
        .collect();
    Policy::compile(PolicySpec {
        mode,
        rules,
        places: places(),
        notes: Vec::new(),
    })
    .unwrap()
}

fn suggested(policy: &Policy, call: &str) -> Vec<String> {
    let call = MadeCall::read(call, Some(toolpost_model::SandboxProfile::WorkspaceWrite));
    let principal = Principal::agent("a");
    policy
        .suggestions(&call.facts(&principal))
        .iter()
        .map(Rule::to_string)
        .collect()
}

#[test]
fn suggestions_go_from_narrow_to_wide() {
    let policy = compile(
        PermissionMode::Default,
        &[
            "allow shell.shell(ls *)",
            "ask write_file(ask/**)",
            "deny shell(rm *)",
        ],
    );
    for (call, expected) in [
        (
            "shell: cargo test -p core",
            &[
                "allow shell.shell(cargo test -p core)",
                "allow shell.shell(cargo test *)",
            ][..],
        ),
        (
            "shell: ls; git push origin main",
            &["allow shell.shell(git push origin main)"],
        ),
        ("shell: git add a; git commit -m x", &[]),
        (
            "shell: ls > out.txt",
            &["allow fs.write(ws:out.txt)", "allow fs.write(ws:**)"],
        ),
        ("shell: rm x", &[]),
        ("shell: cargo $x", &[]),
        ("shell: sudo ls", &["allow shell.shell(sudo ls)"]),
        (
            "shell with X=1 LANG=C: make x",
            &["allow shell.shell(X=1 make x)"],
        ),
        ("shell with odd 7: make x", &[]),
        (
            "write: src/a.rs",
            &[
                "allow files.write_file(src/a.rs)",
                "allow files.write_file(src/**)",
                "allow files.write_file",
            ],
        ),
        (
            "write: ask/a",
            &[
                "allow files.write_file(ask/a)",
                "allow files.write_file(ask/**)",
                "allow files.write_file",
            ],
        ),
        (
            "write: src/a*[1].rs",
            &[
                "allow files.write_file(src/a\\*\\[1\\].rs)",
                "allow files.write_file(src/**)",
                "allow files.write_file",
            ],
        ),
        (
            "move: src/a -> src/b",
            &["allow files.move_file(src/**)", "allow files.move_file"],
        ),
        (
            "http: POST https://api.example.com/v1/x",
            &[
                "allow http.http_request(POST https://api.example.com/v1/x)",
                "allow http.http_request(POST https://api.example.com/*)",
                "allow http.http_request",
            ],
        ),
        (
            "tool github.get_issue unknown: {}",
            &["allow github.get_issue"],
        ),
        ("protected: .git/config", &[]),
        (
            "steering: AGENTS.md",
            &["allow files.write_file(ws:AGENTS.md)"],
        ),
        ("approved: x", &[]),
        ("requested: x", &["allow tool-desk.act"]),
        ("read: a", &[]),
    ] {
        assert_eq!(suggested(&policy, call), expected, "{call}");
    }
}

#[test]
fn nothing_is_suggested_where_a_rule_wants_to_ask_each_time() {
    let mut rule = Rule::parse("ask write_file(prod/**)", RuleOrigin::User, "test").unwrap();
    let spec = |rule: &Rule| PolicySpec {
        rules: vec![rule.clone()],
        places: places(),
        ..PolicySpec::default()
    };
    let offers = Policy::compile(spec(&rule)).unwrap();
    assert!(!suggested(&offers, "write: prod/a").is_empty());
    rule.remember = RememberOffer::Never;
    let never = Policy::compile(spec(&rule)).unwrap();
    assert_eq!(suggested(&never, "write: prod/a"), Vec::<String>::new());
}

#[test]
fn the_operator_is_told_the_flags_that_would_change_it() {
    let policy = compile(
        PermissionMode::Default,
        &["allow shell(ls *)", "deny shell(rm *)"],
    );
    for (call, expected) in [
        ("shell: git push *.x", None),
        (
            "shell: git push",
            Some("start the host with `--allow 'shell.shell(git push)'` or `--mode sandboxed`"),
        ),
        (
            "shell: git push; make all > log",
            Some(
                "start the host with `--allow 'fs.write(ws:log)' --allow 'shell.shell(git push)' --allow 'shell.shell(make \
                 all)'` or `--mode sandboxed`",
            ),
        ),
        (
            "write: notes.txt",
            Some(
                "start the host with `--allow 'files.write_file(ws:notes.txt)'` or `--mode edits`",
            ),
        ),
        (
            "tool github.get_issue unknown: {}",
            Some("start the host with `--allow github.get_issue` or `--mode bypass`"),
        ),
        (
            "shell: rm x",
            Some("the rule `deny shell(rm *)` in test decides this"),
        ),
        ("shell: ls", None),
    ] {
        let made = MadeCall::read(call, Some(toolpost_model::SandboxProfile::WorkspaceWrite));
        let principal = Principal::agent("a");
        let decision = policy.decide(&made.facts(&principal));
        match expected {
            Some(expected) => {
                assert_eq!(decision.operator_hint.as_deref(), Some(expected), "{call}");
            }
            None => assert!(
                decision
                    .operator_hint
                    .as_ref()
                    .is_none_or(|hint| !hint.contains("--allow")),
                "{call}: {:?}",
                decision.operator_hint
            ),
        }
    }
}

#[test]
fn a_decision_names_its_part_its_rule_and_the_others() {
    let policy = compile(
        PermissionMode::Default,
        &[
            "allow shell(git *)",
            "ask shell(git push *)",
            "ask class:execute",
        ],
    );
    let call = MadeCall::read("shell: git log && git push origin main && $x", None);
    let principal = Principal::agent("a");
    let decision = policy.decide(&call.facts(&principal));
    assert_eq!(decision.behavior, Behavior::Ask);
    assert_eq!(decision.subject.as_deref(), Some("git push origin main"));
    assert_eq!(
        decision.reason.text,
        "the rule `ask shell(git push *)` (test)"
    );
    assert_eq!(decision.class, EffectClass::Execute);
    let others: Vec<&str> = decision
        .also_matched
        .iter()
        .map(|rule| rule.rule.as_str())
        .collect();
    assert_eq!(others, ["allow shell(git *)", "ask class:execute"]);
    assert_eq!(decision.opaque.len(), 1);
    assert!(
        decision.opaque[0].contains("known only when it runs"),
        "{:?}",
        decision.opaque
    );
    assert_eq!(
        policy.commands(&call.facts(&principal))[..2],
        ["git log", "git push origin main"]
    );
    let parts = policy.parts(&call.facts(&principal));
    assert_eq!(parts[0].subject.as_deref(), Some("git log"));
    assert!(parts.len() >= 3);
}

#[test]
fn variables_for_all_commands_are_shown_with_each() {
    let policy = compile(PermissionMode::Default, &[]);
    let call = MadeCall::read(
        "shell with PATH=/w HOME=/w/\u{202e}x LANG=C: git log; make",
        None,
    );
    let shown = policy.commands(&call.facts(&Principal::agent("a")));
    assert_eq!(
        shown,
        [
            r"PATH=/w HOME='/w/\u{202e}x' git log",
            r"PATH=/w HOME='/w/\u{202e}x' make"
        ]
    );
}

#[test]
fn a_password_in_a_url_is_never_told() {
    let policy = compile(PermissionMode::Default, &[]);
    let call = MadeCall::read("http: GET https://me:hunter22@a.example/x?key=abc", None);
    let principal = Principal::agent("a");
    let told = serde_json::to_string(&policy.decide(&call.facts(&principal))).unwrap();
    assert!(
        !told.contains("hunter22") && !told.contains("abc"),
        "{told}"
    );
}

fn tested(line: &str, matching: &[Value], not_match: &[Value]) -> Vec<RuleProblem> {
    let mut rule = Rule::parse(line, RuleOrigin::User, "toolpost.yaml:7").unwrap();
    rule.tests = RuleTests {
        matching: matching.to_vec(),
        not_match: not_match.to_vec(),
    };
    let spec = PolicySpec {
        rules: vec![rule],
        places: places(),
        ..PolicySpec::default()
    };
    Policy::compile(spec).err().unwrap_or_default()
}

#[test]
fn what_authors_expect_of_rules_is_tried_at_load() {
    for (line, matching, not_match) in [
        (
            "ask shell(git push --force *)",
            &[json!("cd x && git push --force"), json!("git -C x push -f")][..],
            &[json!("echo git push --force"), json!("git push")][..],
        ),
        (
            "allow shell(git log *)",
            &[json!("git log -p")],
            &[json!("git log; rm x"), json!("git log > x")],
        ),
        (
            "allow shell(X=1 git log *)",
            &[
                json!("X=1 git log"),
                json!({"command": "git log", "environment": {"X": "1", "LANG": "C"}}),
            ],
            &[
                json!("git log"),
                json!({"command": "git log", "environment": {"X": "2"}}),
            ],
        ),
        (
            "allow shell(git log *)",
            &[json!({"command": "git log", "environment": {"LANG": "C"}})],
            &[json!({"command": "git log", "environment": {"HOME": "/w"}})],
        ),
        (
            "allow shell(npx *)",
            &[json!("npx prettier x"), json!("npx -c 'a | b'")],
            &[json!("prettier x")],
        ),
        (
            "deny shell(rm *)",
            &[json!("npx rm x"), json!("git rebase -x 'rm x'")],
            &[json!("npx ls")],
        ),
        (
            "allow shell(sort -o f *)",
            &[json!("sort -o f x")],
            &[json!("sort -o g x"), json!("sort x > f")],
        ),
        (
            "allow shell(sort *)",
            &[json!("sort x")],
            &[json!("sort -o f x")],
        ),
        (
            "deny fs.read(**/.env*)",
            &[json!("a/.env"), json!("/etc/.env.x")],
            &[json!("env")],
        ),
        (
            "allow fs.write(src/**)",
            &[json!("src/a")],
            &[json!("src"), json!("src/../a"), json!("/src/a")],
        ),
        (
            "ask net(POST https://a.example/*)",
            &[json!("POST https://A.example/x")],
            &[json!("GET https://a.example/x")],
        ),
        (
            "deny read_file(secret/**)",
            &[json!("secret/x"), json!({"path": "secret/x"})],
            &[json!("x")],
        ),
        (
            "allow mcp.*.get_*",
            &[json!("mcp.github.get_issue")],
            &[json!("mcp.github.put")],
        ),
        (
            "allow pay.send[/amount < 5]",
            &[json!({"amount": 4})],
            &[json!({"amount": 5}), json!({})],
        ),
    ] {
        assert_eq!(tested(line, matching, not_match), [], "{line}");
        // The same the other way round must fail, once for each.
        let problems = tested(line, not_match, matching);
        assert_eq!(problems.len(), matching.len() + not_match.len(), "{line}");
        assert!(
            problems
                .iter()
                .all(|one| one.place == "toolpost.yaml:7" && one.rule == line)
        );
    }
    for (line, case) in [
        ("deny class:read", json!("x")),
        ("allow a.b[/x = 1]", json!("x")),
        ("deny fs.read(a)", json!(7)),
    ] {
        let problems = tested(line, &[case], &[]);
        assert!(
            problems[0].message.contains("cannot be tried"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_rule_that_means_nothing_is_a_problem_with_its_place() {
    for (line, message) in [
        ("deny fs.read(../x)", "contains `..`"),
        ("deny fs.read([a)", "not a pattern"),
        ("deny fs.write({a,b)", "an unmatched brace"),
        ("ask net(git push)", "not a request"),
        ("ask net(https://a*b.example)", "has a `*` in its host"),
    ] {
        let rule = Rule::parse(line, RuleOrigin::Cli, "here:1").unwrap();
        let good = Rule::parse("allow x", RuleOrigin::Cli, "here:2").unwrap();
        let spec = PolicySpec {
            rules: vec![good, rule],
            ..PolicySpec::default()
        };
        let problems = Policy::compile(spec).unwrap_err();
        assert_eq!(problems.len(), 1, "{line}");
        assert!(
            problems[0].to_string().starts_with("here:1: "),
            "{}",
            problems[0]
        );
        assert!(problems[0].message.contains(message), "{}", problems[0]);
    }
    assert_eq!(
        Policy::of(PermissionMode::Default, &["allow x", "permit y"]).unwrap_err()[0].rule,
        "permit y"
    );
}

/// Says of paths whether the call may use them.
struct Asks;

impl Tool for Asks {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("demo.asks".parse().unwrap(), "");
        declaration.interface.safety.class = toolpost_model::ClassFact::Always(EffectClass::Read);
        declaration
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let may = |path: &str, access| call.context.may_use(Path::new(path), access);
        let answers = json!([
            call.context.has_path_rules(),
            may("/w/a", ResourceAccess::Read),
            may("/w/.env", ResourceAccess::Read),
            may("/w/.env", ResourceAccess::Write),
            may("/w/locked/x", ResourceAccess::Write),
            may("/w/locked", ResourceAccess::Read),
            may("relative", ResourceAccess::Read),
        ]);
        Ok(ToolOutput::text(answers.to_string()))
    }
}

#[tokio::test]
async fn a_running_call_is_told_which_paths_are_kept_from_it() {
    for (principal, expected) in [
        (None, json!([true, true, false, true, false, true, false])),
        (
            Some("somebody-else"),
            json!([false, true, true, true, true, true, false]),
        ),
    ] {
        let rules = [
            "deny fs.read(.env)",
            "ask fs.write(locked/**)",
            "allow fs.read(**)",
        ]
        .map(|line| {
            let mut rule = Rule::parse(line, RuleOrigin::Cli, "test").unwrap();
            rule.principal = principal.map(str::to_owned);
            rule
        });
        let spec = PolicySpec {
            mode: PermissionMode::Bypass,
            rules: rules.to_vec(),
            places: places(),
            notes: Vec::new(),
        };
        let policy = Policy::compile(spec).unwrap();
        let host = TestHost::build(|builder| builder.tool(Asks).policy(policy)).await;
        let result = host.call("asks", json!({})).await;
        assert_eq!(result.model_text(), expected.to_string());
    }
}

#[test]
fn a_path_that_rules_ask_about_is_kept_until_a_person_answered_for_it() {
    let policy = compile(
        PermissionMode::Default,
        &[
            "ask fs.read(notes/**)",
            "deny fs.read(secret/**)",
            "allow fs.read(notes/a)",
        ],
    );
    let answer = |line| Rule::parse(line, RuleOrigin::Session, "approval").unwrap();
    let answered = policy
        .with(&[
            answer("allow fs.read(notes/**)"),
            answer("allow fs.read(secret/**)"),
        ])
        .unwrap();
    let may = |policy: &Policy, path: &str| {
        policy.may_use(
            Path::new(path),
            ResourceAccess::Read,
            &Principal::agent("a"),
            jiff::Timestamp::UNIX_EPOCH,
        )
    };
    for (path, before, after) in [
        ("/w/notes/a", false, true),
        ("/w/secret/a", false, false),
        ("/w/other", true, true),
    ] {
        assert_eq!(
            (may(&policy, path), may(&answered, path)),
            (before, after),
            "{path}"
        );
    }
}

#[test]
fn places_that_are_kept_are_the_fixed_beginnings_of_patterns() {
    for (lines, expected) in [
        (
            &[
                "deny fs.read(secret/**)",
                "ask fs.write(/etc/*.conf)",
                "allow fs.read(x/**)",
            ][..],
            &["/etc", "/w/secret"][..],
        ),
        (
            &["deny fs.read(secret/**)", "deny fs.write(secret/deep/x)"],
            &["/w/secret"],
        ),
        (&["deny fs.read(secret/**)", "deny fs.read(.env)"], &["/"]),
        (
            &["deny fs.read({a,b}/x)", "deny fs.read(~/.ssh/**)"],
            &["/home/me/.ssh", "/w/a/x", "/w/b/x"],
        ),
        (&["deny shell(rm *)"], &[]),
    ] {
        let kept = compile(PermissionMode::Default, lines).kept_places(&Principal::agent("a"));
        assert_eq!(
            kept,
            expected
                .iter()
                .map(std::path::PathBuf::from)
                .collect::<Vec<_>>(),
            "{lines:?}"
        );
    }
}

#[tokio::test]
async fn a_rule_that_fits_no_tool_is_noticed() {
    let lines = [
        "allow demo.asks",
        "deny shel(rm *)",
        "ask mcp.*",
        "deny class:write",
        "allow demo__asks",
        "deny ask*",
    ];
    let host = Host::builder()
        .tool(Asks)
        .policy(Policy::of(PermissionMode::Default, &lines).unwrap())
        .build()
        .await
        .unwrap();
    let unmatched: Vec<String> = host
        .notices()
        .into_iter()
        .filter_map(|notice| match notice {
            CatalogNotice::UnmatchedRule { rule, place } => Some(format!("{rule} {place}")),
            _ => None,
        })
        .collect();
    assert_eq!(unmatched, ["deny shel(rm *) code", "ask mcp.* code"]);
}

#[tokio::test]
async fn an_explanation_tells_every_part() {
    let shell = MockNativeTool::named("shell.shell")
        .class(EffectClass::Execute)
        .declare(|declaration| {
            let command = ArgumentMeaning::of("command", ArgumentKind::Command);
            declaration.interface.permission.arguments = vec![command];
        });
    let policy = compile(
        PermissionMode::Default,
        &["allow shell(ls *)", "deny shell(rm *)"],
    );
    let host = TestHost::build(|builder| builder.tool(shell).policy(policy)).await;
    let explanation = host
        .host
        .explain(host.request("shell", json!({"command": "ls && rm x"})))
        .await;
    let told: Vec<(Option<&str>, Behavior)> = explanation
        .parts
        .iter()
        .map(|part| (part.subject.as_deref(), part.behavior))
        .collect();
    assert_eq!(
        told,
        [
            (Some("ls"), Behavior::Allow),
            (Some("rm x"), Behavior::Deny)
        ]
    );
    assert_eq!(
        explanation.decision.unwrap().subject.as_deref(),
        Some("rm x")
    );
}

#[test]
fn notes_about_the_rules_are_in_every_decision() {
    let spec = PolicySpec {
        notes: vec!["toolpost.yaml cannot be read".into()],
        ..PolicySpec::default()
    };
    let policy = Policy::compile(spec).unwrap();
    let principal = Principal::agent("a");
    let decision = policy.decide(&MadeCall::read("read: a", None).facts(&principal));
    assert_eq!(decision.notes, ["toolpost.yaml cannot be read"]);
}

#[test]
fn an_engine_takes_further_rules_unless_they_mean_nothing() {
    let policy: Arc<dyn PolicyEngine> = Arc::new(compile(PermissionMode::Default, &[]));
    let allow = Rule::parse("allow write_file(src/**)", RuleOrigin::Session, "approval").unwrap();
    let with_it = policy.with_rules(&[allow]).unwrap();
    let principal = Principal::agent("a");
    let call = MadeCall::read("write: src/a", None);
    assert_eq!(
        policy.decide(&call.facts(&principal)).behavior,
        Behavior::Ask
    );
    assert_eq!(
        with_it.decide(&call.facts(&principal)).behavior,
        Behavior::Allow
    );
    let bad = Rule::parse("deny fs.read(../x)", RuleOrigin::Session, "approval").unwrap();
    assert!(policy.with_rules(&[bad]).is_none());
}

#[test]
fn hostile_arguments_cost_little_and_are_opaque() {
    let policy = Policy::compile(PolicySpec {
        mode: PermissionMode::Bypass,
        rules: vec![Rule::parse("deny fs.read(**/a/**/b/**/c)", RuleOrigin::Cli, "test").unwrap()],
        places: PathBaseFolders {
            workspace: Some("/w".into()),
            ..PathBaseFolders::default()
        },
        notes: Vec::new(),
    })
    .unwrap();
    let many: Vec<String> = (0..10_000).map(|number| format!("x/{number}")).collect();
    let deep = format!("{}x", "a/b/".repeat(2_000));
    for hostile in [
        json!(many),
        json!([deep]),
        json!(["x".repeat(1 << 20)]),
        json!([[["x"]]]),
    ] {
        let call = MadeCall::read(&format!("remote remote.read read_path: {hostile}"), None);
        let principal = Principal::agent("a");
        let decision = policy.decide(&call.facts(&principal));
        let is_deep = hostile[0].as_str() == Some(&deep);
        let expected = if is_deep {
            Behavior::Allow
        } else {
            Behavior::Ask
        };
        assert_eq!(decision.behavior, expected, "{:?}", decision.reason.text);
        assert!(serde_json::to_string(&decision).unwrap().len() < 20_000);
    }
}
