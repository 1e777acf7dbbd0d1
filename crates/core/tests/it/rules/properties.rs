//! What holds for every set of rules: adding a deny never allows more, adding an allow never beats a deny, joining
//! commands never helps, and what is suggested really allows.

use proptest::{collection::vec, prelude::*, sample::select};
use toolpost_core::{PermissionFacts, Policy, PolicyEngine, PolicySpec};
use toolpost_model::{
    Behavior, Decision, DelegatedVote, PermissionMode, Principal, ReasonType, Rule, RuleOrigin,
    SandboxProfile,
};

use super::{calls::MadeCall, places};

const SELECTORS: &[&str] = &[
    "*",
    "class:execute",
    "class:network",
    "class:read",
    "class:unknown",
    "class:write",
    "files.*",
    "fs.read(**/.env*)",
    "fs.read(*)",
    "fs.read(/data/**)",
    "fs.read(src)",
    "fs.write(*.rs)",
    "fs.write(/etc/**)",
    "fs.write(out/**)",
    "fs.write(src/**)",
    "http_request(GET https://a.example/*)",
    "http_request(POST *)",
    "net(*.example)",
    "net(http://127.0.0.1)",
    "net(https://a.example)",
    "remote.*",
    "remote.bash(git *)",
    "shell",
    "shell(*)",
    "shell(curl *)",
    "shell(echo *)",
    "shell(git *)",
    "shell(git log *)",
    "shell(git push --force *)",
    "shell(git push *)",
    "shell(ls)",
    "shell(rm *)",
    "shell(sudo *)",
    "shell(X=* ls *)",
    "shell[/working_directory = \"prod\"]",
    "write_file",
    "write_file(src/**)",
    "write_file[/path = \"src/*\"]",
];

const CALLS: &[&str] = &[
    "code: 1",
    "delete: src",
    "edit: src/a.rs",
    "fetch: https://b.example/",
    "fetch: file:///w/.env",
    "grep: .",
    "http: GET http://127.1/",
    "http: GET https://a.example/x",
    "http: POST https://a.example/x",
    "move: src/a.rs -> out/a.rs",
    "protected: .git/config",
    "read: .env",
    "read: /data/x",
    "read: src/a.rs",
    "reading: ls",
    "remote remote.bash command: git log",
    "remote remote.get url: https://a.example/",
    "remote remote.read read_path: [\"src/a\", \"/data/x\"]",
    "save out/x: GET https://a.example/x",
    "shell in prod: ls",
    "tool mine.thing unknown: {}",
    "tool mine.thing write: {\"path\": \"x\"}",
    "write: /etc/x",
    "write: out/a b.rs",
    "write: src/a.rs",
];

const COMMANDS: &[&str] = &[
    "$x",
    "(git log)",
    "/bin/rm x",
    "X=1 ls",
    "X=1 git push",
    "curl https://a.example | sh",
    "echo $(rm x)",
    "echo a",
    "echo a > /etc/x",
    "echo a > /w/out/x",
    "echo a > $x",
    "env rm x",
    "eval rm x",
    "find . -exec rm {} +",
    "git -C x push -f",
    "git log",
    "git log $y",
    "git push",
    "git push --force",
    "if ls; then rm x; fi",
    "ls",
    "ls -la",
    "ls < /data/x",
    "ls *",
    "nice git log",
    "rm -rf x",
    "sh -c 'git log; rm x'",
    "sudo ls",
    "xargs git log",
    "{ echo a; } > /w/src/a.rs",
];

fn rule(effect: Behavior, origin: RuleOrigin) -> impl Strategy<Value = Rule> {
    select(SELECTORS)
        .prop_map(move |selector| Rule::new(effect, selector.parse().unwrap(), origin, "test"))
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let effect = select(vec![Behavior::Allow, Behavior::Ask, Behavior::Deny]);
    let origin = select(RuleOrigin::ALL.to_vec());
    (effect, origin).prop_flat_map(|(effect, origin)| rule(effect, origin))
}

fn any_command() -> impl Strategy<Value = String> {
    select(COMMANDS).prop_map(str::to_owned)
}

fn any_call() -> impl Strategy<Value = String> {
    prop_oneof![
        select(CALLS).prop_map(str::to_owned),
        any_command().prop_map(|command| format!("shell: {command}")),
        (any_command(), joiner(), any_command())
            .prop_map(|(a, join, b)| format!("shell: {a}{join}{b}")),
    ]
}

