//! Hierarchical read and write locks by name: `path:/w` covers everything beneath it.

use std::collections::HashMap;

use toolpost_model::{Access, ResourceUse};

/// Who holds what. Every held key also counts at the keys above it, so that a question costs its depth, not
/// the number of locks.
#[derive(Default)]
pub(super) struct LockTable {
    nodes: HashMap<Box<str>, Node>,
}

#[derive(Default)]
struct Node {
    readers: u32,
    writers: u32,
    readers_beneath: u32,
    writers_beneath: u32,
}

impl Node {
    fn is_idle(&self) -> bool {
        self.readers + self.writers + self.readers_beneath + self.writers_beneath == 0
    }
}

impl LockTable {
    pub(super) fn free(&self, uses: &[ResourceUse]) -> bool {
        self.nodes.is_empty() || uses.iter().all(|one| self.is_free(one))
    }

    fn is_free(&self, wanted: &ResourceUse) -> bool {
        let here = self.nodes.get(wanted.key.as_str());
        let above = || wanted.key.ancestors().filter_map(|key| self.nodes.get(key));
        match wanted.access {
            Access::Read => {
                here.is_none_or(|node| node.writers + node.writers_beneath == 0)
                    && above().all(|node| node.writers == 0)
            }
            Access::Write => {
                here.is_none_or(Node::is_idle) && above().all(|node| node.readers + node.writers == 0)
            }
        }
    }

    pub(super) fn take(&mut self, uses: &[ResourceUse]) {
        for one in uses {
            self.change(one, |count| *count += 1);
        }
    }

    pub(super) fn release(&mut self, uses: &[ResourceUse]) {
        for one in uses {
            self.change(one, |count| *count -= 1);
        }
    }

    fn change(&mut self, one: &ResourceUse, change: impl Fn(&mut u32)) {
        let mut at = |key: &str, pick: fn(&mut Node) -> &mut u32| {
            if !self.nodes.contains_key(key) {
                self.nodes.insert(key.into(), Node::default());
            }
            if let Some(node) = self.nodes.get_mut(key) {
                change(pick(node));
                if node.is_idle() {
                    self.nodes.remove(key);
                }
            }
        };
        match one.access {
            Access::Read => at(one.key.as_str(), |node| &mut node.readers),
            Access::Write => at(one.key.as_str(), |node| &mut node.writers),
        }
        for key in one.key.ancestors() {
            match one.access {
                Access::Read => at(key, |node| &mut node.readers_beneath),
                Access::Write => at(key, |node| &mut node.writers_beneath),
            }
        }
    }
}

/// Whether holding `held` is enough for whoever wants `wanted`.
pub(super) fn covers(held: &ResourceUse, wanted: &ResourceUse) -> bool {
    (held.access == Access::Write || wanted.access == Access::Read)
        && is_beneath(wanted.key.as_str(), held.key.as_str())
}

/// Whether two calls cannot run at the same time.
pub(super) fn conflict(left: &[ResourceUse], right: &[ResourceUse]) -> bool {
    left.iter().any(|a| right.iter().any(|b| collide(a, b)))
}

pub(super) fn collide(a: &ResourceUse, b: &ResourceUse) -> bool {
    if a.access == Access::Read && b.access == Access::Read {
        return false;
    }
    let (a, b) = (a.key.as_str(), b.key.as_str());
    is_beneath(a, b) || is_beneath(b, a)
}

fn is_beneath(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolpost_model::{Access, ResourceKey, ResourceUse};

    use super::{LockTable, collide};

    fn any_use() -> impl Strategy<Value = ResourceUse> {
        let path = prop::collection::vec("[ab]{1,2}", 0..4).prop_map(|parts| format!("/{}", parts.join("/")));
        (path, any::<bool>()).prop_map(|(path, write)| ResourceUse {
            key: ResourceKey::path(&path),
            access: if write { Access::Write } else { Access::Read },
        })
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_the_plain_rule(held in prop::collection::vec(any_use(), 0..6), wanted in any_use()) {
            let mut table = LockTable::default();
            table.take(&held);
            let expected = !held.iter().any(|one| collide(one, &wanted));
            prop_assert_eq!(table.free(std::slice::from_ref(&wanted)), expected);
            table.release(&held);
            prop_assert!(table.nodes.is_empty());
        }
    }
}
