//! The evaluation of the rules for each part of a call, and the judgement that follows.

mod delegated;
mod judgement;
mod line;
mod request;

use std::sync::Arc;

use toolpost_model::{
    ArgumentCondition, ArgumentKind, Behavior, DecisionReason, EffectClass, PathCaution,
    PermissionMode, ReasonType, RememberOffer, ResourceAccess, Rule, RuleOrigin, Selector,
};

pub(super) use judgement::{Judgement, JudgementGround, JudgementReport};

use request::NamingAllows;

use super::{
    PermissionFacts,
    index::RulePosition,
    parts::{PartSubject, PermissionPart, PermissionParts, runs_unconfined},
    policy::Policy,
    snapshot::{RuleSnapshot, ToolRules},
};

/// The evaluation of the rules for one call.
pub(super) struct RuleEvaluation<'a> {
    policy: &'a Policy,
    pub(super) facts: &'a PermissionFacts<'a>,
    pub(super) parts: &'a PermissionParts,
    layers: Vec<RuleLayer<'a>>,
    /// The rules that match the call as a whole, and so each of its parts.
    whole: Vec<OrderedRule<'a>>,
    /// The rules that are left out, to find the decision without them.
    without: Vec<&'a Rule>,
}

struct RuleLayer<'a> {
    /// The index of the layer.
    number: usize,
    snapshot: &'a RuleSnapshot,
    tool: Arc<ToolRules>,
}

/// A rule with its position among all rules.
#[derive(Clone, Copy)]
pub(super) struct OrderedRule<'a> {
    pub(super) rule: &'a Rule,
    order: (usize, RulePosition),
}

/// Why a rule that could be about a call does not match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleExclusion {
    /// The rule is about another caller.
    OtherCaller,
    /// The rule has expired.
    Expired,
    /// The rule's conditions do not hold for these arguments.
    Condition,
}

impl<'a> RuleEvaluation<'a> {
    pub(super) fn open(
        policy: &'a Policy,
        facts: &'a PermissionFacts<'a>,
        parts: &'a PermissionParts,
    ) -> Self {
        Self::open_without(policy, facts, parts, Vec::new())
    }

    /// Evaluates the rules as if those of `without` did not exist.
    pub(super) fn open_without(
        policy: &'a Policy,
        facts: &'a PermissionFacts<'a>,
        parts: &'a PermissionParts,
        without: Vec<&'a Rule>,
    ) -> Self {
        let layer = |(number, snapshot): (usize, &'a Arc<RuleSnapshot>)| RuleLayer {
            number,
            snapshot: snapshot.as_ref(),
            tool: snapshot.of_tool(facts.declaration),
        };
        let mut hearing = Self {
            policy,
            facts,
            parts,
            layers: policy.layers.iter().enumerate().map(layer).collect(),
            whole: Vec::new(),
            without,
        };
        let whole = hearing
            .layers
            .iter()
            .flat_map(|layer| layer.heard(&layer.tool.whole));
        hearing.whole = whole.filter(|heard| hearing.concerns(heard.rule)).collect();
        hearing
    }

    /// Whether a rule that was found by tool or class applies to this caller, time and arguments.
    fn concerns(&self, rule: &Rule) -> bool {
        self.silence(rule).is_none()
            && !self
                .without
                .iter()
                .any(|left_out| std::ptr::eq(*left_out, rule))
    }

    /// Why a rule does not apply to this caller, time or arguments.
    pub(super) fn silence(&self, rule: &Rule) -> Option<RuleExclusion> {
        let holds = |condition: &ArgumentCondition| match self.facts.input {
            Some(input) => condition.holds(input.arguments().value()),
            // Without arguments, the question is about all of them. Only a rule without conditions covers that.
            None => false,
        };
        let conditions = match &rule.selector {
            Selector::Tool { conditions, .. } => conditions.as_slice(),
            Selector::Class(_)
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => &[],
        };
        if rule.expires.is_some_and(|end| end <= self.facts.at) {
            Some(RuleExclusion::Expired)
        } else if !rule.speaks_of(self.facts.principal, self.facts.at) {
            Some(RuleExclusion::OtherCaller)
        } else {
            (!conditions.iter().all(holds)).then_some(RuleExclusion::Condition)
        }
    }