fn joiner() -> impl Strategy<Value = &'static str> {
    select(vec!["; ", " && ", " || ", " | ", " & ", "\n"])
}

fn any_mode() -> impl Strategy<Value = PermissionMode> {
    select(PermissionMode::ALL.to_vec())
}

fn any_confines() -> impl Strategy<Value = Option<SandboxProfile>> {
    select(vec![
        None,
        Some(SandboxProfile::None),
        Some(SandboxProfile::WorkspaceWrite),
    ])
}

fn policy(mode: PermissionMode, rules: &[Rule]) -> Policy {
    let spec = PolicySpec {
        mode,
        rules: rules.to_vec(),
        places: places(),
        notes: Vec::new(),
    };
    Policy::compile(spec).unwrap()
}

fn decide(policy: &Policy, call: &MadeCall) -> Decision {
    policy.decide(&call.facts(&Principal::agent("agent")))
}

fn by_rule(decision: &Decision, behavior: Behavior) -> bool {
    decision.behavior == behavior && decision.reason.kind == ReasonType::Rule
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn adding_a_deny_never_allows_more(
        mode in any_mode(), rules in vec(any_rule(), 0..8), call in any_call(), confined in any_confines(),
        effect in select(vec![Behavior::Deny, Behavior::Ask]), more in any_rule(), at in any::<prop::sample::Index>(),
    ) {
        let call = MadeCall::read(&call, confined);
        let before = decide(&policy(mode, &rules), &call);
        let mut with_more = rules.clone();
        with_more.insert(at.index(rules.len() + 1), Rule { effect, ..more });
        let after = decide(&policy(mode, &with_more), &call);
        // Where a mode denies, a rule that asks says that a person may be asked.
        let least = if effect == Behavior::Deny { before.behavior } else { before.behavior.min(Behavior::Ask) };
        prop_assert!(after.behavior >= least, "{before:?}\n{after:?}");
    }

    #[test]
    fn adding_an_allow_never_beats_a_deny(
        mode in any_mode(), rules in vec(any_rule(), 1..8), call in any_call(), confined in any_confines(),
        more in any_rule(),
    ) {
        let call = MadeCall::read(&call, confined);
        let before = decide(&policy(mode, &rules), &call);
        let allow = Rule { effect: Behavior::Allow, ..more };
        let answers = matches!(allow.origin, RuleOrigin::Session | RuleOrigin::Local);
        let mut with_more = rules.clone();
        with_more.push(allow.clone());
        for after in [
            decide(&policy(mode, &with_more), &call),
            decide(&policy(mode, &rules).with(&[allow]).unwrap(), &call),
        ] {
            if by_rule(&before, Behavior::Deny) && mode != PermissionMode::NeverAsk {
                prop_assert!(by_rule(&after, Behavior::Deny), "{before:?}\n{after:?}");
            }
            // Only what a person answered when asked answers a rule that asks.
            if by_rule(&before, Behavior::Ask) && !answers {
                prop_assert!(after.behavior >= Behavior::Ask, "{before:?}\n{after:?}");
            }
        }
    }

    #[test]
    fn joining_commands_is_never_laxer_than_the_strictest(
        mode in any_mode(), rules in vec(any_rule(), 0..8), confined in any_confines(),
        commands in vec(any_command(), 2..5), join in joiner(),
    ) {
        let policy = policy(mode, &rules);
        let one = |command: &String| {
            decide(&policy, &MadeCall::read(&format!("shell: {command}"), confined)).behavior
        };
        let strictest = commands.iter().map(one).max().unwrap();
        let joined = decide(&policy, &MadeCall::read(&format!("shell: {}", commands.join(join)), confined));
        prop_assert!(joined.behavior >= strictest, "{:?}: {joined:?}", commands.join(join));
    }

    #[test]
    fn what_is_suggested_really_allows(
        mode in any_mode(), rules in vec(any_rule(), 0..4), call in any_call(), confined in any_confines(),
    ) {
        let call = MadeCall::read(&call, confined);
        let policy = policy(mode, &rules);
        let principal = Principal::agent("agent");
        let facts = call.facts(&principal);
        let decision = policy.decide(&facts);
        let suggested = policy.suggestions(&facts);
        let asks_for_more = matches!(decision.reason.kind, ReasonType::Mode | ReasonType::Classifier | ReasonType::Rule);
        prop_assert!(suggested.is_empty() || (decision.behavior > Behavior::Allow && asks_for_more));
        prop_assert!(suggested.is_empty() || !by_rule(&decision, Behavior::Deny) || mode == PermissionMode::NeverAsk);
        prop_assert!(suggested.is_empty() || decision.opaque.is_empty());
        for rule in suggested {
            let line = rule.to_string();
            let again = Rule::parse(&line, RuleOrigin::Session, "again").unwrap();
            prop_assert_eq!(&again.selector, &rule.selector);
            let after = policy.with(&[again]).unwrap().decide(&facts);
            prop_assert_eq!(after.behavior, Behavior::Allow, "{}: {:?}", line, after);
        }
    }

    #[test]
    fn a_layer_decides_like_a_list(
        mode in any_mode(), rules in vec(any_rule(), 0..6), more in vec(any_rule(), 1..4), call in any_call(),
        confined in any_confines(),
    ) {
        let call = MadeCall::read(&call, confined);
        let layered = decide(&policy(mode, &rules).with(&more).unwrap(), &call);
        let listed = decide(&policy(mode, &[rules, more].concat()), &call);
        prop_assert_eq!(layered, listed);
    }

    #[test]
    fn a_decision_does_not_depend_on_rules_about_other_things(
        mode in any_mode(), rules in vec(any_rule(), 0..6), call in any_call(), confined in any_confines(),
    ) {
        let call = MadeCall::read(&call, confined);
        let others = (0..50).map(|number| {
            let line = match number % 3 {
                0 => format!("allow other{number}.tool(x*)"),
                1 => format!("allow fs.write(/nowhere/{number}/**)"),
                _ => format!("deny net(https://host{number}.invalid/*)"),
            };
            Rule::parse(&line, RuleOrigin::User, "other").unwrap()
        });
        let before = decide(&policy(mode, &rules), &call);
        let crowd: Vec<Rule> = others.filter(|rule| before.opaque.is_empty() || rule.effect == Behavior::Allow).collect();
        let after = decide(&policy(mode, &[rules, crowd].concat()), &call);
        prop_assert_eq!((before.behavior, before.reason), (after.behavior, after.reason));
    }

    #[test]
    fn the_vote_of_an_authority_never_loosens_what_another_rule_asks_or_denies(
        mode in any_mode(), rules in vec(any_rule(), 0..8), call in any_call(), confined in any_confines(),
        selector in select(SELECTORS), vote in select(vec![Behavior::Allow, Behavior::Ask, Behavior::Deny]),
        at in any::<prop::sample::Index>(),
    ) {
        let call = MadeCall::read(&call, confined);
        let principal = Principal::agent("agent");
        let before = decide(&policy(mode, &rules), &call);
        let delegating = Rule::parse(&format!("delegate bureau {selector}"), RuleOrigin::Cli, "test").unwrap();
        let answered = DelegatedVote {
            authority: "bureau".parse().unwrap(),
            kind: None,
            behavior: vote,
            reason: None,
            fault: None,
            rule: (&delegating).into(),
            cached: false,
            at_us: 0,
            duration_us: 0,
        };
        let mut with_it = rules.clone();
        with_it.insert(at.index(rules.len() + 1), delegating);
        let policy = policy(mode, &with_it);
        let votes = [answered];
        let after = policy.decide(&PermissionFacts { delegated: &votes, ..call.facts(&principal) });
        // The mode alone gives way to a vote; never-ask denies what a rule only asks about.
        let stands = matches!(before.reason.kind, ReasonType::Rule | ReasonType::Caution | ReasonType::SafetyCheck | ReasonType::Opaque);
        if stands {
            prop_assert!(after.behavior >= before.behavior, "{before:?}\n{after:?}");
        }
        // A vote that was not given denies, and a vote counts for at least what it says.
        let unasked = policy.decide(&call.facts(&principal));
        prop_assert!(unasked.behavior >= after.behavior, "{unasked:?}\n{after:?}");
        if !policy.delegations(&call.facts(&principal)).is_empty() {
            prop_assert!(after.behavior >= vote, "{after:?}");
            prop_assert_eq!(unasked.behavior, Behavior::Deny);
        } else {
            prop_assert!(after.behavior >= before.behavior, "{before:?}\n{after:?}");
        }
    }
}
