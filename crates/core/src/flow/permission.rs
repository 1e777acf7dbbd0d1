//! Layer 5: allowed, denied or asked, and by which rule. Decisions are pure functions of facts.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use toolpost_model::{
    Access, Behavior, Decision, DecisionReason, Declaration, EffectClass, Effects, Mode, PermissionInput,
    Principal, ReasonType, Rule, RuleRef, Selector, Vote,
};

/// What a decision is made on.
pub struct Facts<'a> {
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments the decision is about. `None` where the tool is denied whatever it is called with.
    pub input: Option<&'a PermissionInput>,
    /// What the call will do, as far as the host believes it.
    pub effects: &'a Effects,
    /// Who calls.
    pub principal: &'a Principal,
    /// What hooks think of it. An opinion counts like a rule: it never beats a stricter one.
    pub opinions: &'a [Vote],
    /// When: rules may have expired.
    pub at: Timestamp,
}

/// Decides. A port, so that an organisation can bring its own; [`Policy`] is the built-in one.
pub trait PolicyEngine: Send + Sync + 'static {
    /// Facts in, decision out. No I/O, no clock.
    fn decide(&self, facts: &Facts<'_>) -> Decision;

    /// Whether every call of the tool would be denied, so that a surface need not show it. `class` is `None`
    /// when only the input tells it.
    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool;

    /// Whether rules keep any path from this caller, or may.
    fn has_path_rules(&self, principal: &Principal) -> bool {
        let _ = principal;
        false
    }

    /// Whether rules let this caller use a path that its call met on the way: absolute, links resolved.
    fn may_use(&self, path: &Path, access: Access, principal: &Principal, at: Timestamp) -> bool {
        let _ = (path, access, principal, at);
        true
    }

    /// What the call would run, command by command, for a person who is asked about it.
    fn commands(&self, facts: &Facts<'_>) -> Vec<String> {
        let _ = facts;
        Vec::new()
    }

    /// Rules, from narrow to wide, each of which would let this call and the like of it pass without a question.
    fn suggestions(&self, facts: &Facts<'_>) -> Vec<Rule> {
        let _ = facts;
        Vec::new()
    }

    /// The same engine with further rules. `None`: it takes none, so no answer can be remembered.
    fn with_rules(&self, rules: &[Rule]) -> Option<Arc<dyn PolicyEngine>> {
        let _ = rules;
        None
    }

    /// The rules that can speak of none of these tools: most likely a typing mistake.
    fn unmatched(&self, tools: &[&Declaration]) -> Vec<RuleRef> {
        let _ = tools;
        Vec::new()
    }
}

/// A mode and a list of rules: deny over ask over allow, and where no rule speaks, the mode.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// What happens where no rule speaks.
    pub mode: Mode,
    /// From all origins. Their order does not matter.
    pub rules: Vec<Rule>,
}

impl Policy {
    fn matching(&self, declaration: &Declaration, class: EffectClass) -> Vec<&Rule> {
        let speaks = |rule: &&Rule| match &rule.selector {
            Selector::Class(wanted) => *wanted == class,
            Selector::Tool { matcher: None, conditions, .. } if conditions.is_empty() => {
                names(rule, declaration)
            }
            Selector::Tool { .. } => rule.effect > Behavior::Allow && names(rule, declaration),
            Selector::Reads(_) | Selector::Writes(_) | Selector::Reaches(_) => rule.effect > Behavior::Allow,
        };
        self.rules.iter().filter(speaks).collect()
    }

