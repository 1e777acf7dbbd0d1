//! The host's own policy engine: a mode and compiled rules. Deny overrides ask, ask overrides allow, and the mode is
//! the default.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use toolpost_model::{
    Behavior, Decision, Declaration, EffectClass, PermissionMode, Principal, RememberOffer,
    ResourceAccess, Rule, RuleOrigin, RuleRef, Selector, ToolPattern,
};

use super::{
    Account, BareAllow, Delegation, PartDecision, PermissionFacts, PolicyEngine, account, decision,
    evaluation::{RuleEvaluation, is_an_answer},
    parts::PermissionParts,
    places::{PathBaseFolders, PlainPath},
    snapshot::{CompiledRule, RuleSnapshot, may_allow},
    suggest,
};
use crate::catalog::interface::{exact_patterns, unmeant};

/// The parts of a policy.
#[derive(Clone, Debug, Default)]
pub struct PolicySpec {
    /// The default when no rule matches.
    pub mode: PermissionMode,
    /// The rules of all origins. Their order only selects which of two equal rules is named as the deciding one.
    pub rules: Vec<Rule>,
    /// The base folders of paths in rules and arguments.
    pub places: PathBaseFolders,
    /// Problems of the rules, such as a file that cannot be read. Each decision repeats them.
    pub notes: Vec<String>,
}

/// A problem of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RuleProblem {
    /// The file and line, or the flag.
    pub place: String,
    /// The text of the rule.
    pub rule: String,
    /// The problem.
    pub message: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: the rule `{}`: {}",
            self.place, self.rule, self.message
        )
    }
}

impl RuleProblem {
    pub(super) fn of(rule: &Rule, message: impl Into<String>) -> Self {
        Self {
            place: rule.place.clone(),
            rule: rule.to_string(),
            message: message.into(),
        }
    }
}

/// A mode and compiled rules. Deny overrides ask, ask overrides allow, and the mode is the default. Cheap to clone.
///
/// ```
/// use toolpost_core::{PathBaseFolders, Policy, PolicySpec};
/// use toolpost_model::{PermissionMode, Rule, RuleOrigin};
///
/// let rule = Rule::parse("deny fs.read(**/.env*)", RuleOrigin::Cli, "main.rs")?;
/// let places = PathBaseFolders { workspace: Some("/srv/app".into()), ..PathBaseFolders::default() };
/// let spec = PolicySpec { mode: PermissionMode::Edits, rules: vec![rule], places, ..PolicySpec::default() };
/// let policy = Policy::compile(spec).expect("the rules mean something");
/// assert_eq!(policy.mode(), PermissionMode::Edits);
/// # Ok::<(), toolpost_model::RuleError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub(super) mode: PermissionMode,
    pub(super) places: Arc<PathBaseFolders>,
    pub(super) notes: Arc<[String]>,
    /// The compiled rules, and one layer for each later addition.
    pub(super) layers: Vec<Arc<RuleSnapshot>>,
}

impl Policy {
    /// Compiles rules and runs their tests.
    pub fn compile(spec: PolicySpec) -> Result<Self, Vec<RuleProblem>> {
        let PolicySpec {
            mode,
            rules,
            places,
            notes,
        } = spec;
        let snapshot = RuleSnapshot::compile(rules, &places)?;
        Ok(Self {
            mode,
            places: Arc::new(places),
            notes: notes.into(),
            layers: vec![Arc::new(snapshot)],
        })
    }

    /// A policy with a mode and no rules.
    pub fn in_mode(mode: PermissionMode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }

    /// A policy from rule lines, without a workspace. For embedders whose rules name tools and classes, and for tests.
    pub fn of(mode: PermissionMode, lines: &[&str]) -> Result<Self, Vec<RuleProblem>> {
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        for line in lines {
            match Rule::parse(line, RuleOrigin::Cli, "code") {
                Ok(rule) => rules.push(rule),
                Err(error) => problems.push(RuleProblem {
                    place: "code".to_owned(),
                    rule: (*line).to_owned(),
                    message: error.to_string(),
                }),
            }
        }
        if problems.is_empty() {
            Self::compile(PolicySpec {
                mode,
                rules,
                ..PolicySpec::default()
            })
        } else {
            Err(problems)
        }
    }

    /// The mode in force.
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// All rules, in the order in which they were given.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.layers
            .iter()
            .flat_map(|layer| layer.rules.iter().map(|compiled| &compiled.rule))
    }

    /// The policy with further rules in a new layer. The existing layers are shared.
    pub fn with(&self, rules: &[Rule]) -> Result<Self, Vec<RuleProblem>> {
        let snapshot = RuleSnapshot::compile(rules.to_vec(), &self.places)?;
        let mut policy = self.clone();
        policy.layers.push(Arc::new(snapshot));
        Ok(policy)
    }

    /// The path rules that deny or ask.
    fn path_guards(&self, access: ResourceAccess) -> impl Iterator<Item = &CompiledRule> {
        self.layers.iter().flat_map(move |layer| {
            layer
                .of_access(access)
                .guards
                .iter()
                .map(|&place| layer.get(place))
        })
    }
}

