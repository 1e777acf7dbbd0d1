//! The story of a decision: which rules could have spoken, which did, and what would change the answer.

use toolpost_core::{
    Account, DecisionAlternativeKind, Policy, PolicyEngine, PolicySpec, RuleVoice,
};
use toolpost_model::{Behavior, PermissionMode, Principal, Rule, RuleOrigin, SandboxProfile};

use super::{calls::MadeCall, places};

fn compile(mode: PermissionMode, lines: &[&str]) -> Policy {
    let parse = |line: &&str| match line.split_once(" for ") {
        Some((rule, principal)) => {
            let rule = Rule::parse(rule, RuleOrigin::Cli, "test").unwrap();
            Rule {
                principal: Some(principal.to_owned()),
                ..rule
            }
        }
        None => Rule::parse(line, RuleOrigin::Cli, "test").unwrap(),
    };
    let rules = lines.iter().map(parse).collect();
    Policy::compile(PolicySpec {
        mode,
        rules,
        places: places(),
        notes: Vec::new(),
    })
    .unwrap()
}

fn account(policy: &Policy, call: &str) -> (Behavior, Account) {
    let call = MadeCall::read(call, Some(SandboxProfile::WorkspaceWrite));
    let principal = Principal::agent("a");
    let facts = call.facts(&principal);
    (policy.decide(&facts).behavior, policy.account(&facts))
}

fn voices(account: &Account) -> Vec<(&str, RuleVoice)> {
    account
        .considered
        .iter()
        .map(|one| (one.rule.rule.as_str(), one.voice))
        .collect()
}

#[test]
fn every_rule_that_could_have_spoken_is_told_with_what_became_of_its_word() {
    use RuleVoice::{Agreed, Decided, Overruled, Silent};
    let policy = compile(
        PermissionMode::Default,
        &[
            "allow shell(git *)",
            "deny shell(git push *)",
            "deny shell(rm *)",
            "ask shell(git push *) for ann",
            "deny class:execute",
            "allow class:write",
            "deny write_file",
            "ask fs.read(**/.env)",
        ],
    );
    let (behavior, account) = account(&policy, "shell: git push origin");
    assert_eq!(behavior, Behavior::Deny);
    assert_eq!(
        voices(&account),
        [
            ("deny shell(git push *)", Decided),
            ("deny class:execute", Agreed),
            ("allow shell(git *)", Overruled),
            ("deny shell(rm *)", Silent),
            ("ask shell(git push *)", Silent),
        ],
        "rules about other tools, classes and paths are not among them"
    );
    let why = |place: usize| account.considered[place].why.as_deref();
    assert_eq!(why(2), Some("a deny overrides it"));
    assert_eq!(why(3), Some("it matches no part of the call"));
    assert_eq!(why(4), Some("it applies to another caller"));
    assert_eq!(account.considered[0].of, ["git push origin"]);
}

#[test]
fn a_rule_that_could_speak_of_what_nobody_can_read_decides() {
    let policy = compile(PermissionMode::Bypass, &["deny shell(rm *)"]);
    let (behavior, account) = account(&policy, "shell: $x");
    assert_eq!(behavior, Behavior::Ask);
    assert_eq!(voices(&account), [("deny shell(rm *)", RuleVoice::Decided)]);
}

