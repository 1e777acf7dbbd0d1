//! Rules as tables: every file in `tests/rules` is a theme, every line of it a call and what is decided about it.
//!
//! A section begins with `= MODE`, names its rules with `+`, and may say what confines commands (`confined none`),
//! who calls (`principal NAME`) and when (`at TIME`). Then each line is `OUTCOME DECIDER CALL`: allow, ask or deny;
//! the number of the deciding rule, `mode`, `opaque`, `caution` or `approval`; and the call. `␤` is a new line.

mod account;
pub(crate) mod calls;
mod engine;
mod properties;

use jiff::Timestamp;
use toolpost_core::{PathBaseFolders, PermissionFacts, Policy, PolicyEngine, PolicySpec};
use toolpost_model::{
    Decision, PermissionMode, Principal, ReasonType, RememberOffer, Rule, RuleOrigin,
    SandboxProfile,
};

use calls::MadeCall;

/// What a section sets.
#[derive(Clone)]
struct Section {
    line: usize,
    mode: PermissionMode,
    rules: Vec<Rule>,
    confined: Option<SandboxProfile>,
    principal: String,
    at: Timestamp,
}

pub(crate) fn places() -> PathBaseFolders {
    PathBaseFolders {
        workspace: Some("/w".into()),
        home: Some("/home/me".into()),
        roots: vec!["/data".into()],
    }
}

fn rule(text: &str, number: usize) -> Rule {
    let (line, attributes) = text.split_once(" -- ").unwrap_or((text, ""));
    let mut rule = Rule::parse(line, RuleOrigin::Cli, format!("rule {number}"))
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    for attribute in attributes.split_whitespace() {
        let (name, value) = attribute.split_once('=').unwrap();
        match name {
            "origin" => {
                rule.origin = RuleOrigin::ALL
                    .into_iter()
                    .find(|one| one.as_str() == value)
                    .unwrap();
            }
            "principal" => rule.principal = Some(value.to_owned()),
            "expires" => rule.expires = Some(value.parse().unwrap()),
            "remember" => {
                rule.remember = if value == "never" {
                    RememberOffer::Never
                } else {
                    RememberOffer::Offer
                }
            }
            other => panic!("{other} is not an attribute"),
        }
    }
    rule
}

impl Section {
    fn set(&mut self, line: &str) -> bool {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "+" => self.rules.push(rule(rest.trim(), self.rules.len() + 1)),
            "confined" => {
                let all = [
                    SandboxProfile::ReadOnly,
                    SandboxProfile::WorkspaceWrite,
                    SandboxProfile::Network,
                    SandboxProfile::None,
                ];
                self.confined = all
                    .into_iter()
                    .find(|profile| profile.as_str() == rest.trim());
            }
            "principal" => self.principal = rest.trim().to_owned(),
            "at" => self.at = rest.trim().parse().unwrap(),
            _ => return false,
        }
        true
    }

    fn decide(&self, call: &MadeCall) -> Decision {
        let spec = PolicySpec {
            mode: self.mode,
            rules: self.rules.clone(),
            places: places(),
            notes: Vec::new(),
        };
        let policy = Policy::compile(spec).unwrap_or_else(|problems| panic!("{problems:?}"));
        let principal = Principal::agent(&self.principal);
        policy.decide(&PermissionFacts {
            at: self.at,
            ..call.facts(&principal)
        })
    }
}

/// What decided, in a table's words.
fn decider(decision: &Decision) -> String {
    match decision.reason.kind {
        ReasonType::Rule => {
            let place = &decision.reason.rule.as_ref().unwrap().place;
            place.strip_prefix("rule ").unwrap().to_owned()
        }
        // The class that the mode decided on is found in the arguments or declared.
        ReasonType::Mode | ReasonType::Classifier => "mode".to_owned(),
        ReasonType::Delegate => "delegate".to_owned(),
        ReasonType::SafetyCheck => "approval".to_owned(),
        ReasonType::Caution => "caution".to_owned(),
        ReasonType::Hook => "hook".to_owned(),
        ReasonType::Opaque => "opaque".to_owned(),
        ReasonType::Approval => "person".to_owned(),
    }
}

/// Runs a table and says every line that came out otherwise.
fn check(theme: &str, table: &str) {
    let mut section: Option<Section> = None;
    let mut wrong = Vec::new();
    let mut cases = 0;
    for (number, line) in table.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(mode) = line.strip_prefix("= ") {
            section = Some(Section {
                line: number,
                mode: mode.parse().unwrap(),
                rules: Vec::new(),
                confined: Some(SandboxProfile::WorkspaceWrite),
                principal: "agent".to_owned(),
                at: "2026-06-01T12:00:00Z".parse().unwrap(),
            });
            continue;
        }
        let section = section.as_mut().unwrap();
        if section.set(line) {
            continue;
        }
        let mut words = line.splitn(3, char::is_whitespace).map(str::trim);
        let mut next = || {
            words
                .next()
                .unwrap_or_else(|| panic!("{theme}:{}: {line}", number + 1))
        };
        let expected = next();
        let by = next();
        let call = next();
        // Columns may be wide.
        let (by, call) = if by.is_empty() {
            call.split_once(char::is_whitespace).unwrap()
        } else {
            (by, call)
        };
        let call = call.trim().replace('␤', "\n");
        let decision = section.decide(&MadeCall::read(&call, section.confined));
        let found = (decision.behavior.as_str(), decider(&decision));
        cases += 1;
        if found != (expected, by.to_owned()) {
            wrong.push(format!(
                "{theme}:{} (section {}): {call}\n    expected {expected} by {by}, found {} by {}: {} {:?}",
                number + 1,
                section.line + 1,
                found.0,
                found.1,
                decision.reason.text,
                decision.subject,
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {cases} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(cases > 10, "{theme} has only {cases} cases");
}

macro_rules! themes {
    ($($theme:ident),*) => {$(
        #[test]
        fn $theme() {
            check(stringify!($theme), include_str!(concat!("../rules/", stringify!($theme), ".txt")));
        }
    )*};
}

themes!(
    allowed_commands,
    denied_commands,
    environment,
    opaque_commands,
    redirects,
    paths,
    requests,
    started_commands,
    tools_and_classes,
    modes,
    foreign_tools
);