    /// The rules that match a part.
    pub(super) fn speakers(&self, part: &PermissionPart) -> Vec<&'a Rule> {
        self.votes(part).all().map(|heard| heard.rule).collect()
    }

    pub(super) fn judge(&self) -> JudgementReport<'a> {
        let mut matched: Vec<OrderedRule<'a>> = Vec::new();
        let mut of_parts = Vec::with_capacity(self.parts.all.len());
        let mut naming_allows = NamingAllows::default();
        for (place, part) in self.parts.all.iter().enumerate() {
            let votes = self.votes(part);
            for heard in votes.all() {
                // Limited, because a longer list is not readable and a call of thousands of parts must not cost
                // quadratic time.
                if matched.len() < 64
                    && !matched
                        .iter()
                        .any(|known| std::ptr::eq(known.rule, heard.rule))
                {
                    matched.push(heard);
                }
            }
            // Few tools request approval themselves. The calls of other tools need not collect their allows twice.
            if self
                .facts
                .declaration
                .interface
                .permission
                .approval_requested
            {
                naming_allows.add(
                    votes
                        .allows(part)
                        .into_iter()
                        .find(|heard| self.allows_by_id(heard.rule)),
                );
            }
            let (behavior, ground) = self.outcome(part, &votes);
            of_parts.push(Judgement {
                behavior,
                ground,
                part: Some(place),
            });
        }
        let waived = self.waived_request(&naming_allows);
        let said = self.said_of_the_call(waived.as_deref());
        let decided = of_parts.iter().map(Judgement::again).chain(said);
        // Among equals the first stays.
        let decided = decided.reduce(|best, next| if next.outranks(&best) { next } else { best });
        let nothing = Judgement {
            behavior: Behavior::Deny,
            ground: JudgementGround::Mode,
            part: None,
        };
        let decided = decided.unwrap_or(nothing);
        // Parts and layers are evaluated in turn, but the report must be the same as for one list of all rules.
        matched.sort_by_key(|heard| heard.order);
        let matched = matched.into_iter().map(|heard| heard.rule).collect();
        JudgementReport {
            decided,
            of_parts,
            matched,
            waived,
        }
    }

    fn votes(&self, part: &PermissionPart) -> PartRules<'a> {
        let mut votes = PartRules {
            bare: self.whole.clone(),
            exact: Vec::new(),
        };
        for layer in &self.layers {
            let classes = layer.heard(layer.snapshot.of_class(part.class));
            votes
                .bare
                .extend(classes.filter(|heard| self.concerns(heard.rule)));
            let call = self.facts.effects.class;
            if call != part.class {
                // A deny or an ask for the class of the whole call applies to its parts as well.
                let stricter = layer.heard(layer.snapshot.of_class(call));
                let stricter = stricter.filter(|heard| heard.rule.effect > Behavior::Allow);
                votes
                    .bare
                    .extend(stricter.filter(|heard| self.concerns(heard.rule)));
            }
            let mut exact = self.exact(layer, part);
            self.add_allows_of_the_line(layer, part, &mut exact);
            votes.exact.extend(
                layer
                    .heard(&exact)
                    .filter(|heard| self.concerns(heard.rule)),
            );
        }
        votes
    }

    /// The rules of a layer whose matchers fit a part.
    fn exact(&self, layer: &RuleLayer<'a>, part: &PermissionPart) -> Vec<RulePosition> {
        let snapshot = layer.snapshot;
        let tool = &layer.tool;
        let mut found;
        match &part.subject {
            PartSubject::Command(command) => {
                found = tool.matching.for_command(command);
                found.retain(|&place| {
                    layer.takes(place, |matcher, effect| {
                        matcher.takes_command(effect, command)
                    })
                });
            }
            PartSubject::Path {
                path,
                access,
                redirect,
            } => {
                found = tool.matching.for_path(path);
                // `allow shell(make *)` is about commands. It must not allow a file with such a name as the target of a
                // redirect.
                found.retain(|&place| !redirect || layer.rule(place).effect > Behavior::Allow);
                found.extend(snapshot.of_access(*access).index.for_path(path));
                found.retain(|&place| {
                    layer.takes(place, |matcher, effect| {
                        matcher.takes_path(effect, path, *access)
                    })
                });
            }
            PartSubject::Request(request) => {
                found = tool.matching.for_request(request);
                found.extend(snapshot.reaches.index.for_request(request));
                found.retain(|&place| {
                    layer.takes(place, |matcher, effect| {
                        matcher.takes_request(effect, request)
                    })
                });
            }
            PartSubject::Unread(..) | PartSubject::Whole => return Vec::new(),
        }
        found
    }

    /// The outcome for one part. The order of the checks is the precedence.
    ///
    /// A plain deny wins without asking an authority. An operator's earlier answer silences an ask, but never an ask of
    /// the administrator's policy file or one with `remember: never`: the operator of this machine cannot answer for
    /// its administrator. The result `allow`, from a rule, an authority, a hook or the mode, becomes an ask if the part
    /// is unreadable and a rule that denies or asks might match it.
    fn outcome(
        &self,
        part: &PermissionPart,
        votes: &PartRules<'a>,
    ) -> (Behavior, JudgementGround<'a>) {
        let denies = |heard: &OrderedRule<'a>| {
            heard.rule.effect == Behavior::Deny && heard.rule.delegate.is_none()
        };
        if let Some(rule) = first(votes.all().filter(denies)) {
            return (Behavior::Deny, JudgementGround::Rule(rule));
        }
        let delegated = self.delegated(part, votes);
        if let Some((Behavior::Deny, ground)) = delegated {
            return (Behavior::Deny, ground);
        }
        let allows = votes.allows(part);
        let answered = allows.iter().any(|heard| is_an_answer(heard.rule));
        let unanswered = |heard: &OrderedRule<'a>| {
            let is_ask = heard.rule.effect == Behavior::Ask;
            is_ask && (is_unanswerable(heard.rule) || !answered)
        };
        if let Some(rule) = first(votes.all().filter(unanswered)) {
            return (Behavior::Ask, JudgementGround::Rule(rule));
        }
        if let Some((Behavior::Ask, ground)) = delegated {
            return (Behavior::Ask, ground);
        }
        let hook = self
            .facts
            .opinions
            .iter()
            .find(|opinion| opinion.behavior == Behavior::Allow);
        let (behavior, ground) = match (first(allows.iter().copied()), delegated, hook) {
            (Some(rule), _, _) => (Behavior::Allow, JudgementGround::Rule(rule)),
            (None, Some(allowed), _) => allowed,
            (None, None, Some(opinion)) => (
                Behavior::Allow,
                JudgementGround::Said(opinion.reason.clone()),
            ),
            (None, None, None) => (
                self.policy
                    .mode
                    .behavior(part.class, self.facts.effects.confined),
                JudgementGround::Mode,
            ),
        };
        let unreadable = || self.unreadable(part).or_else(|| self.hidden(part, votes));
        match (behavior == Behavior::Allow).then(unreadable).flatten() {
            Some((why, guard)) => (Behavior::Ask, JudgementGround::Opaque { why, guard }),
            None => (behavior, ground),
        }
    }

    /// Why it is unknown whether a deny or an ask matches a part, and that rule.
    fn unreadable(&self, part: &PermissionPart) -> Option<(String, &'a Rule)> {
        if let Some(why) = &part.opaque {
            let kind = match &part.subject {
                PartSubject::Command(_) => ArgumentKind::Command,
                PartSubject::Unread(kind, _) => *kind,
                PartSubject::Path {
                    access: ResourceAccess::Read,
                    ..
                } => ArgumentKind::ReadPath,
                PartSubject::Path {
                    access: ResourceAccess::Write,
                    ..
                } => ArgumentKind::WritePath,
                PartSubject::Request(_) => ArgumentKind::Url,
                PartSubject::Whole => ArgumentKind::Command,
            };
            return self.guard(kind).map(|guard| (why.clone(), guard));
        }
        let alone = matches!(
            (&part.subject, self.parts.all.as_slice()),
            (PartSubject::Whole, [_])
        );
        let declares_some = !self
            .facts
            .declaration
            .interface
            .permission
            .arguments
            .is_empty();
        if !alone || declares_some || self.facts.input.is_none() || part.class == EffectClass::Read
        {
            return None;
        }
        let means_it = |rule: &&'a Rule| match &rule.selector {
            Selector::Tool { tools, .. } => !tools.as_str().trim_matches('*').is_empty(),
            Selector::Class(_)
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => false,
        };
        let guards = self
            .layers
            .iter()
            .flat_map(|layer| layer.heard(&layer.tool.guards));
        let guard = guards
            .map(|heard| heard.rule)
            .filter(|rule| self.concerns(rule))
            .find(means_it)?;
        Some((
            "the tool declares no argument that rules can check".to_owned(),
            guard,
        ))
    }

    /// A deny or an ask with a pattern that could match an argument of this kind.
    fn guard(&self, kind: ArgumentKind) -> Option<&'a Rule> {
        let (reads, writes, reaches) = match kind {
            ArgumentKind::ReadPath => (true, false, false),
            ArgumentKind::WritePath => (false, true, false),
            ArgumentKind::Url | ArgumentKind::Method => (false, false, true),
            // For a confined process, the sandbox enforces the path rules.
            ArgumentKind::Command
            | ArgumentKind::Words
            | ArgumentKind::Directory
            | ArgumentKind::Environment => {
                let unconfined = runs_unconfined(self.facts);
                (unconfined, unconfined, false)
            }
        };
        let tool = self
            .layers
            .iter()
            .map(|layer| (layer, layer.tool.guards.as_slice()));
        let paths = self.layers.iter().flat_map(|layer| {
            let snapshot = layer.snapshot;
            let lists = [
                (reads, &snapshot.reads),
                (writes, &snapshot.writes),
                (reaches, &snapshot.reaches),
            ];
            let wanted = lists.into_iter().filter(|(wanted, _)| *wanted);
            wanted.map(move |(_, list)| (layer, list.guards.as_slice()))
        });
        self.earliest(tool.chain(paths))
    }

    /// The earliest rule of several lists that applies to this call. Only the first of each list is searched for,
    /// because a list may have thousands.
    fn earliest<'l>(
        &self,
        lists: impl Iterator<Item = (&'l RuleLayer<'a>, &'l [RulePosition])>,
    ) -> Option<&'a Rule>
    where
        'a: 'l,
    {
        let firsts = lists.filter_map(|(layer, places)| {
            layer.heard(places).find(|heard| self.concerns(heard.rule))
        });
        firsts
            .min_by_key(|heard| heard.order)
            .map(|heard| heard.rule)
    }

    /// The reasons of hooks, the tool and the host that do not depend on the parts.
    fn said_of_the_call(&self, waived: Option<&str>) -> Vec<Judgement<'a>> {
        let interface = &self.facts.declaration.interface;
        let said = |behavior, reason| Judgement {
            behavior,
            ground: JudgementGround::Said(reason),
            part: None,
        };
        let opinions = self
            .facts
            .opinions
            .iter()
            .filter(|opinion| opinion.behavior > Behavior::Allow);
        let mut all: Vec<Judgement<'a>> = opinions
            .map(|opinion| said(opinion.behavior, opinion.reason.clone()))
            .collect();
        let mut ask = |kind, text: String| {
            all.push(said(
                Behavior::Ask,
                DecisionReason {
                    kind,
                    text,
                    rule: None,
                },
            ));
        };
        if interface.permission.approval_required || interface.safety.requires_user_interaction {
            let text = "the tool requires a person's approval for every call";
            ask(ReasonType::SafetyCheck, text.to_owned());
        } else if interface.permission.approval_requested && waived.is_none() {
            ask(ReasonType::SafetyCheck, request::TEXT.to_owned());
        }
        if let Some(caution) = &self.facts.effects.caution {
            ask(ReasonType::Caution, caution.clone());
        }
        for caution in self.open_path_cautions() {
            ask(ReasonType::Caution, caution.reason.clone());
        }
        if runs_unconfined(self.facts)
            && let Some(guard) = self.path_guard()
        {
            let why = "path rules are not enforced for an unconfined process".to_owned();
            let ground = JudgementGround::Opaque { why, guard };
            all.push(Judgement {
                behavior: Behavior::Ask,
                ground,
                part: None,
            });
        }
        all
    }

    /// The paths that steer agents and that no rule allows by name.
    pub(super) fn open_path_cautions(&self) -> impl Iterator<Item = &'a PathCaution> {
        let cautions: &'a [PathCaution] = match self.policy.mode {
            PermissionMode::Bypass => &[],
            PermissionMode::Plan
            | PermissionMode::NeverAsk
            | PermissionMode::Default
            | PermissionMode::Edits
            | PermissionMode::Sandboxed => &self.facts.effects.path_cautions,
        };
        cautions
            .iter()
            .filter(|caution| !self.is_allowed_by_name(caution))
    }

    fn is_allowed_by_name(&self, caution: &PathCaution) -> bool {
        let subject = PermissionPart::of_change(&caution.key).map(|part| part.subject);
        let Some(PartSubject::Path { path, .. }) = subject else {
            return false;
        };
        self.layers.iter().any(|layer| {
            let mut found = layer.tool.matching.for_path(&path);
            found.extend(
                layer
                    .snapshot
                    .of_access(ResourceAccess::Write)
                    .index
                    .for_path(&path),
            );
            found.retain(|&place| layer.takes(place, |matcher, _| matcher.names_path(&path)));
            let mut rules = layer.heard(&found).map(|heard| heard.rule);
            rules.any(|rule| rule.effect == Behavior::Allow && self.concerns(rule))
        })
    }

    fn path_guard(&self) -> Option<&'a Rule> {
        let lists = self.layers.iter().flat_map(|layer| {
            let snapshot = layer.snapshot;
            [
                (layer, snapshot.reads.guards.as_slice()),
                (layer, snapshot.writes.guards.as_slice()),
            ]
        });
        self.earliest(lists)
    }
}

