//! Compiled and indexed rules, so that a decision evaluates only the rules that could match its call.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;
use toolpost_model::{
    Behavior, Declaration, EffectClass, Provenance, ResourceAccess, Rule, Selector, ToolId,
};

use super::{
    index::{MatcherIndex, RulePosition},
    matcher::Matcher,
    places::PathBaseFolders,
    policy::RuleProblem,
    rule_tests,
};

/// The number of tools whose rules are cached.
const KEPT_TOOLS: usize = 16_384;

/// The compiled rules of one layer.
#[derive(Debug, Default)]
pub(super) struct RuleSnapshot {
    pub(super) rules: Vec<CompiledRule>,
    /// Rules for tools that are named without a `*`, by that name.
    named: HashMap<Box<str>, Vec<RulePosition>>,
    /// The other rules for tools.
    wild: Vec<RulePosition>,
    classes: HashMap<EffectClass, Vec<RulePosition>>,
    pub(super) reads: PathRules,
    pub(super) writes: PathRules,
    pub(super) reaches: PathRules,
    tools: RwLock<HashMap<ToolId, Arc<ToolRules>>>,
}

/// A rule with its compiled pattern.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    pub(super) matcher: Option<Matcher>,
}

/// The rules about paths or requests of all tools.
#[derive(Debug, Default)]
pub(super) struct PathRules {
    pub(super) index: MatcherIndex,
    /// The rules that deny or ask.
    pub(super) guards: Vec<RulePosition>,
    /// Whether one of the rules allows.
    pub(super) allows: bool,
}

/// The rules that name one tool.
#[derive(Debug, Default)]
pub(super) struct ToolRules {
    /// The aliases, the provenance and the definition at the time of the lookup. The cached rules are valid only for the
    /// same values.
    aliases: Vec<String>,
    provenance: Provenance,
    definition: Option<String>,
    /// The rules without a pattern, which match the whole call if their conditions hold.
    pub(super) whole: Vec<RulePosition>,
    /// The rules with a pattern.
    pub(super) matching: MatcherIndex,
    /// The rules with a pattern that deny or ask.
    pub(super) guards: Vec<RulePosition>,
    /// Whether one of the rules could allow a call.
    pub(super) allows: bool,
}

impl RuleSnapshot {
    /// Compiles the rules. Problems are reported with the place of the rule.
    pub(super) fn compile(
        rules: Vec<Rule>,
        places: &PathBaseFolders,
    ) -> Result<Self, Vec<RuleProblem>> {
        let mut snapshot = Self::default();
        let mut problems = Vec::new();
        for rule in rules {
            let said = match compiled(rule, places) {
                Ok(compiled) => {
                    let said = rule_tests::run(&compiled, places);
                    snapshot.add(compiled);
                    said
                }
                Err(problem) => vec![problem],
            };
            problems.extend(said);
        }
        if problems.is_empty() {
            Ok(snapshot)
        } else {
            Err(problems)
        }
    }

    fn add(&mut self, compiled: CompiledRule) {
        let place = RulePosition::try_from(self.rules.len()).unwrap_or(RulePosition::MAX);
        match (&compiled.rule.selector, &compiled.matcher) {
            (Selector::Tool { tools, .. }, _) if tools.as_str().contains('*') => {
                self.wild.push(place);
            }
            (Selector::Tool { tools, .. }, _) => {
                self.named
                    .entry(tools.as_str().into())
                    .or_default()
                    .push(place);
            }
            (Selector::Class(class), _) => self.classes.entry(*class).or_default().push(place),
            (Selector::Reads(_), Some(matcher)) => self.reads.add(place, &compiled.rule, matcher),
            (Selector::Writes(_), Some(matcher)) => self.writes.add(place, &compiled.rule, matcher),
            (Selector::Reaches(_), Some(matcher)) => {
                self.reaches.add(place, &compiled.rule, matcher);
            }
            (Selector::Reads(_) | Selector::Writes(_) | Selector::Reaches(_), None) => {}
        }
        self.rules.push(compiled);
    }