    fn votes(&self, facts: &Facts<'_>, matched: &[&Rule]) -> Vec<Vote> {
        let rules = matched.iter().map(|rule| Vote {
            behavior: rule.effect,
            reason: DecisionReason {
                kind: ReasonType::Rule,
                text: rule.reason.clone().unwrap_or_else(|| format!("the rule `{rule}` ({})", rule.place)),
                rule: Some(RuleRef::from(*rule)),
            },
        });
        let mut votes: Vec<Vote> = rules.collect();
        let interface = &facts.declaration.interface;
        if interface.permission.approval_required || interface.safety.requires_user_interaction {
            votes.push(Vote {
                behavior: Behavior::Ask,
                reason: DecisionReason {
                    kind: ReasonType::SafetyCheck,
                    text: "the tool needs a person's approval for every call".to_owned(),
                    rule: None,
                },
            });
        }
        if let Some(caution) = &facts.effects.caution {
            votes.push(Vote {
                behavior: Behavior::Ask,
                reason: DecisionReason { kind: ReasonType::Caution, text: caution.clone(), rule: None },
            });
        }
        // A hook that allows speaks like a rule; one that asks or denies, or failed, must not loosen the mode.
        let hook_allows = facts.opinions.iter().any(|vote| vote.behavior == Behavior::Allow);
        if matched.is_empty() && !hook_allows {
            votes.push(self.mode_vote(facts.effects.class));
        }
        votes.extend_from_slice(facts.opinions);
        votes
    }

    fn mode_vote(&self, class: EffectClass) -> Vote {
        let behavior = self.mode.behavior(class, None);
        let text = match behavior {
            Behavior::Allow => format!("mode `{}` runs calls of class `{class}`", self.mode),
            Behavior::Ask => format!("mode `{}` asks about calls of class `{class}`", self.mode),
            Behavior::Deny => format!("mode `{}` denies calls of class `{class}`", self.mode),
        };
        Vote { behavior, reason: DecisionReason { kind: ReasonType::Mode, text, rule: None } }
    }

    /// What the operator would change. Never offered for a rule somebody wrote to say no.
    fn hint(&self, facts: &Facts<'_>, decided: &Vote) -> Option<String> {
        let name = facts.declaration.tool_id.name();
        match (decided.behavior, decided.reason.kind, &decided.reason.rule) {
            (Behavior::Allow, _, _) => None,
            (_, ReasonType::Rule, Some(rule)) => {
                Some(format!("the rule `{}` in {} decides this", rule.rule, rule.place))
            }
            (_, ReasonType::Mode, _) => {
                let mode = match facts.effects.class {
                    EffectClass::Write => Mode::Edits,
                    EffectClass::Read
                    | EffectClass::Network
                    | EffectClass::Execute
                    | EffectClass::Unknown => Mode::Bypass,
                };
                Some(format!("start the host with `--allow {name}` or `--mode {mode}`"))
            }
            (_, ReasonType::Caution, _) => {
                let hint = "change `protect` (paths) or `sandbox` (processes) in the configuration if such calls \
                            may run unasked";
                Some(hint.to_owned())
            }
            (_, ReasonType::Hook | ReasonType::Opaque | ReasonType::Approval, _) => None,
            (_, ReasonType::SafetyCheck | ReasonType::Rule, _) => {
                Some(format!("set `tools.{name}.approval_required: false` in the configuration"))
            }
        }
    }
}