impl PolicyEngine for Policy {
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision {
        let parts = PermissionParts::of(facts, &self.places);
        let hearing = RuleEvaluation::open(self, facts, &parts);
        decision::write(self, &hearing, &hearing.judge())
    }

    fn delegations(&self, facts: &PermissionFacts<'_>) -> Vec<Delegation> {
        let parts = PermissionParts::of(facts, &self.places);
        RuleEvaluation::open(self, facts, &parts).delegations()
    }

    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool {
        // There is no caller yet, so only rules for all callers and without expiry count.
        let for_all = |rule: &Rule| rule.principal.is_none() && rule.expires.is_none();
        let mut strictest = None;
        let mut could_allow = false;
        let mut could_answer = false;
        for layer in &self.layers {
            let tool = layer.of_tool(declaration);
            let unconditional = |rule: &Rule| match &rule.selector {
                Selector::Tool { conditions, .. } => conditions.is_empty(),
                Selector::Class(_)
                | Selector::Reads(_)
                | Selector::Writes(_)
                | Selector::Reaches(_) => true,
            };
            let of_class = class.map_or(&[][..], |class| layer.of_class(class));
            for &place in tool.whole.iter().chain(of_class) {
                let rule = &layer.get(place).rule;
                // The vote of an authority is known only for a call.
                if for_all(rule) && unconditional(rule) && rule.delegate.is_none() {
                    strictest = strictest.max(Some(rule.effect));
                }
            }
            let may = |list: &[u32]| list.iter().any(|&place| may_allow(&layer.get(place).rule));
            let by_path = layer.reads.allows || layer.writes.allows || layer.reaches.allows;
            let allows = tool.allows || may(of_class) || by_path;
            could_allow |= allows;
            could_answer |= allows
                && layer
                    .rules
                    .iter()
                    .any(|compiled| is_an_answer(&compiled.rule));
        }
        let asks_nobody = self.mode == PermissionMode::NeverAsk;
        match strictest {
            Some(Behavior::Deny) => true,
            // A remembered approval overrides a rule that asks, even if no operator can be asked now.
            Some(Behavior::Ask) => asks_nobody && !could_answer,
            Some(Behavior::Allow) => false,
            None if could_allow => false,
            None => class.is_some_and(|class| self.mode.behavior(class, None) == Behavior::Deny),
        }
    }

    fn has_path_rules(&self, principal: &Principal) -> bool {
        let speaks = |compiled: &CompiledRule| compiled.rule.speaks_of(principal, Timestamp::MIN);
        self.path_guards(ResourceAccess::Read)
            .chain(self.path_guards(ResourceAccess::Write))
            .any(speaks)
    }

    fn may_use(
        &self,
        path: &Path,
        access: ResourceAccess,
        principal: &Principal,
        at: Timestamp,
    ) -> bool {
        // Path rules match absolute paths only, so a relative path is refused.
        let Some(plain) = PlainPath::of_path(path) else {
            return false;
        };
        let found = self.layers.iter().flat_map(|layer| {
            let places = layer.of_access(access).index.for_path(&plain);
            places.into_iter().map(|place| layer.get(place))
        });
        let speaks = |compiled: &&CompiledRule| {
            let CompiledRule { rule, matcher } = compiled;
            rule.speaks_of(principal, at)
                && matcher
                    .as_ref()
                    .is_some_and(|matcher| matcher.takes_path(rule.effect, &plain, access))
        };
        let rules: Vec<&Rule> = found
            .filter(speaks)
            .map(|compiled| &compiled.rule)
            .collect();
        let answered = rules
            .iter()
            .any(|rule| rule.effect == Behavior::Allow && is_an_answer(rule));
        rules.iter().all(|rule| match rule.effect {
            Behavior::Allow => true,
            Behavior::Ask => answered && rule.remember == RememberOffer::Offer,
            Behavior::Deny => false,
        })
    }

    fn may_steer(&self, path: &Path, principal: &Principal, at: Timestamp) -> bool {
        let Some(plain) = PlainPath::of_path(path) else {
            return false;
        };
        let allows = |compiled: &CompiledRule| {
            let CompiledRule { rule, matcher } = compiled;
            rule.effect == Behavior::Allow
                && rule.speaks_of(principal, at)
                && matcher
                    .as_ref()
                    .is_some_and(|matcher| matcher.names_path(&plain))
        };
        let writes = |layer: &RuleSnapshot| {
            let places = layer
                .of_access(ResourceAccess::Write)
                .index
                .for_path(&plain);
            places.into_iter().any(|place| allows(layer.get(place)))
        };
        self.mode == PermissionMode::Bypass || self.layers.iter().any(|layer| writes(layer))
    }

    fn path_rules_hold_until(&self, at: Timestamp) -> Option<Timestamp> {
        self.rules()
            .filter_map(|rule| rule.expires)
            .filter(|expires| at < *expires)
            .min()
    }

