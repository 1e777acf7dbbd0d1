//! The division of the host's limits among callers: slots, places in the queue, streams, processes, bytes.
//!
//! One rule holds for every limit. A reserve is kept for operators. An agent below its share gets more while the
//! agents' part lasts. An agent at its share borrows, as long as no other agent is active, and never the last bit: a
//! headroom of half a share stays free, so that the next agent begins at once and not when the first one ends
//! something. The host never takes back a unit that it gave.

use std::collections::HashMap;

use crate::{Principal, PrincipalRole};

/// Smaller limits have no reserve: a share of them is one or two already.
const LEAST_DIVIDED: u64 = 8;

/// The operator's settings for the division of limits, in percent of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRules {
    /// The share of one agent while others are active.
    pub share: u8,
    /// The part that agents never get.
    pub operator_reserve: u8,
}

impl Default for ShareRules {
    fn default() -> Self {
        Self {
            share: 25,
            operator_reserve: 10,
        }
    }
}

impl ShareRules {
    /// One limit, divided by these rules. A share is never less than one; a limit below eight has no reserve.
    pub fn divide(self, total: u64) -> DividedLimit {
        let part = |percent: u8| {
            let part = u128::from(total) * u128::from(percent.min(100)) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let share = part(self.share).max(1);
        let (reserve, headroom) = match (total >= LEAST_DIVIDED, self.operator_reserve) {
            (false, _) => (0, 0),
            (true, 0) => (0, share / 2),
            (true, percent) => (part(percent).max(1), share / 2),
        };
        let agents = total.saturating_sub(reserve);
        // An agent with a share of 100% may use everything, so no headroom is kept for others.
        let headroom = if self.share >= 100 { 0 } else { headroom };
        DividedLimit {
            total,
            agents,
            lent: agents.saturating_sub(headroom),
            share,
        }
    }
}

/// One limit, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedLimit {
    total: u64,
    /// The part for all agents together.
    agents: u64,
    /// The part up to which an agent may borrow beyond its share.
    lent: u64,
    share: u64,
}

/// The use of a limit at the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// The caller's part.
    pub own: u64,
    /// The part of all agents.
    pub agents: u64,
    /// The part of all callers.
    pub all: u64,
    /// Other agents than the caller are active.
    pub others_active: bool,
}

/// Why a caller gets no more of a limit for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRefusal {
    /// All of it is in use.
    Total {
        /// The whole limit.
        limit: u64,
    },
    /// Agents use all of their part.
    Agents {
        /// The part for all agents together.
        limit: u64,
    },
    /// The caller has its share, and others are active.
    Share {
        /// The caller's part.
        own: u64,
        /// Its share.
        limit: u64,
    },
    /// The caller has more than its share, and the rest stays free for others.
    Headroom {
        /// The caller's part.
        own: u64,
        /// The part up to which an agent may borrow beyond its share.
        limit: u64,
    },
}

impl DividedLimit {
    /// The whole limit.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Checks whether the caller may have `more` units beside its present ones.
    pub fn admit(
        &self,
        role: PrincipalRole,
        in_use: &LimitUse,
        more: u64,
    ) -> Result<(), ShareRefusal> {
        let LimitUse {
            own,
            agents,
            all,
            others_active,
        } = *in_use;
        if all.saturating_add(more) > self.total {
            return Err(ShareRefusal::Total { limit: self.total });
        }
        if role == PrincipalRole::Operator {
            return Ok(());
        }
        let then = agents.saturating_add(more);
        if own.saturating_add(more) <= self.share {
            if then > self.agents {
                Err(ShareRefusal::Agents { limit: self.agents })
            } else {
                Ok(())
            }
        } else if others_active {
            Err(ShareRefusal::Share {
                own,
                limit: self.share,
            })
        } else if then > self.lent {
            Err(ShareRefusal::Headroom {
                own,
                limit: self.lent,
            })
        } else {
            Ok(())
        }
    }
}

impl ShareRefusal {
    /// The refusal as a sentence, with the settings behind it: `things` is a plural such as `open streams`.
    pub fn told(&self, things: &str, setting: &str) -> String {
        match self {
            Self::Total { limit } => {
                format!("all {limit} {things} are in use (setting `{setting}`)")
            }
            Self::Agents { limit } => format!(
                "all {limit} {things} for agents are in use; the rest is reserved for operators (settings \
                 `{setting}` and `limits.operator_reserve`)"
            ),
            Self::Share { own, limit } => format!(
                "this caller has {own} {things}, and its share is {limit} while others are active (settings \
                 `{setting}` and `limits.share`)"
            ),
            Self::Headroom { own, limit } => format!(
                "this caller has {own} {things}; beyond {limit} the rest stays free for others (settings \
                 `{setting}` and `limits.share`)"
            ),
        }
    }