impl PolicyEngine for Policy {
    fn decide(&self, facts: &Facts<'_>) -> Decision {
        let class = facts.effects.class;
        let matched = self.matching(facts.declaration, class);
        let mut votes = self.votes(facts, &matched);
        // The strictest vote decides; of equals, the first, so that the answer does not depend on a sort.
        let strictest = votes.iter().map(|vote| vote.behavior).max().unwrap_or(Behavior::Deny);
        let place = votes.iter().position(|vote| vote.behavior == strictest).unwrap_or_default();
        let decided = votes.swap_remove(place);
        let also_matched = votes.into_iter().filter_map(|vote| vote.reason.rule).collect();
        Decision {
            behavior: decided.behavior,
            class,
            mode: self.mode,
            operator_hint: self.hint(facts, &decided),
            reason: decided.reason,
            also_matched,
            subject: None,
            opaque: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool {
        let named = |rule: &&Rule| match &rule.selector {
            Selector::Tool { matcher: None, conditions, .. } => {
                conditions.is_empty() && names(rule, declaration)
            }
            _ => false,
        };
        if self.rules.iter().filter(named).any(|rule| rule.effect == Behavior::Deny) {
            return true;
        }
        let Some(class) = class else { return false };
        let matched = self.matching(declaration, class);
        match matched.iter().map(|rule| rule.effect).max() {
            Some(strictest) => strictest == Behavior::Deny,
            None => self.mode.behavior(class, None) == Behavior::Deny,
        }
    }
}

fn names(rule: &Rule, declaration: &Declaration) -> bool {
    match &rule.selector {
        Selector::Tool { tools, .. } => tools.matches(&declaration.tool_id, &declaration.aliases),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use toolpost_model::{
        Behavior::{self, Allow, Ask, Deny},
        Declaration, EffectClass, Effects, Mode, Principal, Rule, RuleOrigin,
    };

    use super::{Facts, Policy, PolicyEngine};

    fn check(mode: Mode, rules: &[&str], class: EffectClass, expected: Behavior) {
        let rules = rules.iter().map(|line| Rule::parse(line, RuleOrigin::Cli, "test").unwrap()).collect();
        let policy = Policy { mode, rules };
        let declaration = Declaration::new("files.write_file".parse().unwrap(), "");
        let (effects, principal) = (Effects::of(class), Principal::agent("a"));
        let facts = Facts {
            declaration: &declaration,
            input: None,
            effects: &effects,
            principal: &principal,
            opinions: &[],
            at: Timestamp::UNIX_EPOCH,
        };
        let decision = policy.decide(&facts);
        assert_eq!(decision.behavior, expected, "{mode} {:?} {class}", policy.rules);
        // A tool that is denied for its only class must not be shown, and one that is shown must not be denied so.
        assert_eq!(policy.denies_outright(&declaration, Some(class)), expected == Deny);
    }

    #[test]
    fn modes_decide_where_no_rule_speaks() {
        for (mode, [read, write, network, execute, unknown]) in [
            (Mode::Plan, [Allow, Deny, Deny, Deny, Deny]),
            (Mode::Default, [Allow, Ask, Ask, Ask, Ask]),
            (Mode::Edits, [Allow, Allow, Ask, Ask, Ask]),
            (Mode::Bypass, [Allow, Allow, Allow, Allow, Allow]),
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
        check(Mode::Default, &["allow write_file"], write, Allow);
        check(Mode::Plan, &["allow write_file"], write, Allow);
        check(Mode::Bypass, &["allow write_file", "ask class:write"], write, Ask);
        check(Mode::Bypass, &["deny files.*", "ask class:write", "allow write_file"], write, Deny);
        check(Mode::Bypass, &["allow write_file", "deny *"], write, Deny);
        check(Mode::Edits, &["deny read_file"], write, Allow);
    }

    #[test]
    fn a_call_that_deserves_caution_asks_whatever_allows_it_and_stays_denied_where_it_was() {
        let declaration = Declaration::new("files.write_file".parse().unwrap(), "");
        let effects = Effects::of(EffectClass::Write).with_caution("`.git/config` is protected");
        let principal = Principal::agent("a");
        let facts = Facts {
            declaration: &declaration,
            input: None,
            effects: &effects,
            principal: &principal,
            opinions: &[],
            at: Timestamp::UNIX_EPOCH,
        };
        for (mode, rule, expected) in [
            (Mode::Bypass, None, Ask),
            (Mode::Bypass, Some("allow write_file"), Ask),
            (Mode::Plan, None, Deny),
            (Mode::Edits, Some("deny files.*"), Deny),
        ] {
            let rules = rule.iter().map(|line| Rule::parse(line, RuleOrigin::Cli, "test").unwrap()).collect();
            let decision = Policy { mode, rules }.decide(&facts);
            assert_eq!(decision.behavior, expected, "{mode} {rule:?}");
        }
    }

    #[test]
    fn a_tool_that_wants_a_person_asks_in_every_mode() {
        let mut declaration = Declaration::new("a.b".parse().unwrap(), "");
        declaration.interface.permission.approval_required = true;
        let (effects, principal) = (Effects::of(EffectClass::Read), Principal::agent("a"));
        let facts = Facts {
            declaration: &declaration,
            input: None,
            effects: &effects,
            principal: &principal,
            opinions: &[],
            at: Timestamp::UNIX_EPOCH,
        };
        let policy = Policy { mode: Mode::Bypass, rules: Vec::new() };
        assert_eq!(policy.decide(&facts).behavior, Ask);
    }
}
