//! The policy in force: the operator's policy with the remembered rules on top.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use parking_lot::Mutex;
use toolpost_model::{Declaration, PathRulesInForce, Principal, ResourceAccess, Rule};

use super::{Host, HostInner};
use crate::{
    approval::RememberedRule,
    catalog::CatalogNotice,
    permission::{BareAllow, DecisionAuthorities, PolicyEngine},
    session::Session,
};

/// An engine with its generation, which grows with each change.
pub(crate) struct InForce {
    pub(crate) generation: u64,
    pub(crate) engine: Arc<dyn PolicyEngine>,
}

/// A caller without a name, which only rules for all callers match.
static ANY_CALLER: LazyLock<Principal> = LazyLock::new(|| Principal::agent(""));

impl PathRulesInForce for InForce {
    fn has_path_rules(&self, caller: Option<&Principal>) -> bool {
        self.engine.has_path_rules(caller.unwrap_or(&ANY_CALLER))
    }

    fn may_use(&self, path: &Path, access: ResourceAccess, caller: Option<&Principal>) -> bool {
        self.engine.may_use(
            path,
            access,
            caller.unwrap_or(&ANY_CALLER),
            crate::port::now(),
        )
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn hold_for(&self) -> Option<Duration> {
        let now = crate::port::now();
        let until = self.engine.path_rules_hold_until(now)?;
        Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
    }

    fn kept_places(&self, caller: Option<&Principal>) -> Vec<PathBuf> {
        self.engine.kept_places(caller.unwrap_or(&ANY_CALLER))
    }
}

pub(crate) struct PolicyHolder {
    in_force: ArcSwap<InForce>,
    /// The parts of the engine in force. Locked while an engine is built, so that concurrent changes are not lost.
    parts: Mutex<PolicyParts>,
    /// The authorities for delegating rules.
    authorities: DecisionAuthorities,
}

struct PolicyParts {
    own: Arc<dyn PolicyEngine>,
    remembered: Vec<RememberedRule>,
}

impl PolicyParts {
    fn engine(&self) -> Arc<dyn PolicyEngine> {
        let rules: Vec<Rule> = self
            .remembered
            .iter()
            .filter_map(|kept| kept.to_rule().ok())
            .collect();
        if rules.is_empty() {
            return Arc::clone(&self.own);
        }
        self.own.with_rules(&rules).unwrap_or_else(|| {
            tracing::warn!(
                "the policy does not support further rules; the remembered rules are ignored"
            );
            Arc::clone(&self.own)
        })
    }
}

impl PolicyHolder {
    pub(crate) fn new(
        own: Arc<dyn PolicyEngine>,
        remembered: Vec<RememberedRule>,
        authorities: DecisionAuthorities,
    ) -> Self {
        let parts = PolicyParts { own, remembered };
        let in_force = ArcSwap::from_pointee(InForce {
            generation: 0,
            engine: parts.engine(),
        });
        Self {
            in_force,
            parts: Mutex::new(parts),
            authorities,
        }
    }

    pub(crate) fn authorities(&self) -> &DecisionAuthorities {
        &self.authorities
    }

    pub(crate) fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    fn change(&self, change: impl FnOnce(&mut PolicyParts)) {
        let mut parts = self.parts.lock();
        change(&mut parts);
        let generation = self.in_force.load().generation + 1;
        self.in_force.store(Arc::new(InForce {
            generation,
            engine: parts.engine(),
        }));
    }

    /// The notices about rules for the given tools.
    pub(super) fn notices(&self, tools: &[&Declaration]) -> Vec<CatalogNotice> {
        let engine = &self.in_force.load().engine;
        let unmatched = engine.unmatched(tools).into_iter();
        let unmatched = unmatched.map(|rule| CatalogNotice::UnmatchedRule {
            rule: rule.rule,
            place: rule.place,
        });
        let bare = engine.bare_allows(tools).into_iter().map(
            |BareAllow {
                 rule,
                 meant,
                 instead,
             }| {
                let what = format!("the rule `{}` ({})", rule.rule, rule.place);
                CatalogNotice::BareName {
                    what,
                    meant,
                    instead,
                }
            },
        );
        unmatched.chain(bare).collect()
    }

    /// The remembered rules that have not expired.
    pub(crate) fn remembered(&self, at: Timestamp) -> Vec<RememberedRule> {
        self.parts
            .lock()
            .remembered
            .iter()
            .filter(|kept| at < kept.expires)
            .cloned()
            .collect()
    }
}

impl HostInner {
    /// The engine for a session: the host's engine, with the rules of the session if it has some.
    pub(crate) fn engine(&self, session: &Session) -> Arc<dyn PolicyEngine> {
        session.engine(&self.policy.in_force())
    }

    fn change_policy(&self, change: impl FnOnce(&mut PolicyParts)) {
        self.policy.change(change);
        // Tools that are denied outright are hidden, so the surfaces may have changed.
        self.moved_on();
    }

    pub(crate) fn remember(&self, rules: &[RememberedRule]) {
        self.change_policy(|parts| {
            parts
                .remembered
                .retain(|old| !rules.iter().any(|new| new.replaces(old)));
            parts.remembered.extend_from_slice(rules);
        });
    }

    pub(crate) fn forget(&self, id: &str) {
        self.change_policy(|parts| parts.remembered.retain(|kept| kept.id != id));
    }
}

impl Host {
    /// Replaces the policy for all later decisions. Remembered rules stay on top of it. Calls that are decided and have
    /// not started keep their decision. Calls that wait for approval are decided again after the answer.
    pub fn replace_policy(&self, policy: Arc<dyn PolicyEngine>) {
        self.inner.change_policy(|parts| parts.own = policy);
    }
}