    fn kept_places(&self, principal: &Principal) -> Vec<PathBuf> {
        let guards = self
            .path_guards(ResourceAccess::Read)
            .chain(self.path_guards(ResourceAccess::Write));
        let guards = guards.filter(|compiled| compiled.rule.speaks_of(principal, Timestamp::MIN));
        let beginnings = guards.flat_map(|compiled| match &compiled.matcher {
            Some(matcher) => matcher.beginnings(),
            None => Vec::new(),
        });
        let mut places: Vec<PathBuf> = beginnings.map(PathBuf::from).collect();
        // Sorted, so that a folder comes before the folders beneath it.
        places.sort_unstable();
        let mut kept: Vec<PathBuf> = Vec::new();
        for place in places {
            if !kept.last().is_some_and(|above| place.starts_with(above)) {
                kept.push(place);
            }
        }
        kept
    }

    fn commands(&self, facts: &PermissionFacts<'_>) -> Vec<String> {
        PermissionParts::of(facts, &self.places).commands
    }

    fn parts(&self, facts: &PermissionFacts<'_>) -> Vec<PartDecision> {
        let parts = PermissionParts::of(facts, &self.places);
        let verdict = RuleEvaluation::open(self, facts, &parts).judge();
        decision::of_parts(self, facts, &parts, &verdict)
    }

    fn account(&self, facts: &PermissionFacts<'_>) -> Account {
        account::of(self, facts)
    }

    fn suggestions(&self, facts: &PermissionFacts<'_>) -> Vec<Rule> {
        suggest::rules(self, facts)
    }

    fn is_open_to_allow(
        &self,
        tool: &Declaration,
        class: Option<EffectClass>,
        principal: &Principal,
        at: Timestamp,
    ) -> bool {
        for layer in &self.layers {
            let of_tool = layer.of_tool(tool);
            let of_class = class.map_or(&[][..], |class| layer.of_class(class));
            let guards = of_tool.whole.iter().chain(&of_tool.guards).chain(of_class);
            for &place in guards {
                let rule = &layer.get(place).rule;
                let is_conditional = match &rule.selector {
                    Selector::Tool {
                        conditions,
                        matcher,
                        ..
                    } => !conditions.is_empty() || matcher.is_some(),
                    Selector::Class(_)
                    | Selector::Reads(_)
                    | Selector::Writes(_)
                    | Selector::Reaches(_) => false,
                };
                let is_settled = match rule.effect {
                    // The effect of a rule that delegates is `Deny`, too: its authority votes on each call.
                    Behavior::Deny | Behavior::Allow => {
                        !is_conditional && rule.speaks_of(principal, at)
                    }
                    // An answer that names the tool overrides each ask about it, also one for other callers or some
                    // arguments. The question does not show those rules, so its answer must not override them.
                    Behavior::Ask => true,
                };
                if is_settled {
                    return false;
                }
            }
        }
        class.is_none_or(|class| self.mode.behavior(class, None) == Behavior::Ask)
    }

    fn with_rules(&self, rules: &[Rule]) -> Option<Arc<dyn PolicyEngine>> {
        match self.with(rules) {
            Ok(policy) => Some(Arc::new(policy)),
            Err(problems) => {
                problems
                    .iter()
                    .for_each(|problem| tracing::warn!("{problem}"));
                None
            }
        }
    }

    fn bare_allows(&self, tools: &[&Declaration]) -> Vec<BareAllow> {
        let bare = |rule: &Rule| match (&rule.selector, rule.effect) {
            (Selector::Tool { tools: pattern, .. }, Behavior::Allow) => {
                let meant = unmeant(pattern, tools)?;
                let line = |exact: ToolPattern| {
                    let mut rule = rule.clone();
                    if let Selector::Tool { tools, .. } = &mut rule.selector {
                        *tools = exact;
                    }
                    rule.to_string()
                };
                let instead = exact_patterns(pattern, &meant)
                    .into_iter()
                    .map(line)
                    .collect();
                Some(BareAllow {
                    rule: RuleRef::from(rule),
                    meant,
                    instead,
                })
            }
            _ => None,
        };
        self.rules().filter_map(bare).collect()
    }

    fn unmatched(&self, tools: &[&Declaration]) -> Vec<RuleRef> {
        let mut names = HashSet::new();
        for tool in tools {
            let id = &tool.tool_id;
            names.extend([id.as_str().to_owned(), id.name().to_owned(), id.wire_form()]);
            names.extend(tool.aliases.iter().cloned());
        }
        let known = |rule: &&Rule| match &rule.selector {
            Selector::Tool { tools: pattern, .. } if pattern.as_str().contains('*') => tools
                .iter()
                .any(|tool| pattern.matches(&tool.tool_id, &tool.aliases)),
            Selector::Tool { tools: pattern, .. } => names.contains(pattern.as_str()),
            Selector::Class(_)
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => true,
        };
        // Built-in rules are left out, because their tools need not be present.
        let written = self
            .rules()
            .filter(|rule| rule.origin != RuleOrigin::Builtin);
        written
            .filter(|rule| !known(rule))
            .map(RuleRef::from)
            .collect()
    }
}
