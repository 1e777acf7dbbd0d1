//! A class that the analysis of the arguments found is a reason of its own.

use serde_json::json;
use toolpost_core::{Policy, PolicyEngine as _};
use toolpost_model::{Behavior, ClassFact, Decision, PermissionMode, Principal, ReasonType};

use crate::rules::calls::MadeCall;

fn decided(mode: PermissionMode, rules: &[&str], call: &str, by_input: bool) -> Decision {
    let mut call = MadeCall::read(call, None);
    if by_input {
        call.declaration.interface.safety.class = ClassFact::ByInput;
    }
    Policy::of(mode, rules)
        .unwrap()
        .decide(&call.facts(&Principal::agent("agent")))
}

fn check(call: &str, by_input: bool, expected: Option<(&str, &str)>) {
    let decision = decided(PermissionMode::Default, &[], call, by_input);
    let found = decision
        .classified
        .as_ref()
        .map(|one| (one.class.as_str(), one.found.as_str()));
    assert_eq!(found, expected, "{call}");
    let kind = if expected.is_some() {
        ReasonType::Classifier
    } else {
        ReasonType::Mode
    };
    assert_eq!(decision.reason.kind, kind, "{call}: {decision:?}");
}

#[test]
fn the_decision_tells_which_command_path_or_address_the_class_comes_from() {
    check(
        "shell: git push",
        true,
        Some((
            "execute",
            "`git push` is a command that usually reaches other machines",
        )),
    );
    check(
        "shell: cd x && curl -sS https://a.example/",
        true,
        Some((
            "execute",
            "`curl -sS https://a.example/` is a command that usually reaches other machines",
        )),
    );
    check(
        "reading: ls -la",
        true,
        Some(("read", "`ls -la` is a command that is known to only read")),
    );
    check(
        "shell: cd x; make",
        true,
        Some((
            "execute",
            "`make` is a command that is not known to only read",
        )),
    );
    check(
        "shell: cd x",
        true,
        Some(("read", "`cd x` only controls the shell")),
    );
    check(
        "remote remote.get url: https://a.example/",
        false,
        Some((
            "network",
            "`https://a.example/` is a request to another machine",
        )),
    );
    check("write: src/a.rs", false, None);
    check("tool mine.thing unknown: {}", false, None);
    check(
        "tool mine.thing write: {}",
        true,
        Some(("write", "the arguments make it a call of class `write`")),
    );
}

#[test]
fn a_rule_that_decides_keeps_its_own_reason_beside_the_finding() {
    let decision = decided(
        PermissionMode::Bypass,
        &["deny class:execute"],
        "shell: git push",
        true,
    );
    assert_eq!(
        (decision.behavior, decision.reason.kind),
        (Behavior::Deny, ReasonType::Rule)
    );
    assert_eq!(json!(decision.classified)["class"], "execute");
}