impl OrderedRule<'_> {
    fn standing(&self) -> (RuleOrigin, (usize, RulePosition)) {
        (self.rule.origin, self.order)
    }
}

impl<'a> RuleLayer<'a> {
    fn heard<'p>(
        &'p self,
        places: &'p [RulePosition],
    ) -> impl Iterator<Item = OrderedRule<'a>> + use<'a, 'p> {
        places.iter().map(|&place| OrderedRule {
            rule: self.rule(place),
            order: (self.number, place),
        })
    }

    fn rule(&self, place: RulePosition) -> &'a Rule {
        let snapshot: &'a RuleSnapshot = self.snapshot;
        &snapshot.get(place).rule
    }

    fn takes(
        &self,
        place: RulePosition,
        asks: impl Fn(&super::matcher::Matcher, Behavior) -> bool,
    ) -> bool {
        let compiled = self.snapshot.get(place);
        compiled
            .matcher
            .as_ref()
            .is_some_and(|matcher| asks(matcher, compiled.rule.effect))
    }
}

/// The rules that match one part.
struct PartRules<'a> {
    /// The rules that match the call or its class.
    bare: Vec<OrderedRule<'a>>,
    /// The rules whose matchers fit the part.
    exact: Vec<OrderedRule<'a>>,
}

impl<'a> PartRules<'a> {
    fn all(&self) -> impl Iterator<Item = OrderedRule<'a>> {
        self.bare.iter().chain(&self.exact).copied()
    }

    /// The rules that allow the part. An allow without a pattern covers unreadable parts as well.
    fn allows(&self, part: &PermissionPart) -> Vec<OrderedRule<'a>> {
        let heard = self
            .bare
            .iter()
            .chain(self.exact.iter().filter(|_| part.opaque.is_none()));
        heard
            .copied()
            .filter(|heard| heard.rule.effect == Behavior::Allow)
            .collect()
    }
}

/// The rule of the highest standing, and among equals the earliest.
fn first<'a>(heard: impl Iterator<Item = OrderedRule<'a>>) -> Option<OrderedRule<'a>> {
    heard.min_by_key(OrderedRule::standing)
}

/// Whether an allow is an operator's answer, which also silences the rule that asked.
pub(super) fn is_an_answer(rule: &Rule) -> bool {
    match rule.origin {
        RuleOrigin::Session | RuleOrigin::Local => true,
        RuleOrigin::Policy
        | RuleOrigin::Cli
        | RuleOrigin::Project
        | RuleOrigin::User
        | RuleOrigin::Builtin => false,
    }
}

/// Whether a rule asks in spite of an operator's answers. An operator of this machine cannot answer for its
/// administrator.
pub(super) fn is_unanswerable(rule: &Rule) -> bool {
    rule.remember == RememberOffer::Never || rule.origin == RuleOrigin::Policy
}