    pub(super) fn get(&self, place: RulePosition) -> &CompiledRule {
        &self.rules[place as usize]
    }

    pub(super) fn of_class(&self, class: EffectClass) -> &[RulePosition] {
        self.classes.get(&class).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_access(&self, access: ResourceAccess) -> &PathRules {
        match access {
            ResourceAccess::Read => &self.reads,
            ResourceAccess::Write => &self.writes,
        }
    }

    /// The rules that name a tool, from the cache after the first call.
    pub(super) fn of_tool(&self, declaration: &Declaration) -> Arc<ToolRules> {
        let kept = self.tools.read();
        let is_of = |one: &&Arc<ToolRules>| {
            one.aliases == declaration.aliases
                && one.provenance == declaration.provenance
                && one.definition == declaration.definition
        };
        if let Some(found) = kept.get(&declaration.tool_id).filter(is_of) {
            return Arc::clone(found);
        }
        drop(kept);
        let found = Arc::new(self.look_up(declaration));
        let mut kept = self.tools.write();
        if kept.len() >= KEPT_TOOLS {
            kept.clear();
        }
        kept.insert(declaration.tool_id.clone(), Arc::clone(&found));
        found
    }

    fn look_up(&self, declaration: &Declaration) -> ToolRules {
        let names_it = |place: &RulePosition| self.get(*place).rule.names_tool(declaration);
        let id = &declaration.tool_id;
        let wire = id.wire_form();
        let names = [id.as_str(), id.name(), &wire].into_iter();
        let names = names.chain(declaration.aliases.iter().map(String::as_str));
        let bound_like = &declaration.interface.permission.bound_like;
        let names = names.chain(bound_like.iter().map(String::as_str));
        let named = names.filter_map(|name| self.named.get(name)).flatten();
        let mut found: Vec<RulePosition> =
            named.chain(&self.wild).copied().filter(names_it).collect();
        found.sort_unstable();
        found.dedup();
        let mut rules = ToolRules {
            aliases: declaration.aliases.clone(),
            provenance: declaration.provenance,
            definition: declaration.definition.clone(),
            ..ToolRules::default()
        };
        for place in found {
            let CompiledRule { rule, matcher } = self.get(place);
            rules.allows |= may_allow(rule);
            match matcher {
                None => rules.whole.push(place),
                Some(matcher) => {
                    rules.matching.add(place, matcher);
                    if rule.effect > Behavior::Allow {
                        rules.guards.push(place);
                    }
                }
            }
        }
        rules
    }
}

impl PathRules {
    fn add(&mut self, place: RulePosition, rule: &Rule, matcher: &Matcher) {
        self.index.add(place, matcher);
        self.allows |= may_allow(rule);
        match rule.effect {
            Behavior::Allow => {}
            Behavior::Ask | Behavior::Deny => self.guards.push(place),
        }
    }
}

/// Whether a rule can allow a call, by itself or by the vote of its authority.
pub(super) fn may_allow(rule: &Rule) -> bool {
    rule.effect == Behavior::Allow || rule.delegate.is_some()
}

fn compiled(rule: Rule, places: &PathBaseFolders) -> Result<CompiledRule, RuleProblem> {
    let matcher = match &rule.selector {
        Selector::Tool { matcher: None, .. } | Selector::Class(_) => Ok(None),
        // `deny tool(*)` is the same rule as `deny tool`.
        Selector::Tool {
            matcher: Some(text),
            ..
        } => match Matcher::parse(text, places) {
            Ok(Matcher::Anything) if rule.effect > Behavior::Allow => Ok(None),
            parsed => parsed.map(Some),
        },
        Selector::Reads(text) | Selector::Writes(text) => Matcher::of_paths(text, places).map(Some),
        Selector::Reaches(text) => Matcher::of_requests(text).map(Some),
    };
    match matcher {
        Ok(matcher) => Ok(CompiledRule { rule, matcher }),
        Err(error) => Err(RuleProblem::of(&rule, error.to_string())),
    }
}