#[test]
fn more_rules_than_anybody_reads_are_counted() {
    let lines: Vec<String> = (0..100)
        .map(|n| format!("deny write_file(folder{n}/**)"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (_, account) = account(&compile(PermissionMode::Edits, &lines), "write: folder99/a");
    assert_eq!((account.considered.len(), account.left_out), (64, 36));
    assert_eq!(
        account.considered[0].rule.rule, "deny write_file(folder99/**)",
        "who spoke comes first"
    );
}

/// Each change as `what: rule or setting -> answer`.
fn changes(mode: PermissionMode, rules: &[&str], call: &str) -> Vec<String> {
    let (now, account) = account(&compile(mode, rules), call);
    let told = account.changes.iter().map(|change| {
        if let Some(then) = change.then {
            assert_ne!(then, now, "{}", change.text);
        }
        let kind = serde_json::to_value(change.kind).unwrap();
        let what = change
            .setting
            .clone()
            .unwrap_or_else(|| change.rules.join("; "));
        let then = change.then.map_or("?", Behavior::as_str);
        format!("{} {what} -> {then}", kind.as_str().unwrap()).replace("  ", " ")
    });
    told.collect()
}

#[test]
fn what_would_change_the_answer_was_tried() {
    for (mode, rules, call, expected) in [
        (
            PermissionMode::Default,
            &[][..],
            "write: src/a.rs",
            &[
                "answer -> allow",
                "add_rule allow files.write_file(src/a.rs) -> allow",
                "mode mode: edits -> allow",
            ][..],
        ),
        (
            PermissionMode::Default,
            &["deny write_file"],
            "write: src/a.rs",
            &["remove_rule deny write_file -> ask"],
        ),
        (
            PermissionMode::Bypass,
            &["deny write_file", "deny class:write"],
            "write: src/a.rs",
            &["remove_rule deny write_file; deny class:write -> allow"],
        ),
        (
            PermissionMode::Default,
            &["ask write_file(src/**)", "allow write_file"],
            "write: src/a.rs",
            &[
                "answer -> allow",
                "remove_rule ask write_file(src/**) -> allow",
                "answer allow files.write_file(src/a.rs) -> allow",
            ],
        ),
        (
            PermissionMode::Default,
            &["allow write_file"],
            "write: src/a.rs",
            &[
                "remove_rule allow write_file -> ask",
                "add_rule deny files.write_file(src/a.rs) -> deny",
            ],
        ),
        (
            PermissionMode::Bypass,
            &[],
            "write: src/a.rs",
            &[
                "add_rule deny files.write_file(src/a.rs) -> deny",
                "mode mode: default -> ask",
                "mode mode: never-ask -> deny",
            ],
        ),
        (
            PermissionMode::NeverAsk,
            &[],
            "write: src/a.rs",
            &[
                "add_rule allow files.write_file(src/a.rs) -> allow",
                "mode mode: default -> ask",
                "mode mode: edits -> allow",
            ],
        ),
        (
            PermissionMode::Default,
            &[],
            "read: a",
            &["add_rule deny files.read_file(ws:a) -> deny"],
        ),
        (
            PermissionMode::Bypass,
            &[],
            "protected: .git/config",
            &[
                "answer -> allow",
                "setting protect -> ?",
                "setting sandbox.profile: none -> ?",
            ],
        ),
        (
            PermissionMode::Edits,
            &[],
            "steering: AGENTS.md",
            &[
                "answer -> allow",
                "add_rule allow files.write_file(ws:AGENTS.md) -> allow",
                "mode mode: bypass -> allow",
            ],
        ),
        (
            PermissionMode::Bypass,
            &[],
            "approved: x",
            &[
                "answer -> allow",
                "setting tools.\"people.ask\".approval_required: false -> ?",
            ],
        ),
        (
            PermissionMode::Default,
            &[],
            "requested: x",
            &[
                "answer -> allow",
                "setting tools.\"tool-desk.act\".approval_required: false -> ?",
                "add_rule allow tool-desk.act -> allow",
                "mode mode: bypass -> allow",
            ],
        ),
    ] {
        assert_eq!(
            changes(mode, rules, call),
            expected,
            "{mode} {rules:?} {call}"
        );
    }
}

#[test]
fn a_call_that_nobody_can_read_may_be_written_otherwise() {
    let (_, account) = account(
        &compile(PermissionMode::Bypass, &["deny shell(rm *)"]),
        "shell: $x",
    );
    let kinds: Vec<DecisionAlternativeKind> =
        account.changes.iter().map(|change| change.kind).collect();
    assert!(
        kinds.contains(&DecisionAlternativeKind::Call)
            && kinds.contains(&DecisionAlternativeKind::RemoveRule),
        "{kinds:?}"
    );
}
