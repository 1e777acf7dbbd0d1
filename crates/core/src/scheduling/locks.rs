//! Hierarchical read and write locks by name: `path:/w` covers everything beneath it.

use std::collections::{BTreeSet, HashMap};

use toolpost_model::{ResourceAccess, ResourceUse};

use super::need::QueueTicket;

/// The holders of each lock, and the calls that wait for it. Every use also counts at the keys above its own, so a
/// lookup costs the depth of the key, not the number of calls.
#[derive(Default)]
pub(super) struct LockTable {
    nodes: HashMap<Box<str>, LockNode>,
}

/// One key: its own users, and those of all keys beneath it.
#[derive(Default)]
struct LockNode {
    here: LockHolders,
    beneath: LockHolders,
}

#[derive(Default)]
struct LockHolders {
    readers: LockCrowd,
    writers: LockCrowd,
}

#[derive(Default)]
struct LockCrowd {
    holding: u32,
    waiting: BTreeSet<QueueTicket>,
}

impl LockCrowd {
    /// Whether a call holds this, or has waited for it since before `ticket`.
    fn is_before(&self, ticket: Option<QueueTicket>) -> bool {
        let waits_longer = |ticket| self.waiting.first().is_some_and(|first| *first < ticket);
        self.holding > 0 || ticket.is_some_and(waits_longer)
    }

    fn is_empty(&self) -> bool {
        self.holding == 0 && self.waiting.is_empty()
    }
}

impl LockHolders {
    fn blocks(&self, access: ResourceAccess, ticket: Option<QueueTicket>) -> bool {
        self.writers.is_before(ticket)
            || (access == ResourceAccess::Write && self.readers.is_before(ticket))
    }

    fn crowd(&mut self, access: ResourceAccess) -> &mut LockCrowd {
        match access {
            ResourceAccess::Read => &mut self.readers,
            ResourceAccess::Write => &mut self.writers,
        }
    }

    fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty()
    }

    /// The calls that wait at this key and need not wait for one another.
    fn first_in_line(&self, freed: ResourceAccess, found: &mut Vec<QueueTicket>) {
        let writer = self.writers.waiting.first();
        found.extend(writer);
        if freed == ResourceAccess::Write {
            found.extend(before(&self.readers.waiting, writer));
        }
    }
}

impl LockNode {
    /// The calls that wait beneath this key and have no earlier rival at it.
    fn first_beneath(&self, freed: ResourceAccess, found: &mut Vec<QueueTicket>) {
        let writer = self.here.writers.waiting.first();
        if freed == ResourceAccess::Write {
            found.extend(before(&self.beneath.readers.waiting, writer));
        } else if self.here.readers.holding > 0 {
            return;
        }
        let anybody = self
            .here
            .readers
            .waiting
            .first()
            .into_iter()
            .chain(writer)
            .min();
        found.extend(before(&self.beneath.writers.waiting, anybody));
    }
}

/// The tickets up to and including `end`: one call may wait here for several uses, and does not block itself.
fn before<'a>(
    waiting: &'a BTreeSet<QueueTicket>,
    end: Option<&'a QueueTicket>,
) -> impl Iterator<Item = QueueTicket> + 'a {
    waiting
        .iter()
        .take_while(move |ticket| end.is_none_or(|end| *ticket <= end))
        .copied()
}

impl LockTable {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether no call holds a conflicting use, and none has waited for one since before `ticket`, if one is given.
    pub(super) fn free(&self, uses: &[ResourceUse], ticket: Option<QueueTicket>) -> bool {
        self.nodes.is_empty() || uses.iter().all(|one| self.is_free(one, ticket))
    }

    fn is_free(&self, wanted: &ResourceUse, ticket: Option<QueueTicket>) -> bool {
        let access = wanted.access;
        let here = self.nodes.get(wanted.key.as_str());
        let mut above = wanted.key.ancestors().filter_map(|key| self.nodes.get(key));
        !here.is_some_and(|node| {
            node.here.blocks(access, ticket) || node.beneath.blocks(access, ticket)
        }) && !above.any(|node| node.here.blocks(access, ticket))
    }

    pub(super) fn take(&mut self, uses: &[ResourceUse]) {
        self.change(uses, |crowd| crowd.holding += 1);
    }

    pub(super) fn release(&mut self, uses: &[ResourceUse]) {
        self.change(uses, |crowd| crowd.holding -= 1);
    }

    pub(super) fn wait(&mut self, uses: &[ResourceUse], ticket: QueueTicket) {
        self.change(uses, |crowd| {
            crowd.waiting.insert(ticket);
        });
    }

    pub(super) fn stop_waiting(&mut self, uses: &[ResourceUse], ticket: QueueTicket) {
        self.change(uses, |crowd| {
            crowd.waiting.remove(&ticket);
        });
    }

