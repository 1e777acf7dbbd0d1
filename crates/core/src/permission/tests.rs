//! Tests of the engine inside the crate: modes, precedence of votes, and reasons that always ask.

use jiff::Timestamp;
use toolpost_model::{
    Behavior::{self, Allow, Ask, Deny},
    Declaration, EffectClass, Effects, PermissionMode, Principal, Provenance, Rule, RuleOrigin,
};

use super::{PermissionFacts, Policy, PolicyEngine, PolicySpec};

fn native(id: &str) -> Declaration {
    let mut declaration = Declaration::new(id.parse().unwrap(), "");
    declaration.provenance = Provenance::CompiledIn;
    declaration
}

fn policy(mode: PermissionMode, rules: Vec<Rule>) -> Policy {
    Policy::compile(PolicySpec {
        mode,
        rules,
        ..PolicySpec::default()
    })
    .unwrap()
}

fn check(mode: PermissionMode, rules: &[&str], class: EffectClass, expected: Behavior) {
    let rules = rules
        .iter()
        .map(|line| Rule::parse(line, RuleOrigin::Cli, "test").unwrap())
        .collect();
    let policy = policy(mode, rules);
    let declaration = native("files.write_file");
    let effects = Effects::of(class);
    let principal = Principal::agent("a");
    let facts = PermissionFacts {
        declaration: &declaration,
        input: None,
        effects: &effects,
        principal: &principal,
        opinions: &[],
        delegated: &[],
        at: Timestamp::UNIX_EPOCH,
    };
    let decision = policy.decide(&facts);
    assert_eq!(
        decision.behavior,
        expected,
        "{mode} {:?} {class}",
        policy.rules().collect::<Vec<_>>()
    );
    // A tool that is denied in its only class is hidden, and no other tool is.
    assert_eq!(
        policy.denies_outright(&declaration, Some(class)),
        expected == Deny
    );
}

#[test]
fn modes_decide_where_no_rule_speaks() {
    for (mode, [read, write, network, execute, unknown]) in [
        (PermissionMode::Plan, [Allow, Deny, Deny, Deny, Deny]),
        (PermissionMode::Default, [Allow, Ask, Ask, Ask, Ask]),
        (PermissionMode::Edits, [Allow, Allow, Ask, Ask, Ask]),
        (PermissionMode::Bypass, [Allow, Allow, Allow, Allow, Allow]),
    ] {
        check(mode, &[], EffectClass::Read, read);
        check(mode, &[], EffectClass::Write, write);
        check(mode, &[], EffectClass::Network, network);
        check(mode, &[], EffectClass::Execute, execute);
        check(mode, &[], EffectClass::Unknown, unknown);
    }
}

#[test]
fn deny_beats_ask_beats_allow_whatever_the_order_or_the_mode() {
    let write = EffectClass::Write;
    check(PermissionMode::Default, &["allow write_file"], write, Allow);
    check(PermissionMode::Plan, &["allow write_file"], write, Allow);
    check(
        PermissionMode::Bypass,
        &["allow write_file", "ask class:write"],
        write,
        Ask,
    );
    check(
        PermissionMode::Bypass,
        &["deny files.*", "ask class:write", "allow write_file"],
        write,
        Deny,
    );
    check(
        PermissionMode::Bypass,
        &["allow write_file", "deny *"],
        write,
        Deny,
    );
    check(PermissionMode::Edits, &["deny read_file"], write, Allow);
}

#[test]
fn a_call_that_deserves_caution_asks_whatever_allows_it_and_stays_denied_where_it_was() {
    let declaration = native("files.write_file");
    let effects = Effects::of(EffectClass::Write).with_caution("`.git/config` is protected");
    let principal = Principal::agent("a");
    let facts = PermissionFacts {
        declaration: &declaration,
        input: None,
        effects: &effects,
        principal: &principal,
        opinions: &[],
        delegated: &[],
        at: Timestamp::UNIX_EPOCH,
    };
    for (mode, rule, expected) in [
        (PermissionMode::Bypass, None, Ask),
        (PermissionMode::Bypass, Some("allow write_file"), Ask),
        (PermissionMode::Plan, None, Deny),
        (PermissionMode::Edits, Some("deny files.*"), Deny),
    ] {
        let rules = rule
            .iter()
            .map(|line| Rule::parse(line, RuleOrigin::Cli, "test").unwrap())
            .collect();
        let decision = policy(mode, rules).decide(&facts);
        assert_eq!(decision.behavior, expected, "{mode} {rule:?}");
    }
}

#[test]
fn a_tool_that_wants_a_person_asks_in_every_mode() {
    let mut declaration = native("a.b");
    declaration.interface.permission.approval_required = true;
    let effects = Effects::of(EffectClass::Read);
    let principal = Principal::agent("a");
    let facts = PermissionFacts {
        declaration: &declaration,
        input: None,
        effects: &effects,
        principal: &principal,
        opinions: &[],
        delegated: &[],
        at: Timestamp::UNIX_EPOCH,
    };
    let policy = policy(PermissionMode::Bypass, Vec::new());
    assert_eq!(policy.decide(&facts).behavior, Ask);
}
