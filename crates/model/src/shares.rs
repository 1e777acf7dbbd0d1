//! How callers divide what a host has only so much of: slots, places in the queue, streams, processes, bytes.
//!
//! One rule holds for all of them. A part is kept for operators. An agent below its share gets what it asks for while
//! the agents' part lasts. An agent at its share borrows, as long as no other agent is active, and never the last bit:
//! a headroom of half a share stays free, so that the next agent begins at once and not when the first one ends
//! something. Nothing that was given is taken away.

use std::collections::HashMap;

use crate::{Principal, PrincipalRole};

/// A limit below this is not worth a reserve: its share is one or two already.
const LEAST_DIVIDED: u64 = 8;

/// The operator's word on how limits are divided, in percent of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRules {
    /// What one agent gets while others are active.
    pub share: u8,
    /// What agents never get.
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
        // Who may have everything owes nobody a headroom.
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
    /// What all agents together may have.
    agents: u64,
    /// Up to here agents may have more than their share.
    lent: u64,
    share: u64,
}

/// How much of a limit is in use when somebody wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// By the one who asks.
    pub own: u64,
    /// By all agents.
    pub agents: u64,
    /// By everybody.
    pub all: u64,
    /// Agents other than the one who asks are active.
    pub others_active: bool,
}

/// Why somebody gets no more of a limit for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRefusal {
    /// All of it is in use.
    Total {
        /// The whole limit.
        limit: u64,
    },
    /// Agents have all that is theirs.
    Agents {
        /// What all agents together may have.
        limit: u64,
    },
    /// The caller has its share, and others are active.
    Share {
        /// What it has.
        own: u64,
        /// Its share.
        limit: u64,
    },
    /// The caller has more than its share, and the rest stays free for others.
    Headroom {
        /// What it has.
        own: u64,
        /// Up to here agents may have more than their share.
        limit: u64,
    },
}

impl DividedLimit {
    /// The whole limit.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether somebody may have so much more.
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
    /// The refusal in words, with the settings behind it: `things` is a plural such as `open streams`.
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

    /// The limit that was met.
    pub fn limit(&self) -> u64 {
        let (Self::Total { limit }
        | Self::Agents { limit }
        | Self::Share { limit, .. }
        | Self::Headroom { limit, .. }) = self;
        *limit
    }
}

/// Who has how much of one limit. Whoever has something is active.
#[derive(Debug)]
pub struct ShareTable {
    limit: DividedLimit,
    uses: HashMap<Principal, u64>,
    active_agents: usize,
    agents: u64,
    all: u64,
}

impl ShareTable {
    /// Nobody has anything of it.
    pub fn new(limit: DividedLimit) -> Self {
        Self {
            limit,
            uses: HashMap::new(),
            active_agents: 0,
            agents: 0,
            all: 0,
        }
    }

    /// What everybody has together.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// What one has.
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

    /// Takes one back.
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
        // What comes back goes to whoever is below its share.
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