    /// The calls that may be free now that one call no longer holds these uses, or no longer waits for them.
    ///
    /// The result may name too many calls and never too few: the table checks each named call with `free`, but checks
    /// no other. A call may be left out only if an earlier rival is still there, because that rival's end names it
    /// again. The exact set would need a scan of the whole queue at each release, which makes a queue of n calls cost
    /// n² (see the test with a thousand calls).
    pub(super) fn freed(&self, uses: &[ResourceUse]) -> Vec<QueueTicket> {
        let mut found = Vec::new();
        for one in uses {
            if let Some(node) = self.nodes.get(one.key.as_str()) {
                node.here.first_in_line(one.access, &mut found);
                node.first_beneath(one.access, &mut found);
            }
            for node in one.key.ancestors().filter_map(|key| self.nodes.get(key)) {
                node.here.first_in_line(one.access, &mut found);
            }
        }
        found
    }

    fn change(&mut self, uses: &[ResourceUse], change: impl Fn(&mut LockCrowd)) {
        let mut at =
            |key: &str, side: fn(&mut LockNode) -> &mut LockHolders, access: ResourceAccess| {
                if !self.nodes.contains_key(key) {
                    self.nodes.insert(key.into(), LockNode::default());
                }
                if let Some(node) = self.nodes.get_mut(key) {
                    change(side(node).crowd(access));
                    if node.here.is_empty() && node.beneath.is_empty() {
                        self.nodes.remove(key);
                    }
                }
            };
        for one in uses {
            at(one.key.as_str(), |node| &mut node.here, one.access);
            one.key
                .ancestors()
                .for_each(|key| at(key, |node| &mut node.beneath, one.access));
        }
    }
}

/// Whether `held` is enough for a nested call that needs `wanted`.
pub(super) fn covers(held: &ResourceUse, wanted: &ResourceUse) -> bool {
    (held.access == ResourceAccess::Write || wanted.access == ResourceAccess::Read)
        && is_beneath(wanted.key.as_str(), held.key.as_str())
}

/// Whether two calls cannot run at the same time.
pub(super) fn conflict(left: &[ResourceUse], right: &[ResourceUse]) -> bool {
    left.iter().any(|a| right.iter().any(|b| collide(a, b)))
}

pub(super) fn collide(a: &ResourceUse, b: &ResourceUse) -> bool {
    if a.access == ResourceAccess::Read && b.access == ResourceAccess::Read {
        return false;
    }
    let a = a.key.as_str();
    let b = b.key.as_str();
    is_beneath(a, b) || is_beneath(b, a)
}

fn is_beneath(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolpost_model::{ResourceAccess, ResourceKey, ResourceUse};

    use super::{super::need::QueueTicket, LockTable, collide};

    fn any_use() -> impl Strategy<Value = ResourceUse> {
        let path = prop::collection::vec("[ab]{1,2}", 0..4)
            .prop_map(|parts| format!("/{}", parts.join("/")));
        (path, any::<bool>()).prop_map(|(path, write)| ResourceUse {
            key: ResourceKey::path(&path),
            access: if write {
                ResourceAccess::Write
            } else {
                ResourceAccess::Read
            },
        })
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_the_plain_rule(
            held in prop::collection::vec(any_use(), 0..6),
            waiting in prop::collection::vec(any_use(), 0..6),
            wanted in any_use(),
        ) {
            let mut table = LockTable::default();
            table.take(&held);
            let ticket = |place: usize| QueueTicket::number(place as u64, false);
            for (place, one) in waiting.iter().enumerate() {
                table.wait(std::slice::from_ref(one), ticket(place));
            }
            let wanted = std::slice::from_ref(&wanted);
            let free_of_holders = !held.iter().any(|one| collide(one, &wanted[0]));
            prop_assert_eq!(table.free(wanted, None), free_of_holders);
            for place in 0..=waiting.len() {
                let earlier = waiting[..place].iter().any(|one| collide(one, &wanted[0]));
                prop_assert_eq!(table.free(wanted, Some(ticket(place))), free_of_holders && !earlier);
            }
            // Every call that is free after the release must be among the named ones.
            table.release(&held);
            let named = table.freed(&held);
            for (place, one) in waiting.iter().enumerate() {
                let was_blocked = held.iter().any(|held| collide(held, one));
                if was_blocked && table.free(std::slice::from_ref(one), Some(ticket(place))) {
                    prop_assert!(named.contains(&ticket(place)));
                }
            }
            for (place, one) in waiting.iter().enumerate() {
                table.stop_waiting(std::slice::from_ref(one), ticket(place));
            }
            prop_assert!(table.nodes.is_empty());
        }
    }
}