    /// The limit that was reached.
    pub fn limit(&self) -> u64 {
        let (Self::Total { limit }
        | Self::Agents { limit }
        | Self::Share { limit, .. }
        | Self::Headroom { limit, .. }) = self;
        *limit
    }
}

/// The use of one limit by caller. A caller with a unit in use is active.
#[derive(Debug)]
pub struct ShareTable {
    limit: DividedLimit,
    uses: HashMap<Principal, u64>,
    active_agents: usize,
    agents: u64,
    all: u64,
}

impl ShareTable {
    /// An unused limit.
    pub fn new(limit: DividedLimit) -> Self {
        Self {
            limit,
            uses: HashMap::new(),
            active_agents: 0,
            agents: 0,
            all: 0,
        }
    }

    /// The part of all callers together.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// The part of one caller.
    pub fn own(&self, principal: &Principal) -> u64 {
        self.uses.get(principal).copied().unwrap_or_default()
    }

    /// Gives a caller one more.
    pub fn take(&mut self, principal: &Principal) -> Result<(), ShareRefusal> {
        let own = self.own(principal);
        let others =
            self.active_agents - usize::from(own > 0 && principal.role == PrincipalRole::Agent);
        let in_use = LimitUse {
            own,
            agents: self.agents,
            all: self.all,
            others_active: others > 0,
        };
        self.limit.admit(principal.role, &in_use, 1)?;
        *self.uses.entry(principal.clone()).or_default() += 1;
        self.all += 1;
        if principal.role == PrincipalRole::Agent {
            self.agents += 1;
            self.active_agents += usize::from(own == 0);
        }
        Ok(())
    }

    /// Takes one unit back.
    pub fn give_back(&mut self, principal: &Principal) {
        let Some(own) = self.uses.get_mut(principal) else {
            return;
        };
        *own -= 1;
        let is_gone = *own == 0;
        if is_gone {
            self.uses.remove(principal);
        }
        self.all -= 1;
        if principal.role == PrincipalRole::Agent {
            self.agents -= 1;
            self.active_agents -= usize::from(is_gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ShareRefusal, ShareRules, ShareTable};
    use crate::Principal;

    fn take(table: &mut ShareTable, who: &Principal, count: usize) -> usize {
        (0..count).take_while(|_| table.take(who).is_ok()).count()
    }

    #[test]
    fn one_agent_alone_gets_all_but_the_reserve_and_the_headroom() {
        let mut table = ShareTable::new(ShareRules::default().divide(64));
        let greedy = Principal::agent("greedy");
        let ordinary = Principal::agent("ordinary");
        let operator = Principal::operator("op");
        assert_eq!(take(&mut table, &greedy, 100), 64 - 6 - 8);
        assert_eq!(
            table.take(&greedy),
            Err(ShareRefusal::Headroom { own: 50, limit: 50 })
        );
        assert_eq!(
            take(&mut table, &ordinary, 100),
            8,
            "the headroom is for whoever is below its share"
        );
        assert_eq!(
            table.take(&ordinary),
            Err(ShareRefusal::Agents { limit: 58 })
        );
        assert_eq!(
            take(&mut table, &operator, 100),
            6,
            "the reserve is for operators"
        );
        assert_eq!(
            table.take(&operator),
            Err(ShareRefusal::Total { limit: 64 })
        );
        // A freed unit goes to a caller below its share.
        (0..4).for_each(|_| table.give_back(&greedy));
        assert_eq!(
            table.take(&greedy),
            Err(ShareRefusal::Share { own: 46, limit: 16 })
        );
        assert_eq!(take(&mut table, &ordinary, 100), 4);
        // Alone again, it borrows again.
        (0..12).for_each(|_| table.give_back(&ordinary));
        assert_eq!(take(&mut table, &greedy, 100), 4);
    }

    #[test]
    fn limits_of_any_size_are_divided() {
        let parts = |total, share, operator_reserve| {
            let limit = ShareRules {
                share,
                operator_reserve,
            }
            .divide(total);
            (limit.agents, limit.lent, limit.share)
        };
        assert_eq!(parts(1, 25, 10), (1, 1, 1));
        assert_eq!(parts(4, 25, 10), (4, 4, 1));
        assert_eq!(parts(8, 25, 10), (7, 6, 2));
        assert_eq!(parts(1_024, 25, 10), (922, 794, 256));
        assert_eq!(
            parts(64, 100, 0),
            (64, 64, 64),
            "everything for whoever comes first"
        );
        assert_eq!(parts(64, 50, 0), (64, 48, 32));
        assert_eq!(parts(u64::MAX, 100, 0), (u64::MAX, u64::MAX, u64::MAX));
    }
}
